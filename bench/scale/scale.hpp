// The papers' programs as the simulator sees them: what a thread computes is charged, not computed, so that a
// machine of 110,592 cores fits into this one. The threads are those of the benchmarks next door (pfor, lcs);
// UTS and BTC charge whole subtrees of a few levels, and count their nodes one by one all the same.
//
// Only for substrate sim. Document: docs/scale.md. Test: bench/CMakeLists.txt (bench.scale).
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
  std::uint32_t grain = 2;    ///< levels at the bottom that one thread counts
  std::uint64_t node_ns = 0;  ///< charged for each node
};
/// What the_tree is searched with. Set before the run.
extern trees the_search;

/// Of the law's trees of these parameters the one whose size is next to @p nodes, among some hundred seeds.
int seed_near(uts::parameters p, double nodes);

/// As a root thread calls it.
uts::totals (*search_under(const std::string& policy))();

struct tasks {
  int depth = 0;              ///< 2^(depth + 1) - 1 tasks
  int grain = 0;              ///< levels at the bottom that are one thread
  std::uint64_t task_ns = 0;  ///< charged for each task
};
/// Binary task creation (uni-address threads, HPDC 2015: BTC with one iteration). Gives back how many tasks.
std::uint64_t (*tasks_under(const std::string& policy))(tasks t);

/// What a block of LCS is charged.
extern std::uint64_t block_ns;

}  // namespace scale
