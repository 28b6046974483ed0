// compute(M): work that takes M microseconds and nothing else -- a fixed number of SIMD fused multiply-adds.
//
// It touches no memory, so that neither caches nor bandwidth decide what schedulers are compared by. The
// number of operations is found once, before the first measurement, and is the same for all variants and all
// workers.
// Source: "Distributed continuation stealing is more scalable than you might think", IV-C. Used by main.cpp.
#pragma once

#include <cstdint>

namespace pfor {

/// @p rounds rounds of eight independent multiply-adds on vectors; what they are (AVX2, NEON, plain) is found
/// at start.
void compute(std::uint64_t rounds) noexcept;

/// "AVX2 FMA, 8 lanes of float"
const char* compute_kind() noexcept;

/// Plain, so that a root thread can give it to all ranks.
struct calibration {
  std::uint64_t rounds;  ///< argument of compute
  double asked_us;
  double cpu_us;   ///< CPU time of one compute(rounds) in a row of many: median over pieces of 10 ms
  double wall_us;  ///< the same in wall time: more on a busy machine
};

/// Find the rounds that take @p us microseconds, and check them against a long run. About a third of a
/// second.
calibration calibrate(double us);

}  // namespace pfor
