// thread, jthread, create, this_thread: threads that begin later, like the standard's; substrate threads
// only.
//
// spawn (task.hpp) runs the child at once and lets others steal the caller; here the caller goes on, and the
// new thread begins when a worker has nothing else to do. Closures, arguments and results are moved and need
// no codec. An exception that leaves a thread comes out of its join. docs/threads.md. Code:
// src/sync/thread.cpp. Test: tests/threads/thread_test.cpp.
#pragma once

#include <godwit/detail/deadline.hpp>
#include <godwit/detail/park.hpp>
#include <godwit/detail/promise.hpp>
#include <godwit/policy.hpp>
#include <godwit/codec.hpp>
#include <godwit/task.hpp>

#include <chrono>
#include <compare>
#include <functional>
#include <iosfwd>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace godwit {

namespace detail {

template <class R, class F>
ref create_closure(priority level, F&& f) {
  using G = std::decay_t<F>;
  if constexpr (std::is_trivially_copyable_v<G> && alignof(G) <= 16) {
    return create_thread(&task_entries::closure<G, R>, std::addressof(f), sizeof(G), level);
  } else {
    boxed_callable<G> box(std::forward<F>(f));
    relocated<boxed_callable<G>> taken(box);
    const ref record =
        create_thread(&task_entries::closure<boxed_callable<G>, R>, taken.bytes(), sizeof box, level);
    taken.gone();
    return record;
  }
}

/// fn with its arguments bound, as one callable, to @p use.
template <class Use, class F, class... Args>
decltype(auto) with_bound(Use&& use, F&& fn, Args&&... args) {
  if constexpr (sizeof...(Args) == 0) {
    std::decay_t<F> own(std::forward<F>(fn));
    return use(std::move(own));
  } else {
    return use([fn = std::decay_t<F>(std::forward<F>(fn)),
                ... as = std::decay_t<Args>(std::forward<Args>(args))]() mutable -> decltype(auto) {
      return std::invoke(std::move(fn), std::move(as)...);
    });
  }
}

template <class F>
constexpr bool is_priority = std::is_same_v<std::remove_cvref_t<F>, priority>;

std::uint64_t this_thread_number() noexcept;
/// Suspends the calling thread; outside a run on substrate threads the OS thread. Throws cancelled.
void sleep_until_time(std::uint64_t deadline_ns, const place& where);
[[noreturn]] void not_joinable();
[[noreturn]] void joins_itself();
unsigned usable_cpus() noexcept;

}  // namespace detail

/// Start a thread that runs fn(args...) some time later, at any worker; gives back a future of its result.
/// fn, args and result may be of any movable type. Of high priority it begins, and goes on, before the normal
/// ones of the same worker. Cost: an object and a queue operation; with captures or arguments that are not
/// trivially copyable, one more allocation.
template <class F, class... Args>
auto create(priority level, F&& fn, Args&&... args) -> future<detail::result_of<F, Args...>> {
  using R = detail::result_of<F, Args...>;
  static_assert(!std::is_reference_v<R>,
                "godwit: a thread must not return a reference. Return a value, or a pointer");
  return detail::with_bound(
      [level](auto&& f) -> future<R> {
        return detail::future_access::of<R>(detail::create_closure<R>(level, std::move(f)));
      },
      std::forward<F>(fn), std::forward<Args>(args)...);
}
/// Of normal priority.
template <class F, class... Args>
requires(!detail::is_priority<F>) auto create(F&& fn, Args&&... args)
    -> future<detail::result_of<F, Args...>> {
  return create(priority::normal, std::forward<F>(fn), std::forward<Args>(args)...);
}

/// Like std::thread, but join throws what the thread threw (whoever does not join it sees it reported, as
/// with futures).
class thread {
 public:
  /// Names a thread that has not been joined. Ids of threads that have ended are used again.
  class id {
   public:
    constexpr id() noexcept = default;
    friend constexpr auto operator<=>(const id&, const id&) noexcept = default;
    template <class Char, class Traits>
    friend std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& out, id i) {
      return out << i.number_;
    }

   private:
    friend class thread;
    friend struct std::hash<id>;
    friend id this_thread_id() noexcept;
    constexpr explicit id(std::uint64_t n) noexcept : number_(n) {}
    std::uint64_t number_ = 0;
  };

  thread() noexcept = default;
  /// See create. What fn gives back is dropped.
  template <class F, class... Args>
  explicit thread(priority level, F&& fn, Args&&... args) {
    static_assert(std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>,
                  "godwit: a thread's callable must take its arguments as rvalues");
    record_ = detail::with_bound(
        [level](auto&& f) {
          if constexpr (std::is_void_v<decltype(std::move(f)())>)
            return detail::create_closure<void>(level, std::move(f));
          else
            return detail::create_closure<void>(
                level, [f = std::move(f)]() mutable { static_cast<void>(std::move(f)()); });
        },
        std::forward<F>(fn), std::forward<Args>(args)...);
  }
  /// Of normal priority.
  template <class F, class... Args>
  requires(!std::is_same_v<std::remove_cvref_t<F>, thread> &&
           !detail::is_priority<F>) explicit thread(F&& fn, Args&&... args)
      : thread(priority::normal, std::forward<F>(fn), std::forward<Args>(args)...) {}
  thread(thread&& other) noexcept : record_(std::exchange(other.record_, 0)) {}
  thread& operator=(thread&& other) noexcept {
    if (joinable()) std::terminate();
    record_ = std::exchange(other.record_, 0);
    return *this;
  }
  /// std::terminate if it is joinable, like std::thread.
  ~thread() {
    if (joinable()) std::terminate();
  }
  void swap(thread& other) noexcept { std::swap(record_, other.record_); }

  bool joinable() const noexcept { return record_ != 0; }
  id get_id() const noexcept { return id(record_); }

  /// Wait for its end. Throws what the thread threw; std::system_error if it is not joinable, or the calling
  /// thread itself. May migrate the calling thread.
  void join(detail::place where = detail::place::here()) {
    if (!joinable()) detail::not_joinable();
    if (detail::take_finished(record_)) {
      record_ = 0;
      return;
    }
    if (!detail::is_complete(record_) && record_ == detail::this_thread_number()) detail::joins_itself();
    const detail::ref record = std::exchange(record_, 0);
    const detail::payload p = detail::wait(record, where.file, where.function, where.line);
    if (p.kind != detail::outcome::value) detail::rethrow(record, p);
    detail::release(record);
  }
  /// It runs on; run still waits for it, and so does the end of the scope in which it began. Never waits.
  void detach() {
    if (!joinable()) detail::not_joinable();
    detail::leave_running(std::exchange(record_, 0));
  }

  /// Inside a run: its workers. Outside: the CPUs that a run would use.
  static unsigned hardware_concurrency() noexcept {
    const std::uint32_t workers = detail::hot_workers();
    return workers != 0 ? workers : detail::usable_cpus();
  }

 private:
  detail::ref record_ = 0;
};

inline void swap(thread& a, thread& b) noexcept { a.swap(b); }
inline thread::id this_thread_id() noexcept { return thread::id(detail::this_thread_number()); }

/// Like std::jthread: its destructor asks the thread to stop and joins it; an exception that arrives there
/// ends the program.
class jthread {
 public:
  using id = thread::id;

  jthread() noexcept : stop_(std::nostopstate) {}
  template <class F, class... Args>
  explicit jthread(priority level, F&& fn, Args&&... args) {
    if constexpr (std::is_invocable_v<std::decay_t<F>, std::stop_token, std::decay_t<Args>...>)
      thread_ = thread(level, std::forward<F>(fn), stop_.get_token(), std::forward<Args>(args)...);
    else
      thread_ = thread(level, std::forward<F>(fn), std::forward<Args>(args)...);
  }
  template <class F, class... Args>
  requires(!std::is_same_v<std::remove_cvref_t<F>, jthread> &&
           !detail::is_priority<F>) explicit jthread(F&& fn, Args&&... args)
      : jthread(priority::normal, std::forward<F>(fn), std::forward<Args>(args)...) {}
  jthread(jthread&&) noexcept = default;
  jthread& operator=(jthread&& other) noexcept {
    if (this != &other) {
      end();
      thread_ = std::move(other.thread_);
      stop_ = std::move(other.stop_);
    }
    return *this;
  }
  ~jthread() { end(); }
  void swap(jthread& other) noexcept {
    thread_.swap(other.thread_);
    stop_.swap(other.stop_);
  }

  bool joinable() const noexcept { return thread_.joinable(); }
  id get_id() const noexcept { return thread_.get_id(); }
  void join(detail::place where = detail::place::here()) { thread_.join(where); }
  void detach() { thread_.detach(); }
  std::stop_source get_stop_source() noexcept { return stop_; }
  std::stop_token get_stop_token() const noexcept { return stop_.get_token(); }
  bool request_stop() noexcept { return stop_.request_stop(); }
  static unsigned hardware_concurrency() noexcept { return thread::hardware_concurrency(); }

 private:
  void end() noexcept {
    if (!joinable()) return;
    stop_.request_stop();
    try {
      thread_.join();
    } catch (const cancelled&) {  // it has ended: that is all that is wanted
    }
  }
  std::stop_source stop_;
  thread thread_;
};

namespace this_thread {

/// Of the thread that runs (of spawned ones, too). Outside a run: id().
inline thread::id get_id() noexcept { return this_thread_id(); }
/// Let other threads run.
inline void yield() { godwit::yield(); }

/// Throws cancelled as soon as the thread is: a sleep in a scope ends with that.
template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& d, detail::place where = detail::place::here()) {
  if (d > d.zero()) detail::sleep_until_time(detail::deadline_after(d), where);
}
template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration>& t,
                 detail::place where = detail::place::here()) {
  while (Clock::now() < t) detail::sleep_until_time(detail::deadline_after(t - Clock::now()), where);
}

}  // namespace this_thread

}  // namespace godwit

template <>
struct std::hash<godwit::thread::id> {
  std::size_t operator()(godwit::thread::id i) const noexcept {
    return std::hash<std::uint64_t>()(i.number_ >> 6);
  }
};
