// In place of what pfor and lcs compute (pfor/compute.cpp, lcs/serial.cpp): time.

#include <algorithm>
#include <godwit/sim.hpp>

#include "../lcs/lcs.hpp"
#include "../pfor/compute.hpp"
#include "scale.hpp"

namespace scale {
std::uint64_t block_ns = 0;
}

/// Rounds are nanoseconds.
void pfor::compute(std::uint64_t rounds) noexcept { godwit::sim::charge(rounds); }

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
