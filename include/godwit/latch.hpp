// latch: like std::latch, but who waits is suspended and its worker goes on with other threads.
//
// May be destroyed as soon as wait has come back, even if the last count_down has not. Substrate threads (see
// mutex.hpp for elsewhere). docs/threads.md. Code: src/sync/semaphore.cpp. Test:
// tests/threads/wait_test.cpp.
#pragma once

#include <godwit/detail/wait_list.hpp>

#include <cstddef>

namespace godwit {

/// Like std::latch. count_down: one atomic; the last one wakes all.
class latch {
 public:
  static constexpr std::ptrdiff_t(max)() noexcept { return (std::ptrdiff_t{1} << 30) - 1; }

  constexpr explicit latch(std::ptrdiff_t expected) noexcept
      : list_(static_cast<std::uint32_t>(expected) * one) {}
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;

  /// @p n: at most what is left.
  void count_down(std::ptrdiff_t n = 1) noexcept {
    const std::uint32_t down = static_cast<std::uint32_t>(n) * one;
    std::uint32_t s = list_.word.load(std::memory_order_relaxed);
    // The step to 0 while others wait is taken under the lock: it is the last access. See
    // docs/protocols/park.md
    while ((s & ~waiters) > down || (s & (waiters | detail::wait_list::lock_bit)) == 0)
      if ((s & detail::wait_list::lock_bit) != 0)
        break;
      else if (list_.word.compare_exchange_weak(s, s - down, std::memory_order_acq_rel,
                                                std::memory_order_relaxed))
        return;
    count_down_slow(down);
  }
  bool try_wait() const noexcept { return list_.word.load(std::memory_order_acquire) == 0; }
  /// Until the count is 0. May migrate the calling thread.
  void wait(detail::place where = detail::place::here()) const noexcept {
    if (!try_wait()) wait_slow(where);
  }
  void arrive_and_wait(std::ptrdiff_t n = 1, detail::place where = detail::place::here()) noexcept {
    count_down(n);
    wait(where);
  }

 private:
  static constexpr std::uint32_t waiters = 2, one = 4;
  void count_down_slow(std::uint32_t down) noexcept;
  void wait_slow(const detail::place& where) const noexcept;
  mutable detail::wait_list list_;
};

}  // namespace godwit
