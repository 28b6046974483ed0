// Sparse matrix-vector products, y = A x, with A in compressed rows: the 5-point Laplacian of a square grid,
// and rows of random length and places.
//
// A row is a function of its number, so every schedule makes the same matrix, and products add up in the
// order of the row: the results are the serial ones bit by bit. A is scaled so that its largest row sum is at
// most 1: vectors stay in range however often it is applied. Document: docs/performance.md. Tests:
// bench.global_spmv, mpi.global_spmv (bench/CMakeLists.txt, tests/bench).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace spmv {

enum class kind { poisson, random };

struct problem {
  kind what = kind::poisson;
  std::uint64_t rows = 0;      ///< poisson: side * side
  std::uint64_t side = 0;      ///< poisson: of the grid
  std::uint32_t per_row = 16;  ///< random: at most twice that
  std::uint64_t seed = 1;
  unsigned times = 20;  ///< products, each of the last one's result
};

inline constexpr std::uint32_t most_per_row = 256;

/// A row as it is made.
struct row {
  std::uint32_t n = 0;
  std::uint32_t columns[most_per_row];
  double values[most_per_row];
};

inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline void make_poisson(const problem& p, std::uint64_t i, row& r) {
  r.n = 0;
  const auto add = [&](std::uint64_t column, double value) {
    r.columns[r.n] = static_cast<std::uint32_t>(column);
    r.values[r.n++] = value / 8;
  };
  const std::uint64_t x = i % p.side, y = i / p.side;
  if (y > 0) add(i - p.side, -1);
  if (x > 0) add(i - 1, -1);
  add(i, 4);
  if (x + 1 < p.side) add(i + 1, -1);
  if (y + 1 < p.side) add(i + p.side, -1);
}

inline void make_random(const problem& p, std::uint64_t i, row& r) {
  const std::uint64_t state = mixed(p.seed * 0x2545f4914f6cdd1du + i);
  r.n = 1 + static_cast<std::uint32_t>(state % (2 * p.per_row - 1));
  for (std::uint32_t k = 0; k < r.n; ++k)
    r.columns[k] = static_cast<std::uint32_t>(mixed(state + k) % p.rows);
  std::sort(r.columns, r.columns + r.n);
  r.n = static_cast<std::uint32_t>(std::unique(r.columns, r.columns + r.n) - r.columns);
  for (std::uint32_t k = 0; k < r.n; ++k)
    r.values[k] = (static_cast<double>(mixed(state ^ r.columns[k]) >> 11) * 0x1p-52 - 1) / r.n;
}

inline void make_row(const problem& p, std::uint64_t i, row& r) {
  if (p.what == kind::poisson)
    make_poisson(p, i, r);
  else
    make_random(p, i, r);
}

/// Element i of the vector to begin with.
inline double first(const problem& p, std::uint64_t i) {
  return static_cast<double>(mixed(p.seed ^ ~i) >> 11) * 0x1p-53;
}

struct plain_matrix {
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint32_t> columns;
  std::vector<double> values;
};

plain_matrix build_serial(const problem& p);
/// A^times x.
std::vector<double> multiply_serial(const plain_matrix& a, std::vector<double> x, unsigned times);

}  // namespace spmv
