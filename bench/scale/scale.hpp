// The papers' programs as the simulator sees them: what a thread computes is charged, not computed, so that a
// machine of 110,592 cores fits into this one. The threads are those of the benchmarks next door (pfor, lcs);
// UTS and BTC charge whole subtrees of a few levels, and count their nodes one by one all the same.
//
// Elsewhere (--real; not LCS) the same threads compute: UTS its hashes, the others about as long as they
// would be charged. bench/real.py compares.
// Document: docs/scale.md. Test: tests/reproduce, tests/scale.
#pragma once

#include <cstdint>
#include <string>

#include "../uts/tree.hpp"

namespace scale {

/// Trees by the rules of UTS (uts/tree.hpp) whose nodes are hashed by SHA-1, or, 30 times as fast, by a few
/// multiplications: other trees, but drawn by the same law.
enum class hash : std::uint8_t { law, sha };

struct trees {
  hash how = hash::law;
  std::uint32_t grain = 2;  ///< levels at the bottom that one thread counts
  double node_ns = 0;       ///< charged for each node
};
/// What the_tree is searched with. Set before the run.
extern trees the_search;

/// Of the law's trees of these parameters the one whose size is next to @p nodes, among some hundred seeds.
int seed_near(uts::parameters p, double nodes);

/// As a root thread calls it.
uts::totals (*search_under(const std::string& policy))();

struct tasks {
  int depth = 0;       ///< 2^(depth + 1) - 1 tasks
  int grain = 0;       ///< levels at the bottom that are one thread
  double task_ns = 0;  ///< charged for each task
};
/// Binary task creation (uni-address threads, HPDC 2015: BTC with one iteration). Gives back how many tasks.
std::uint64_t (*tasks_under(const std::string& policy))(tasks t);

/// Charged in the simulator; elsewhere computed, for about as long.
void compute(std::uint64_t ns) noexcept;
inline std::uint64_t all_ns(std::uint64_t count, double ns) noexcept {
  return static_cast<std::uint64_t>(static_cast<double>(count) * ns + 0.5);
}

/// What a block of LCS is charged.
extern std::uint64_t block_ns;

}  // namespace scale
