// What spawn and invoke answer to a callable that returns a reference: one sentence. Their own overloads
// would first need a place for the result, and compilers list all that such a place cannot be. Included by
// policy.hpp, which godwit.hpp includes. Tests: tests/compile_fail/result_reference*.cpp.
#pragma once

#include <godwit/task.hpp>

#include <type_traits>

namespace godwit {

namespace detail {

template <class F, class... Args>
concept returns_reference = std::is_reference_v<std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>>;

template <class R>
constexpr void require_value() {
  static_assert(!std::is_reference_v<R>,
                "godwit: a thread must not return a reference: what it refers to stays behind when threads "
                "migrate. Return a value");
}

}  // namespace detail

template <class F, class... Args>
requires detail::returns_reference<F, Args...>
auto spawn(F&&, Args&&...) {
  using R = detail::result_of<F, Args...>;
  detail::require_value<R>();
  return future<std::remove_cvref_t<R>>();
}

template <class... F>
requires(detail::returns_reference<F> || ...) auto invoke(F&&...) {
  (detail::require_value<std::invoke_result_t<std::decay_t<F>>>(), ...);
  return std::tuple<detail::slot_type<std::remove_cvref_t<std::invoke_result_t<std::decay_t<F>>>>...>();
}

}  // namespace godwit
