// Partitions of an R-MAT graph, and how evenly nodes have them before and after some are given away: plain
// arithmetic on degrees. Source: Active global address space, section 6.7.
//
// 1,024 partitions of equally many consecutive vertices; node k of n has the partitions from 1024 k / n on. A
// partition is as much load as edges end in it. It takes 16 bytes for each vertex and each end.
#pragma once

#include <godwit/rebalance.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "../graph/graph.hpp"

namespace rmat {

namespace gw = godwit;

inline constexpr std::uint32_t partition_count = 1024;
/// Nodes that are looked at.
inline constexpr std::array<std::uint32_t, 5> node_counts = {32, 64, 128, 256, 512};
inline constexpr std::uint32_t most_cells = 32;  ///< of 2D edge lists, each way
inline constexpr std::array<gw::balance, 4> policies = {gw::balance::least_loaded, gw::balance::predecessor,
                                                        gw::balance::successor, gw::balance::random};
inline constexpr std::array<const char*, 4> policy_names = {"least loaded", "predecessor", "successor",
                                                            "random"};

struct degrees {
  std::vector<std::uint32_t> of;    ///< edges that end at the vertex, from either side
  std::vector<std::uint64_t> cell;  ///< edges from the i-th to the j-th of most_cells groups of vertices
  std::uint32_t most() const;
};
/// As generated, and with labels permuted.
struct both {
  degrees plain, permuted;
};
both count(const graph::problem& p);

/// Edge ends of each partition.
std::vector<std::uint64_t> loads(const degrees& d);

/// One round of one policy.
struct given {
  std::uint64_t moves = 0;
  double kb_each = 0;  ///< 1024 bytes, on average
  double after = 1;    ///< largest load of a node / mean
};
struct balanced {
  std::uint32_t nodes;
  double before;
  double squares;  ///< the same of 2D edge lists: a node has a rectangle of the matrix
  std::array<given, policies.size()> by;
};
balanced balance(const graph::problem& p, const degrees& d, std::uint32_t nodes);

/// What the paper's curves and our design say of scale 20 with 16 edges per vertex, as bands that every seed
/// must meet; for seed 1 the very numbers of moves. Gives back the lines that are wrong.
std::vector<std::string> out_of_bands(const graph::problem& p, const std::vector<balanced>& plain,
                                      const std::vector<balanced>& permuted, std::uint32_t largest_degree);

}  // namespace rmat
