// The serial sort.

#include <memory>

#include "cilksort.hpp"

namespace cilksort {

std::vector<int> right;

namespace {

void sort(int* a, int* other, std::size_t n, std::size_t leaf) {
  if (n <= leaf) return sort_leaf(a, n);
  const std::size_t q = n / 4, h = 2 * q;
  sort(a, other, q, leaf);
  sort(a + q, other + q, q, leaf);
  sort(a + h, other + h, q, leaf);
  sort(a + h + q, other + h + q, n - h - q, leaf);
  merge_leaf(a, q, a + q, q, other);
  merge_leaf(a + h, q, a + h + q, n - h - q, other + h);
  merge_leaf(other, h, other + h, n - h, a);
}

template <class F>
outcome twice(const settings& s, const F& sort_all) {
  const auto a = std::make_unique_for_overwrite<int[]>(s.size),
             other = std::make_unique_for_overwrite<int[]>(s.size);
  outcome out;
  for (parts::phase* p : {&out.first, &out.second}) {
    for (std::uint64_t i = 0; i < s.size; ++i) a[i] = element(i, s.seed);
    *p = parts::measured_plain([&] { sort_all(a.get(), other.get()); });
    for (std::uint64_t i = 0; i < s.size; ++i) out.wrong += a[i] != right[i];
  }
  return out;
}

}  // namespace

outcome serial(const settings& s) {
  return twice(s, [&](int* a, int* other) { sort(a, other, s.size, s.sort_leaf); });
}
outcome by_library(const settings& s) {
  return twice(s, [&](int* a, int*) { std::sort(a, a + s.size); });
}

}  // namespace cilksort
