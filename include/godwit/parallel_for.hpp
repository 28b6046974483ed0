// parallel_for and spawn_n: loops whose turns run in parallel.
//
//   gw::parallel_for(0, n, [=](int i) { ... });              // numbers
//   gw::parallel_for(v, [](double& x) { x = 2 * x; });       // a range, or two iterators
//   gw::future<void> all = gw::spawn_n(n, [=](int i) { ... });  // and meanwhile something else
//
// parallel_for is for_each (algorithm/for_each.hpp, ordinary.hpp): what is said there of memory, functions,
// grain and exceptions holds. Tests: tests/algorithm/ordinary_test.cpp.
#pragma once

#include <godwit/algorithm/ordinary.hpp>

#include <concepts>
#include <cstdint>
#include <utility>

namespace godwit {

/// f(i) for first <= i < last, in any order and in parallel. Throws what the leftmost i that failed threw,
/// when all others have ended. Cost: one call for each i, one spawn for each leaf of some hundred of them.
template <std::integral A, std::integral B, class F>
[[gnu::always_inline]] inline void parallel_for(A first, B last, F f, grain g = {}) {
  godwit::for_each(indices(first, last), std::move(f), g);
}
/// f(x) for the elements of a range, of [first, last), or of global memory: for_each's arguments.
template <class R, class... More>
requires(!std::integral<std::remove_cvref_t<R>>)
    [[gnu::always_inline]] inline void parallel_for(R&& r, More&&... more) {
  godwit::for_each(std::forward<R>(r), std::forward<More>(more)...);
}

/// Create threads that run f(0), f(1) ... f(n - 1), each with its own copy of f; one future for all of them,
/// which has what the first i that failed threw. They are split lazily: a thief takes half of what is left.
/// Cost: a spawn for each i.
template <std::integral N, class F>
[[nodiscard]] future<void> spawn_n(N n, F f) {
  return godwit::spawn([n, f = std::move(f)]() mutable {
    const auto body = [f = std::move(f)](std::uint64_t i) {
      F own(f);
      std::invoke(own, static_cast<N>(i));
    };
    if (n > 0) detail::for_blocks(0, static_cast<std::uint64_t>(n), body);
  });
}

}  // namespace godwit
