// condition_variable, condition_variable_any: like the standard's, but who waits is suspended and its worker
// goes on with other threads.
//
// First come, first woken. Rarely somebody comes back for nothing, as the standard allows: from a wait with a
// limit of time, or below a deadline; and when a stop_token that one waits with is asked to stop, all do. May
// be destroyed as soon as all that wait have been notified. Substrate threads (see mutex.hpp for elsewhere).
// docs/threads.md. Code: here and in src/sync/wait_list.cpp. Protocol: docs/protocols/park.md. Test:
// tests/threads/wait_test.cpp.
#pragma once

#include <godwit/detail/cancelled.hpp>
#include <godwit/detail/deadline.hpp>
#include <godwit/detail/wait_list.hpp>
#include <godwit/mutex.hpp>

#include <chrono>
#include <concepts>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

namespace godwit {

/// With any lock: std::unique_lock<godwit::timed_mutex>, std::shared_lock<godwit::shared_mutex>, one of the
/// program's own...
class condition_variable_any {
 public:
  condition_variable_any() noexcept = default;
  /// Lets those pass that were notified and have not left wait yet; may migrate the calling thread if there
  /// are any.
  ~condition_variable_any() {
    // WL6. Outside substrate threads the run was given up, and nobody will leave.
    while ((list_.word.load(std::memory_order_acquire) & ~detail::wait_list::lock_bit) != 0 &&
           list_.seems_empty() && detail::on_substrate_threads())
      detail::yield_thread();
  }
  condition_variable_any(const condition_variable_any&) = delete;
  condition_variable_any& operator=(const condition_variable_any&) = delete;

  /// One load if nobody waits.
  void notify_one() noexcept { list_.notify_one(); }
  void notify_all() noexcept { list_.notify_all(); }

  /// Let go of @p lock, wait for a notification, take @p lock again. May migrate the calling thread. Throws
  /// cancelled, with @p lock held, when a deadline of a scope around has come; waits with a time of their own
  /// do so as soon as the thread is cancelled.
  template <class Lock>
  void wait(Lock& lock, detail::place where = detail::place::here()) {
    const detail::stop_time stop = detail::when_to_stop();
    if (stop.at_ns != stop.never) [[unlikely]]
      return static_cast<void>(wait_until_ns(lock, stop.at_ns, where));
    detail::wait_node n;
    enlist(n);
    lock.unlock();
    list_.wait_listed(n, "condition variable", where);
    left();
    lock.lock();
  }
  template <class Lock, class Predicate>
  requires std::predicate<Predicate&>
  void wait(Lock& lock, Predicate done, detail::place where = detail::place::here()) {
    while (!done()) wait(lock, where);
  }

  template <class Lock, class Clock, class Duration>
  std::cv_status wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& t,
                            detail::place where = detail::place::here()) {
    const bool woken = wait_until_ns(lock, detail::deadline_after(t - Clock::now()), where);
    return woken || Clock::now() < t ? std::cv_status::no_timeout : std::cv_status::timeout;
  }
  template <class Lock, class Clock, class Duration, class Predicate>
  bool wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& t, Predicate done,
                  detail::place where = detail::place::here()) {
    while (!done())
      if (wait_until(lock, t, where) == std::cv_status::timeout) return done();
    return true;
  }
  template <class Lock, class Rep, class Period>
  std::cv_status wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& d,
                          detail::place where = detail::place::here()) {
    return wait_until_ns(lock, detail::deadline_after(d), where) ? std::cv_status::no_timeout
                                                                 : std::cv_status::timeout;
  }
  template <class Lock, class Rep, class Period, class Predicate>
  bool wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& d, Predicate done,
                detail::place where = detail::place::here()) {
    const std::uint64_t deadline = detail::deadline_after(d);
    while (!done())
      if (!wait_until_ns(lock, deadline, where)) return done();
    return true;
  }

  /// Until done(), or until @p stop is asked for; gives back done().
  template <class Lock, class Predicate>
  bool wait(Lock& lock, std::stop_token stop, Predicate done, detail::place where = detail::place::here()) {
    while (!done()) {
      if (stop.stop_requested()) return false;
      detail::wait_node n;
      enlist(n);
      {
        // Called at once if it was asked for meanwhile. Gone before left(): it touches the list.
        const std::stop_callback wake(stop, [this] { list_.notify_all(); });
        lock.unlock();
        list_.wait_listed(n, "condition variable", where);
      }
      left();
      lock.lock();
    }
    return true;
  }

 private:
  /// in the list's word: threads from enlisting to their last access. WL6
  static constexpr std::uint32_t inside = 2;
  void enlist(detail::wait_node& n) noexcept {
    list_.lock();
    list_.push(n);
    open_with_one_more();
  }
  void open_with_one_more() noexcept {
    list_.word.fetch_add(inside - detail::wait_list::lock_bit, std::memory_order_release);
  }
  /// The last access: from here on it may be destroyed.
  void left() noexcept { list_.word.fetch_sub(inside, std::memory_order_release); }
  /// True: notified, or it came back for nothing.
  template <class Lock>
  bool wait_until_ns(Lock& lock, std::uint64_t deadline_ns, const detail::place& where) {
    bool woken;
    {
      detail::timed_node n(list_, deadline_ns, true);
      list_.lock();
      const bool waits = n.state == detail::wait_state::idle;
      if (waits) list_.push(n);
      open_with_one_more();
      lock.unlock();
      woken = waits && list_.wait_listed(n, "condition variable", where);
    }
    left();  // after its timer has come to rest: expired takes the list's lock
    lock.lock();
    if (woken) return true;
    detail::throw_cancelled();
    return detail::steady_now_ns() < deadline_ns;
  }

  detail::wait_list list_;
};

/// With std::unique_lock<godwit::mutex>.
class condition_variable {
 public:
  condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  void notify_one() noexcept { any_.notify_one(); }
  void notify_all() noexcept { any_.notify_all(); }

  void wait(std::unique_lock<mutex>& lock, detail::place where = detail::place::here()) {
    any_.wait(lock, where);
  }
  template <class Predicate>
  requires std::predicate<Predicate&>
  void wait(std::unique_lock<mutex>& lock, Predicate done, detail::place where = detail::place::here()) {
    while (!done()) any_.wait(lock, where);
  }
  template <class Clock, class Duration>
  std::cv_status wait_until(std::unique_lock<mutex>& lock, const std::chrono::time_point<Clock, Duration>& t,
                            detail::place where = detail::place::here()) {
    return any_.wait_until(lock, t, where);
  }
  template <class Clock, class Duration, class Predicate>
  bool wait_until(std::unique_lock<mutex>& lock, const std::chrono::time_point<Clock, Duration>& t,
                  Predicate done, detail::place where = detail::place::here()) {
    return any_.wait_until(lock, t, std::move(done), where);
  }
  template <class Rep, class Period>
  std::cv_status wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& d,
                          detail::place where = detail::place::here()) {
    return any_.wait_for(lock, d, where);
  }
  template <class Rep, class Period, class Predicate>
  bool wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& d, Predicate done,
                detail::place where = detail::place::here()) {
    return any_.wait_for(lock, d, std::move(done), where);
  }

 private:
  condition_variable_any any_;
};

}  // namespace godwit
