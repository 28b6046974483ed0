// Cilksort: sort by quarters, then merge them in parallel; the example of the Cilk distribution, on global
// memory.
//
// Serial and ours do the same: quarters down to a leaf, which std::sort sorts; two merges into the other
// array, one merge back. The serial one merges in one loop, which is the best it can do; ours splits long
// merges where the halves of the longer input end. Leaves and merge loops are compiled once. Document:
// docs/results/README.md. Test: bench/CMakeLists.txt (bench.global_cilksort).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../parts.hpp"

namespace cilksort {

struct settings {
  std::uint64_t size = 0;
  std::uint64_t sort_leaf = 0, merge_leaf = 0;  ///< elements
  std::uint64_t seed = 1;
};

/// kernels.cpp
void sort_leaf(int* a, std::size_t n);
void merge_leaf(const int* a, std::size_t n, const int* b, std::size_t m, int* to);
inline int element(std::uint64_t i, std::uint64_t seed) {
  return static_cast<int>(parts::scrambled(i, seed));
}

/// What the sorted array must be; made before the run, so that every worker has it.
extern std::vector<int> right;

struct outcome {
  parts::phase first;   ///< the other array has not been touched by anybody
  parts::phase second;  ///< fresh numbers in the same memory
  std::uint64_t wrong = 0;
};

outcome serial(const settings& s);
/// std::sort of the same numbers, for comparison.
outcome by_library(const settings& s);
/// As a root thread, under @p policy.
outcome (*ours_under(const std::string& policy))(const settings& s);

}  // namespace cilksort
