// Coroutines: co_await of a future in any coroutine, and coroutines that return a future. Substrate threads.
//
//   gw::future<int> both(gw::future<int> a) {     // begins at once, in the calling thread
//     int x = co_await std::move(a);              // not there yet: the caller goes on, and keeps its worker
//     co_return x + co_await gw::spawn(other);
//   }
//   int r = both(gw::create(first)).join();       // an ordinary thread may wait for it
//
// A coroutine that had to wait goes on in a thread of its own, at any worker: so it may spawn, join and lock,
// and no stack grows however often it waits. There is no type of our own for coroutines: a future is what a
// coroutine needs to be joined by threads. docs/coroutines.md. Test: tests/threads/coroutine_test.cpp.
#pragma once

#if !defined(__cpp_impl_coroutine)
#error "godwit/coroutine.hpp needs a compiler with the coroutines of C++20: gcc 11, clang 15, or later"
#endif

#include <godwit/detail/promise.hpp>
#include <godwit/thread.hpp>

#include <atomic>
#include <coroutine>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace godwit {

namespace detail {

inline constexpr place at_await{"a coroutine", "co_await", 0};

// What a coroutine waits for.
template <class T>
void wait_for(future<T>& f) {
  future_access::settle(f, at_await);
}
template <class T>
T take_from(future<T>& f) {
  return f.join(at_await);
}
template <class T>
void wait_for(shared_future<T>& f) {
  static_cast<void>(wait(future_access::record(f), at_await.file, at_await.function, at_await.line));
}
template <class T>
T take_from(shared_future<T>& f) {
  return f.get(at_await);
}

/// A coroutine that waits, and the thread that waits for it. Whoever leaves last frees this.
template <class Future>
struct coroutine_wait {
  enum state : std::uint32_t { waits, goes_on, destroyed };

  Future future;
  std::coroutine_handle<> coroutine;
  std::atomic<std::uint32_t> now{waits};  // W the thread, once; who destroys the coroutine, once

  void run() {
    wait_for(future);
    if (now.exchange(goes_on, std::memory_order_acq_rel) == destroyed)
      delete this;
    else
      coroutine.resume();
  }
};

template <class Future>
class future_awaiter {
 public:
  explicit future_awaiter(Future&& f) noexcept : future_(std::move(f)) {}
  future_awaiter(const future_awaiter&) = delete;
  ~future_awaiter() {
    using wait = coroutine_wait<Future>;
    if (wait_ != nullptr && wait_->now.exchange(wait::destroyed, std::memory_order_acq_rel) != wait::waits)
      delete wait_;
  }

  bool await_ready() const noexcept { return future_.ready(); }
  void await_suspend(std::coroutine_handle<> h) {
    need_substrate_threads("co_await of a future that is not ready");
    wait_ = new coroutine_wait<Future>{std::move(future_), h};
    auto waits = [w = wait_] { return w->run(), always_begins(); };
    // from here on the coroutine may go on elsewhere, and this be gone
    create_detached(&task_entries::closure<decltype(waits), always_begins>, &waits, sizeof waits);
  }
  decltype(auto) await_resume() { return take_from(wait_ != nullptr ? wait_->future : future_); }

 private:
  Future future_;
  coroutine_wait<Future>* wait_ = nullptr;
};

/// Of a coroutine that returns future<T>.
template <class T>
class future_promise_base {
 public:
  future_promise_base() : record_(make_promised()) {}
  future_promise_base(const future_promise_base&) = delete;
  ~future_promise_base() {
    if (record_ == 0) return;
    try {
      throw std::runtime_error("godwit: a coroutine was destroyed before it had a result");
    } catch (...) {
      unhandled_exception();
    }
    keep_promise(record_);
  }

  future<T> get_return_object() noexcept { return future_access::of<T>(record_); }
  std::suspend_never initial_suspend() const noexcept { return {}; }
  /// What the coroutine owns is gone before its result can be had.
  auto final_suspend() noexcept {
    struct end : std::suspend_always {
      ref record;
      void await_suspend(std::coroutine_handle<> h) const noexcept {
        const ref mine = record;
        h.destroy();
        keep_promise(mine);
      }
    };
    return end{{}, std::exchange(record_, 0)};
  }
  void unhandled_exception() noexcept { publish_error(record_, capture_exception()); }

 protected:
  ref record_;
};
template <class T>
struct future_promise : future_promise_base<T> {
  template <class U>
  requires std::is_convertible_v<U, T>
  void return_value(U&& value) {
    T result(std::forward<U>(value));
    publish_value(this->record_, result);
  }
};
template <>
struct future_promise<void> : future_promise_base<void> {
  void return_void() const noexcept {}
};

}  // namespace detail

/// Wait for the thread in a coroutine of any type, give back its result or throw what it threw. A future that
/// is ready costs what join costs; else a thread that waits (two small allocations and its stack) and resumes
/// the coroutine when it is there, at any worker. Outside substrate threads only futures that are ready can
/// be awaited: else it ends the run with a message. A coroutine that waits may be destroyed (what it waits
/// for runs on, and the result is dropped), but not while it is being resumed.
template <class T>
auto operator co_await(future<T>&& f) noexcept {
  return detail::future_awaiter<future<T>>(std::move(f));
}
/// The same; gives back a copy.
template <class T>
auto operator co_await(shared_future<T> f) noexcept {
  return detail::future_awaiter<shared_future<T>>(std::move(f));
}

}  // namespace godwit

/// A coroutine that returns a future begins at once, in the calling thread. Its result is what it returns
/// with co_return, or the exception that leaves it. If it is destroyed before that, join throws
/// std::runtime_error. Inside a run only. Cost: the coroutine's frame and a record.
template <class T, class... Args>
struct std::coroutine_traits<godwit::future<T>, Args...> {
  using promise_type = godwit::detail::future_promise<T>;
};
