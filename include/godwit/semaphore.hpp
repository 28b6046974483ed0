// counting_semaphore, binary_semaphore: like the standard's, but who waits is suspended and its worker goes
// on with other threads.
//
// First come, first served. May be destroyed as soon as the last acquire has come back, even if a release has
// not. Substrate threads (see mutex.hpp for elsewhere). docs/threads.md. Code: src/sync/semaphore.cpp.
// Test: tests/threads/wait_test.cpp.
#pragma once

#include <godwit/detail/deadline.hpp>
#include <godwit/detail/wait_list.hpp>

#include <chrono>
#include <cstddef>

namespace godwit {

namespace detail {

/// The word: lock bit, waiters, and the count above. With waiters the count is 0: units are handed over.
class semaphore_word {
 public:
  static constexpr std::uint32_t waiters = 2, one = 4;
  static constexpr std::ptrdiff_t max = (std::ptrdiff_t{1} << 30) - 1;

  constexpr explicit semaphore_word(std::ptrdiff_t n) noexcept : list_(static_cast<std::uint32_t>(n) * one) {}

  bool try_acquire() noexcept {
    std::uint32_t s = list_.word.load(std::memory_order_relaxed);
    while (s >= one && (s & wait_list::lock_bit) == 0)
      if (list_.word.compare_exchange_weak(s, s - one, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    return false;
  }
  void acquire(const place& where) noexcept {
    if (!try_acquire()) [[unlikely]]
      acquire_slow(where);
  }
  void release(std::ptrdiff_t n) noexcept {
    std::uint32_t s = list_.word.load(std::memory_order_relaxed);
    while ((s & (waiters | wait_list::lock_bit)) == 0)
      if (list_.word.compare_exchange_weak(s, s + static_cast<std::uint32_t>(n) * one,
                                           std::memory_order_release, std::memory_order_relaxed))
        return;
    release_slow(n);
  }
  bool acquire_until(std::uint64_t deadline_ns, const place& where) noexcept;

 private:
  bool take_or_mark() noexcept;
  void acquire_slow(const place& where) noexcept;
  void release_slow(std::ptrdiff_t n) noexcept;
  wait_list list_;
};

}  // namespace detail

/// Like std::counting_semaphore. Uncontended acquire and release: one atomic each.
template <std::ptrdiff_t LeastMax = detail::semaphore_word::max>
class counting_semaphore {
  static_assert(LeastMax >= 0 && LeastMax <= detail::semaphore_word::max,
                "godwit: a semaphore counts to 2^30 - 1");

 public:
  static constexpr std::ptrdiff_t(max)() noexcept { return LeastMax; }

  /// @p desired: in [0, max()].
  constexpr explicit counting_semaphore(std::ptrdiff_t desired) noexcept : word_(desired) {}
  counting_semaphore(const counting_semaphore&) = delete;
  counting_semaphore& operator=(const counting_semaphore&) = delete;

  /// Give back @p n units; the count must not exceed max().
  void release(std::ptrdiff_t n = 1) noexcept { word_.release(n); }
  /// Take a unit; waits for one. May migrate the calling thread.
  void acquire(detail::place where = detail::place::here()) noexcept { word_.acquire(where); }
  bool try_acquire() noexcept { return word_.try_acquire(); }
  template <class Rep, class Period>
  bool try_acquire_for(const std::chrono::duration<Rep, Period>& d,
                       detail::place where = detail::place::here()) {
    return try_acquire() || word_.acquire_until(detail::deadline_after(d), where);
  }
  template <class Clock, class Duration>
  bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& t,
                         detail::place where = detail::place::here()) {
    return try_acquire() ||
           detail::wait_until_time(t, [&](std::uint64_t ns) { return word_.acquire_until(ns, where); });
  }

 private:
  detail::semaphore_word word_;
};

using binary_semaphore = counting_semaphore<1>;

}  // namespace godwit
