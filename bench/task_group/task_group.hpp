// Many small threads that are waited for together: added by a loop, or by a recursion in halves. Each does
// some steps of a generator of random numbers; the sum of the results is checked.
#pragma once

#include <cstdint>

namespace task_group {

/// What member i computes; @p steps of two ns or so.
[[gnu::always_inline]] inline std::uint64_t member(std::uint64_t i, int steps) {
  std::uint64_t x = i * 0x9e3779b97f4a7c15u + 1;
  for (int s = 0; s < steps; ++s) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

struct problem {
  std::uint64_t members;
  int steps;
};

std::uint64_t calls(problem p);
// In godwit, in a run. Members write their results to memory that all workers share.
std::uint64_t by_loop(problem p);       ///< one gw::task_group
std::uint64_t by_recursion(problem p);  ///< spawn and join, no group
std::uint64_t by_group(problem p);      ///< one gw::group, by a loop
std::uint64_t by_halves(problem p);     ///< a gw::task_group in each of the recursion's calls
std::uint64_t tbb(problem p, unsigned workers);
std::uint64_t openmp(problem p, unsigned workers);

}  // namespace task_group
