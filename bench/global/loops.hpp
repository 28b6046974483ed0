// Parallel loops over blocks with sums in a fixed order. Used by graph, spmv, utsmem, nbody.
#pragma once

#include <algorithm>
#include <cstdint>
#include <godwit/godwit.hpp>
#include <type_traits>

namespace bench {

/// f(block) for every block in [first, last), each a part of a thread of its own; what f gives back is added
/// up in an order that depends on the numbers only, so sums of doubles are the same on every schedule. f:
/// plain captures.
template <class F>
auto each_block(std::uint64_t first, std::uint64_t last, F f) -> std::invoke_result_t<F&, std::uint64_t> {
  using R = std::invoke_result_t<F&, std::uint64_t>;
  if (last - first == 1) return f(first);
  const std::uint64_t middle = first + (last - first) / 2;
  auto left = godwit::spawn([=] { return each_block(first, middle, f); });
  if constexpr (std::is_void_v<R>) {
    each_block(middle, last, f);
    left.join();
  } else {
    const R right = each_block(middle, last, f);
    R sum = left.join();
    sum += right;
    return sum;
  }
}

/// f(from, to) for [0, n) cut into pieces of @p grain, the last one shorter.
template <class F>
auto each_piece(std::uint64_t n, std::uint64_t grain, F f)
    -> std::invoke_result_t<F&, std::uint64_t, std::uint64_t> {
  using R = std::invoke_result_t<F&, std::uint64_t, std::uint64_t>;
  if (n == 0) return R();
  return each_block(0, (n + grain - 1) / grain, [n, grain, f](std::uint64_t b) mutable {
    return f(b * grain, std::min(n, (b + 1) * grain));
  });
}

}  // namespace bench
