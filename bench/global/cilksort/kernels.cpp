// Leaves: std::sort, and a merge whose inner loop has no branch that depends on the numbers.

#include <cstring>

#include "cilksort.hpp"

namespace cilksort {

void sort_leaf(int* a, std::size_t n) { std::sort(a, a + n); }

void merge_leaf(const int* a, std::size_t n, const int* b, std::size_t m, int* to) {
  const int *const a_end = a + n, *const b_end = b + m;
  while (a != a_end && b != b_end) {
    const int x = *a, y = *b;
    const bool second = y < x;
    *to++ = second ? y : x;
    a += !second;
    b += second;
  }
  std::memcpy(to, a, static_cast<std::size_t>(a_end - a) * sizeof(int));
  to += a_end - a;
  std::memcpy(to, b, static_cast<std::size_t>(b_end - b) * sizeof(int));
}

}  // namespace cilksort
