// Quicksort of 32-bit integers: the same partition and the same leaves in all variants, a task per part of
// more than `leaf` elements. M7 of the capabilities (Evaluation of user-level threads: quicksort of 2 M
// elements).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace quicksort {

inline constexpr std::ptrdiff_t leaf = 512;

/// Hoare's partition around the median of three; gives back the begin of the upper part, both parts are not
/// empty.
inline std::uint32_t* partition(std::uint32_t* first, std::uint32_t* last) {
  std::uint32_t a = *first, b = first[(last - first) / 2], c = last[-1];
  const std::uint32_t pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
  std::uint32_t *i = first, *j = last - 1;
  for (;;) {
    while (*i < pivot) ++i;
    while (pivot < *j) --j;
    if (i >= j) return j + 1;
    std::swap(*i++, *j--);
  }
}

std::vector<std::uint32_t> input(std::size_t n);
/// Sorted, and with the sum of input(n).
bool is_right(const std::vector<std::uint32_t>& v);

void calls(std::uint32_t* first, std::uint32_t* last);
void godwit(std::uint32_t* first, std::uint32_t* last);
void tbb(std::uint32_t* first, std::uint32_t* last, unsigned workers);
void openmp(std::uint32_t* first, std::uint32_t* last, unsigned workers);
/// A std::thread for the lower part as long as @p workers allow.
void std_threads(std::uint32_t* first, std::uint32_t* last, unsigned workers);

void lace(std::uint32_t* first, std::uint32_t* last,
          unsigned workers);  ///< where it was found, as the next one
void libfork(std::uint32_t* first, std::uint32_t* last, unsigned workers);

struct library {
  std::string name;
  void (*sort)(std::uint32_t* first, std::uint32_t* last, unsigned workers);
};
/// Other libraries that were found: of threads, Lace, libfork.
std::vector<library> libraries();

}  // namespace quicksort
