// shared_mutex, shared_timed_mutex: like the standard's, but who waits is suspended and its worker goes on
// with other threads.
//
// First come, first served: a writer that waits holds back the readers that come after it, and all readers up
// to the next writer get it together. They work with std::unique_lock, std::lock_guard, std::scoped_lock and
// std::shared_lock. Substrate threads (see mutex.hpp for elsewhere). docs/threads.md,
// docs/protocols/mutex.md. Code: src/sync/shared_mutex.cpp. Test: tests/threads/mutex_test.cpp.
#pragma once

#include <godwit/detail/deadline.hpp>
#include <godwit/detail/wait_list.hpp>

#include <chrono>

namespace godwit {

namespace detail {

/// The word: lock bit, writer, waiters, and the number of readers above.
class basic_shared_mutex {
 public:
  basic_shared_mutex(const basic_shared_mutex&) = delete;
  basic_shared_mutex& operator=(const basic_shared_mutex&) = delete;

  /// Wait until nobody has it. May migrate the calling thread. Uncontended: one atomic.
  void lock(place where = place::here()) noexcept {
    if (!try_lock()) [[unlikely]]
      wait(writer, where);
  }
  bool try_lock() noexcept {
    std::uint32_t free = 0;
    return list_.word.compare_exchange_strong(free, writer, std::memory_order_acquire,
                                              std::memory_order_relaxed);
  }
  void unlock() noexcept {
    std::uint32_t alone = writer;
    if (!list_.word.compare_exchange_strong(alone, 0, std::memory_order_release, std::memory_order_relaxed))
        [[unlikely]]
      unlock_slow();
  }

  /// Wait until no writer has it, or was there first. Uncontended: one atomic (on a line that all readers
  /// write).
  void lock_shared(place where = place::here()) noexcept {
    if (!try_lock_shared()) [[unlikely]]
      wait(reader, where);
  }
  bool try_lock_shared() noexcept {
    std::uint32_t s = list_.word.load(std::memory_order_relaxed);
    while ((s & (writer | waiters | wait_list::lock_bit)) == 0)
      if (list_.word.compare_exchange_weak(s, s + reader, std::memory_order_acquire,
                                           std::memory_order_relaxed))
        return true;
    return false;
  }
  void unlock_shared() noexcept {
    std::uint32_t s = list_.word.load(std::memory_order_relaxed);
    while ((s & (waiters | wait_list::lock_bit)) == 0)
      if (list_.word.compare_exchange_weak(s, s - reader, std::memory_order_release,
                                           std::memory_order_relaxed))
        return;
    unlock_shared_slow();
  }

 protected:
  constexpr basic_shared_mutex() noexcept = default;
  ~basic_shared_mutex() = default;
  static constexpr std::uint32_t writer = 2, waiters = 4, reader = 8;

  bool wait_until(std::uint32_t who, std::uint64_t deadline_ns, const place& where) noexcept;

 private:
  void wait(std::uint32_t who, const place& where) noexcept;
  void unlock_slow() noexcept;
  void unlock_shared_slow() noexcept;
  void leave(std::uint32_t who) noexcept;
  std::uint32_t grant(std::uint32_t word, wake_chain& woken) noexcept;
  bool enter(std::uint32_t who) noexcept;
  wait_list list_;
};

}  // namespace detail

/// Like std::shared_mutex. 24 bytes.
class shared_mutex : public detail::basic_shared_mutex {
 public:
  constexpr shared_mutex() noexcept = default;
};

/// Like std::shared_timed_mutex.
class shared_timed_mutex : public detail::basic_shared_mutex {
 public:
  constexpr shared_timed_mutex() noexcept = default;

  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& d,
                    detail::place where = detail::place::here()) {
    return try_lock() || wait_until(writer, detail::deadline_after(d), where);
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t,
                      detail::place where = detail::place::here()) {
    return try_lock() ||
           detail::wait_until_time(t, [&](std::uint64_t ns) { return wait_until(writer, ns, where); });
  }
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& d,
                           detail::place where = detail::place::here()) {
    return try_lock_shared() || wait_until(reader, detail::deadline_after(d), where);
  }
  template <class Clock, class Duration>
  bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& t,
                             detail::place where = detail::place::here()) {
    return try_lock_shared() ||
           detail::wait_until_time(t, [&](std::uint64_t ns) { return wait_until(reader, ns, where); });
  }
};

}  // namespace godwit
