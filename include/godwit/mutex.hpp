// mutex, timed_mutex, recursive_mutex, recursive_timed_mutex, once_flag: who waits is suspended, its worker
// goes on with other threads.
//
// Shaped like the standard's; they work with std::lock_guard, std::unique_lock and std::scoped_lock. A lock
// may be held across anything that suspends, spawns and joins included (a std::mutex must not: the thread may
// go on at another worker). Substrate threads: elsewhere a free one can be locked, but who finds it locked
// ends the program with a message. (There a recursive one cannot tell threads from each other: whoever finds
// it locked on the same host may get it as well.) Not fair, but nobody starves: who was woken in vain some
// times gets it next. docs/threads.md, docs/protocols/mutex.md. Code: src/sync/mutex.cpp. Test:
// tests/threads/mutex_test.cpp.
#pragma once

#include <godwit/detail/deadline.hpp>
#include <godwit/detail/wait_list.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <utility>

namespace godwit {

namespace detail {

// wait_list::word of a mutex, besides the lock bit.
inline constexpr std::uint32_t mutex_locked = 2;
inline constexpr std::uint32_t mutex_waiters = 4;  ///< the list may have nodes: unlock has to look

void mutex_lock_slow(wait_list& l, const char* what, const place& where) noexcept;
bool mutex_lock_until(wait_list& l, std::uint64_t deadline_ns, const char* what, const place& where) noexcept;
void mutex_unlock_slow(wait_list& l) noexcept;
[[noreturn]] void mutex_misused(const char* what, const place& where) noexcept;

/// What mutexes have in common: the word and, in debug builds of the program, who holds it.
class basic_mutex {
 public:
  basic_mutex(const basic_mutex&) = delete;
  basic_mutex& operator=(const basic_mutex&) = delete;

  /// Wait until the mutex is free and take it. May migrate the calling thread if it has to wait. Uncontended:
  /// one atomic.
  void lock(place where = place::here()) noexcept {
    check_not_mine(where);
    std::uint32_t free = 0;
    if (!list_.word.compare_exchange_strong(free, mutex_locked, std::memory_order_acquire,
                                            std::memory_order_relaxed)) [[unlikely]]
      mutex_lock_slow(list_, "mutex", where);
    taken();
  }
  /// Take it if it is free. Never waits. One atomic.
  bool try_lock() noexcept {
    std::uint32_t free = 0;
    if (!list_.word.compare_exchange_strong(free, mutex_locked, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
      // Free, but others wait: they have been woken and are on their way.
      do
        if ((free & (mutex_locked | wait_list::lock_bit)) != 0) return false;
      while (!list_.word.compare_exchange_weak(free, free | mutex_locked, std::memory_order_acquire,
                                               std::memory_order_relaxed));
    }
    taken();
    return true;
  }
  /// By the thread that holds it (debug builds check). Uncontended: one atomic; else wakes one thread.
  void unlock(place where = place::here()) noexcept {
    given_back(where);
    std::uint32_t alone = mutex_locked;
    if (!list_.word.compare_exchange_strong(alone, 0, std::memory_order_release, std::memory_order_relaxed))
        [[unlikely]]
      mutex_unlock_slow(list_);
  }

 protected:
  constexpr basic_mutex() noexcept = default;
  ~basic_mutex() = default;

  bool lock_until_ns(std::uint64_t deadline_ns, const place& where) noexcept {
    check_not_mine(where);
    if (!mutex_lock_until(list_, deadline_ns, "mutex", where)) return false;
    taken();
    return true;
  }

 private:
#ifdef NDEBUG
  void check_not_mine(const place&) noexcept {}
  void taken() noexcept {}
  void given_back(const place&) noexcept {}
#else
  void check_not_mine(const place& where) noexcept {
    if (const void* me = this_block(); me != nullptr && holder_.load(std::memory_order_relaxed) == me)
      mutex_misused("mutex is locked by a thread that holds it", where);
  }
  void taken() noexcept { holder_.store(this_block(), std::memory_order_relaxed); }
  void given_back(const place& where) noexcept {
    if (list_.word.load(std::memory_order_relaxed) == 0)
      mutex_misused("mutex is unlocked that is not locked", where);
    const void* const holder = holder_.load(std::memory_order_relaxed);
    if (holder != nullptr && holder != this_block())
      mutex_misused("mutex is unlocked by a thread that does not hold it", where);
    holder_.store(nullptr, std::memory_order_relaxed);
  }
#endif
  wait_list list_;
  // written in debug builds only; there in all, so that they can be mixed
  [[maybe_unused]] std::atomic<const void*> holder_ = nullptr;  // W who holds it, R any thread
};

}  // namespace detail

/// Like std::mutex. 32 bytes.
class mutex : public detail::basic_mutex {
 public:
  constexpr mutex() noexcept = default;
};

/// Like std::timed_mutex.
class timed_mutex : public detail::basic_mutex {
 public:
  constexpr timed_mutex() noexcept = default;

  /// False: it was not free in time.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& d,
                    detail::place where = detail::place::here()) {
    return try_lock() || lock_until_ns(detail::deadline_after(d), where);
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t,
                      detail::place where = detail::place::here()) {
    return try_lock() ||
           detail::wait_until_time(t, [&](std::uint64_t ns) { return lock_until_ns(ns, where); });
  }
};

/// Like std::recursive_timed_mutex. Cost uncontended: an atomic, and a call to know who is asking.
class recursive_timed_mutex {
 public:
  constexpr recursive_timed_mutex() noexcept = default;

  void lock(detail::place where = detail::place::here()) noexcept {
    if (again()) return;
    mutex_.lock(where);
    begin();
  }
  bool try_lock() noexcept {
    return enter([&] { return mutex_.try_lock(); });
  }
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& d,
                    detail::place where = detail::place::here()) {
    return enter([&] { return mutex_.try_lock_for(d, where); });
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t,
                      detail::place where = detail::place::here()) {
    return enter([&] { return mutex_.try_lock_until(t, where); });
  }
  void unlock(detail::place where = detail::place::here()) noexcept {
#ifndef NDEBUG
    if (owner_.load(std::memory_order_relaxed) != me())
      detail::mutex_misused("recursive mutex is unlocked by a thread that does not hold it", where);
#endif
    if (--depth_ != 0) return;
    owner_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock(where);
  }

 private:
  static const void* me() noexcept {
    const void* block = detail::this_block();
    return block != nullptr ? block : &outside_;
  }
  bool again() noexcept {
    // only the owner itself can find itself there
    if (owner_.load(std::memory_order_relaxed) != me()) return false;
    ++depth_;
    return true;
  }
  /// @p take: take mutex_, or give back false.
  template <class Take>
  bool enter(Take take) {
    if (again()) return true;
    if (!take()) return false;
    begin();
    return true;
  }
  void begin() noexcept {
    owner_.store(me(), std::memory_order_relaxed);
    depth_ = 1;
  }
  static inline thread_local char outside_ = 0;  // where there are no lightweight threads: the OS thread
  timed_mutex mutex_;
  std::atomic<const void*> owner_{nullptr};  // W who has the mutex, R all: is it me?
  std::uint32_t depth_ = 0;                  // of the owner
};

/// Like std::recursive_mutex.
class recursive_mutex : public recursive_timed_mutex {
 public:
  constexpr recursive_mutex() noexcept = default;
};

/// Like std::once_flag.
class once_flag {
 public:
  constexpr once_flag() noexcept = default;
  once_flag(const once_flag&) = delete;
  once_flag& operator=(const once_flag&) = delete;

 private:
  template <class F, class... Args>
  friend void call_once(once_flag& flag, F&& f, Args&&... args);
  static constexpr std::uint32_t running = 2, done = 4;
  /// True: the caller is to do it.
  bool begin(const detail::place& where) noexcept;
  void end(bool success) noexcept;
  detail::wait_list list_;
};

/// Like std::call_once: f(args...) once, whoever comes meanwhile waits for its end; if it throws, the next
/// one tries. Afterwards: one load.
template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args) {
  if ((flag.list_.word.load(std::memory_order_acquire) & once_flag::done) != 0) [[likely]]
    return;
  if (!flag.begin({"godwit::call_once", "call_once", 0})) return;
  struct finish {
    once_flag& flag;
    bool success = false;
    ~finish() { flag.end(success); }
  } at_end{flag};
  std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
  at_end.success = true;
}

}  // namespace godwit
