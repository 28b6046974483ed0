// Heat: Jacobi's iteration on a square grid, each point the average of its four neighbours; the edge stays.
//
// Two grids in turn. In global memory their rows are dealt out in blocks, a leaf computes some rows from
// checked-out ones. All variants call the same compiled loop; results are compared bit by bit. Document:
// docs/results/README.md. A version for readers: examples/heat.cpp. Test: bench/CMakeLists.txt
// (bench.global_heat).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../parts.hpp"

namespace heat {

struct settings {
  std::uint64_t side = 0;  ///< points, with the edge
  int steps = 0;
  std::uint64_t rows = 0;  ///< in a leaf
  bool near = true;
};

/// kernels.cpp: @p count rows of @p side points to @p to, from as many and one above and one below at @p
/// from.
void relax(const double* from, double* to, std::size_t side, std::size_t count) noexcept;
/// Row i at the beginning.
void begin(double* row, std::size_t side, std::size_t i) noexcept;

/// The grid after all steps; made before the run, so that every worker has it.
extern std::vector<double> right;

struct outcome {
  parts::phase first;  ///< one step; grids have been filled before, by whoever came
  parts::phase steps;  ///< the others
  std::uint64_t wrong = 0;
};

/// Plain memory, one thread or several of std::thread with equal parts of the rows.
outcome plain(const settings& s, unsigned threads);
/// As a root thread.
outcome ours(const settings& s);

}  // namespace heat
