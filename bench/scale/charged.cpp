// In place of what pfor and lcs compute (pfor/compute.cpp, lcs/serial.cpp): time, charged in the simulator.

#include <algorithm>
#include <godwit/sim.hpp>

#include "../lcs/lcs.hpp"
#include "../pfor/compute.hpp"
#include "scale.hpp"

namespace scale {
std::uint64_t block_ns = 0;
}

void scale::compute(std::uint64_t ns) noexcept {
  if (godwit::detail::simulated) return godwit::sim::charge(ns);
  std::uint64_t x = ns;
  for (std::uint64_t i = 0; i < ns; ++i) {
    x = x * 0x9e3779b97f4a7c15u + i;  // each needs the one before: a multiplication takes about 1 ns
    asm volatile("" : "+r"(x));
  }
}

/// Rounds are nanoseconds.
void pfor::compute(std::uint64_t rounds) noexcept { scale::compute(rounds); }

namespace lcs {

problem the_problem;

/// Boundaries of the right size. Each number is the length of the longest way of blocks to this one, so the
/// last one shows whether all neighbours' came.
boundaries block_by_rows(const problem& p, std::uint32_t, std::uint32_t, const boundary& top,
                         const boundary& left) {
  godwit::sim::charge(scale::block_ns);
  const std::uint32_t way = 1 + std::max(top.empty() ? 0 : top.back(), left.empty() ? 0 : left.back());
  return {boundary(p.c + 1, way), boundary(p.c + 1, way)};
}

}  // namespace lcs
