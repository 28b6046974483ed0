// Structured cancellation: a request to stop that every thread below a scope sees, and a scope that ends when
// nothing is left below it. docs/cancel.md; protocol: docs/protocols/cancel.md. Tests:
// tests/api/cancel_test.cpp, race_test.cpp.
#pragma once

#include <godwit/detail/cancelled.hpp>
#include <godwit/detail/deadline.hpp>
#include <godwit/task.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>

namespace godwit {

namespace detail {

/// What a scope is known by. Bytes.
struct scope_handle {
  ref node = 0;
  std::uint64_t identity = 0;
};
/// The calling thread enters a scope. @p deadline_ns: cancelled so much later; 0: by request only.
scope_handle enter_scope(bool shields, std::uint64_t after_ns);
/// It leaves its innermost scope, and waits for what is below. May migrate.
void leave_scope(const scope_handle& scope, const place& where) noexcept;
bool request_cancel(const scope_handle& scope) noexcept;
bool cancel_requested(const scope_handle& scope) noexcept;
/// Would the calling thread be cancelled if it were not in @p scope, its innermost?
bool cancelled_around(const scope_handle& scope) noexcept;
/// The first of those that ask for it gets it, and cancels the others.
bool win_race(const scope_handle& scope, std::uint32_t number) noexcept;
std::uint32_t race_winner(const scope_handle& scope) noexcept;

/// For callbacks on OS threads that are no workers: substrate threads only.
struct scope_in_place {
  const void* site;
  scope_handle scope;
  void operator()() const noexcept;
};
scope_in_place in_place(const scope_handle& scope);

template <class R>
using maybe = std::conditional_t<std::is_void_v<R>, bool, std::optional<R>>;

}  // namespace detail

/// Names a scope, for whoever is to cancel it. A few bytes that may be copied, captured and sent anywhere.
/// The scope must not have ended.
class cancel_token {
 public:
  cancel_token() noexcept = default;
  /// As cancel_scope::cancel.
  void cancel() const noexcept { static_cast<void>(detail::request_cancel(scope_)); }
  bool cancel_requested() const noexcept { return detail::cancel_requested(scope_); }

 private:
  friend class cancel_scope;
  explicit cancel_token(const detail::scope_handle& scope) noexcept : scope_(scope) {}
  detail::scope_handle scope_;
};

/// Everything that the calling thread does until the end of the object's life, and all threads that it and
/// they create meanwhile, can be cancelled as one. A local variable: scopes end in the reverse order.
/// Cost: an object, and at each steal and suspension below an atomic operation; a spawn costs nothing.
class cancel_scope {
 public:
  explicit cancel_scope(detail::place where = detail::place::here())
      : scope_(detail::enter_scope(false, 0)), where_(where) {}
  /// Cancelled when @p stop is requested, from whatever thread. Substrate threads only: else the run ends
  /// with a message.
  explicit cancel_scope(std::stop_token stop, detail::place where = detail::place::here())
      : scope_(detail::enter_scope(false, 0)), where_(where) {
    on_stop_.emplace(std::move(stop), detail::in_place(scope_));
  }
  /// Cancelled by itself when @p time is over.
  template <class Rep, class Period>
  explicit cancel_scope(const std::chrono::duration<Rep, Period>& time,
                        detail::place where = detail::place::here())
      : scope_(detail::enter_scope(
            false, static_cast<std::uint64_t>(std::max<std::int64_t>(
                       1, std::chrono::ceil<std::chrono::nanoseconds>(
                              std::min<std::chrono::duration<double>>(time, std::chrono::hours(1 << 20)))
                              .count())))),
        where_(where) {}
  /// Waits for all threads below that have not ended, cancelled or not. May migrate the calling thread.
  ~cancel_scope() {
    on_stop_.reset();
    detail::leave_scope(scope_, where_);
  }
  cancel_scope(const cancel_scope&) = delete;
  cancel_scope& operator=(const cancel_scope&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

  /// Ask all threads below to stop: each of them gets `cancelled` at its next spawn, join or yield, and those
  /// that have not begun do not. By any thread that may refer to the object. Comes back at once. Cost: one
  /// store to each worker of the host, and a message to each other host.
  void cancel() noexcept { static_cast<void>(detail::request_cancel(scope_)); }
  bool cancel_requested() const noexcept { return detail::cancel_requested(scope_); }
  cancel_token token() const noexcept { return cancel_token(scope_); }

  /// f() in the calling thread, and its result; nothing (for void: false) if it was stopped because this
  /// scope was cancelled. What else f throws is passed on, and so is `cancelled` if it came from a scope
  /// further out.
  template <class F>
  auto run(F&& f) -> detail::maybe<std::invoke_result_t<F>> {
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
        std::forward<F>(f)();
        return true;
      } else {
        return std::forward<F>(f)();
      }
    } catch (const cancelled&) {
      if (!cancel_requested() || detail::cancelled_around(scope_)) throw;
    }
    return {};
  }

 private:
  detail::scope_handle scope_;
  detail::place where_;
  std::optional<std::stop_callback<detail::scope_in_place>> on_stop_;
};

/// A scope in which no request from further out is seen: for code that is noexcept, and for cleaning up. Its
/// end waits like that of every scope. Scopes inside can be cancelled.
class cancel_shield {
 public:
  explicit cancel_shield(detail::place where = detail::place::here())
      : scope_(detail::enter_scope(true, 0)), where_(where) {}
  ~cancel_shield() { detail::leave_scope(scope_, where_); }
  cancel_shield(const cancel_shield&) = delete;
  cancel_shield& operator=(const cancel_shield&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 private:
  detail::scope_handle scope_;
  detail::place where_;
};

namespace detail {
/// @p value as a thread's result: it follows the calling thread where that waits.
template <class T>
future<T> as_result(T value) {
  future<T> f = future_access::make<T>();
  new (future_access::room(f)) T(std::move(value));
  future_access::state(f) = in_frame;
  if constexpr (!is_plain_result<T>) future_access::link(f);
  return f;
}
}  // namespace detail

/// f() in a scope that is cancelled when @p time is over: as cancel_scope::run. The time is looked at where
/// cancellation is.
template <class Rep, class Period, class F>
auto with_deadline(const std::chrono::duration<Rep, Period>& time, F&& f,
                   detail::place where = detail::place::here()) {
  future<detail::maybe<std::invoke_result_t<F>>> result;
  {
    cancel_scope scope(time, where);
    result = detail::as_result(scope.run(std::forward<F>(f)));
  }
  return result.join(where);
}
template <class Clock, class Duration, class F>
auto with_deadline(const std::chrono::time_point<Clock, Duration>& until, F&& f,
                   detail::place where = detail::place::here()) {
  return with_deadline(until - Clock::now(), std::forward<F>(f), where);
}

namespace detail {

/// Threads of a race. Those that are not asked for are dropped without a word.
template <class R>
struct entrant {
  future<R> result;
  ~entrant() { forget(); }
  void wait(const place& where) {
    if (result.valid()) future_access::settle(result, where);
  }
  void forget() noexcept {
    const ref state = future_access::state(result);
    if (state != no_state && state != in_frame) release(future_access::take_record(result));
  }
};

template <class R, std::size_t... I, class... F>
R race_of(std::index_sequence<I...>, const place& where, F&&... f) {
  std::tuple<entrant<std::invoke_result_t<std::decay_t<F>>>...> all;
  std::uint32_t first = 0;
  {
    const scope_handle scope = enter_scope(false, 0);
    const auto enter = [&](auto& as, std::uint32_t number, auto&& callable) {
      as.result = spawn([scope, number,
                         callable = std::decay_t<decltype(callable)>(
                             std::forward<decltype(callable)>(callable))]() mutable {
        using T = std::invoke_result_t<std::decay_t<decltype(callable)>>;
        if constexpr (std::is_void_v<T>) {
          std::move(callable)();
          win_race(scope, number);
        } else {
          T result = std::move(callable)();
          win_race(scope, number);
          return result;
        }
      });
    };
    try {
      (enter(std::get<I>(all), I + 1, std::forward<F>(f)), ...);
    } catch (const cancelled&) {  // one has won already, or nobody is to
    } catch (...) {
      request_cancel(scope);
      leave_scope(scope, where);
      throw;
    }
    (std::get<I>(all).wait(where), ...);
    first = race_winner(scope);
    leave_scope(scope, where);
  }
  std::optional<slot_type<R>> won;
  const auto take = [&](auto& from) {
    if constexpr (std::is_void_v<R>) {
      from.result.join(where);
      won.emplace();
    } else {
      won.emplace(from.result.join(where));
    }
  };
  if (first != 0) {
    ((first == I + 1 ? take(std::get<I>(all)) : void()), ...);
  } else {
    const auto fail = [&](auto& from) {
      if (!from.result.valid()) return;
      try {
        from.result.join(where);
      } catch (const cancelled&) {
      }
    };
    (fail(std::get<I>(all)), ...);
    throw cancelled();
  }
  if constexpr (!std::is_void_v<R>) return std::move(*won);
}

}  // namespace detail

/// Run all callables as threads; the first one that gives back a result wins, the others are cancelled. Gives
/// back the winner's result, in their common type, when all have ended. If all fail, it throws the exception
/// of the leftmost that failed by another one than `cancelled`. The callables are copied or moved into the
/// threads; results must be migratable.
template <class... F>
auto race(F&&... f) {
  static_assert(sizeof...(F) > 0, "godwit::race needs at least one callable");
  using R = std::common_type_t<std::invoke_result_t<std::decay_t<F>>...>;
  static constexpr detail::place where{"godwit::race", "race", 0};
  return detail::race_of<R>(std::index_sequence_for<F...>{}, where, std::forward<F>(f)...);
}

}  // namespace godwit
