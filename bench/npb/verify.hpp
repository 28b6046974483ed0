// The problem sizes of NPB's classes S, W and A, and what their results must be: official values with the
// official tolerances. Test: tests/bench/npb_verify_test.cpp.
#pragma once

#include <array>
#include <complex>
#include <cstdint>

namespace npb {

/// Class @p c of a benchmark. Throws std::invalid_argument if it is not S, W or A.
struct ep_problem {
  explicit ep_problem(char c);
  int log_pairs;
  double sx, sy;
  bool verified(double got_sx, double got_sy) const noexcept;
};

struct is_problem {
  static constexpr int iterations = 10, tests = 5;
  explicit is_problem(char c);
  int log_keys, log_max_key;
  std::array<std::uint32_t, tests> index;  ///< of keys whose ranks are known
  /// Is @p rank that of key @p test in an iteration, from 1?
  bool verified(int test, int iteration, std::int64_t rank) const noexcept;

 private:
  std::array<std::int64_t, tests> rank_;
  int rising_, first_up_, first_down_;
};

struct cg_problem {
  static constexpr int iterations = 15, steps = 25;
  explicit cg_problem(char c);
  int rows, nonzeros;
  double shift, zeta;
  bool verified(double got) const noexcept;
};

struct mg_problem {
  static constexpr int iterations = 4;
  explicit mg_problem(char c);
  int log_side;
  double norm;
  bool verified(double got) const noexcept;
};

struct ft_problem {
  static constexpr int iterations = 6;
  using sums = std::array<std::complex<double>, iterations>;
  explicit ft_problem(char c);
  int nx, ny, nz;
  sums checksums;
  bool verified(const sums& got) const noexcept;
};

}  // namespace npb
