// Sum of a global array, and the four kernels of McCalpin's STREAM: how much of the memory's bandwidth is
// left?
//
// The same compiled kernels run over private memory in one thread and in two, and over global memory. The
// first pass over fresh memory, which is page faults mostly, is measured apart from those that follow.
// Document: docs/results/README.md. Test: bench/CMakeLists.txt (bench.global_stream).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "../parts.hpp"

namespace stream {

/// kernels.cpp, compiled once for all.
double sum(const double* a, std::size_t n) noexcept;
void copy(const double* a, double* c, std::size_t n) noexcept;
void scale(const double* c, double* b, std::size_t n) noexcept;
void add(const double* a, const double* b, double* c, std::size_t n) noexcept;
void triad(const double* b, const double* c, double* a, std::size_t n) noexcept;
constexpr double factor = 3.0;

enum kernel : int { k_sum, k_copy, k_scale, k_add, k_triad, kernels };
constexpr const char* names[kernels] = {"sum", "copy", "scale", "add", "triad"};
/// Words that a kernel reads or writes per element.
constexpr double words[kernels] = {1, 2, 2, 3, 3};

struct settings {
  std::uint64_t size = 0;         ///< doubles to be summed up
  std::uint64_t stream_size = 0;  ///< in each of the three arrays of STREAM
  std::uint64_t grain = 0;
  int times = 5;  ///< passes after the first
  bool near = true;
};

struct outcome {
  parts::phase first;  ///< filling the array that is summed up
  parts::passes of[kernels];
  double total = 0;       ///< of the sum kernel
  std::uint64_t bad = 0;  ///< elements of STREAM's arrays that are wrong
};

/// Element i before: exact in any order of addition.
inline double element(std::uint64_t i) noexcept { return static_cast<double>(i & 1023); }
double right_total(std::uint64_t size);
/// The values of a, b, c after @p times rounds of the four kernels, all elements alike.
struct triple {
  double a = 1, b = 2, c = 0;
};
triple right_values(int times);

/// Threads of the language, as many as said, each with an equal part; 1: no threads.
outcome plain(const settings& s, unsigned threads);
/// As a root thread.
outcome ours(const settings& s);

}  // namespace stream
