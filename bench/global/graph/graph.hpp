// R-MAT graphs, PageRank and breadth-first search on them: the problem, and the serial code that results are
// compared with.
//
// Edge number i is a function of seed and i (Graph500's parameters: A = 0.57, B = C = 0.19, 16 edges per
// vertex, labels scrambled), so every schedule makes the same graph. Undirected: an edge stands in the rows
// of both ends; self-loops are left out, edges that come several times stay. Rows are sorted. PageRank pulls
// along the rows. Document: docs/performance.md. Tests: bench.global_graph, mpi.global_graph
// (bench/CMakeLists.txt, tests/bench).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace graph {

using vertex = std::uint32_t;
inline constexpr vertex none = ~vertex{0};

struct problem {
  unsigned scale = 20;  ///< log2 of the number of vertices
  std::uint64_t edge_factor = 16;
  std::uint64_t seed = 1;
  unsigned iterations = 10;  ///< of PageRank
  unsigned sources = 4;      ///< searches
  bool permuted = true;      ///< labels are scrambled

  std::uint64_t vertices() const { return std::uint64_t{1} << scale; }
  std::uint64_t edges() const { return edge_factor << scale; }
};

inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A permutation of [0, 2^scale): without it the heavy vertices would be neighbours in memory.
inline vertex scrambled(std::uint64_t v, const problem& p) {
  const std::uint64_t mask = p.vertices() - 1;
  const unsigned half = (p.scale + 1) / 2;
  const std::uint64_t key = mixed(p.seed);
  for (int round = 0; round < 3; ++round) {
    v = (v * ((key >> (8 * round)) | 1) + (key >> 32)) & mask;
    v ^= v >> half;
  }
  return static_cast<vertex>(v);
}

/// Both ends of edge @p i, as generated: heavy vertices have small numbers, or those of few bits.
inline std::pair<vertex, vertex> plain_edge(const problem& p, std::uint64_t i) {
  constexpr double two_to_32 = 4294967296.0;
  constexpr auto a = static_cast<std::uint32_t>(0.57 * two_to_32),
                 ab = static_cast<std::uint32_t>(0.76 * two_to_32),
                 abc = static_cast<std::uint32_t>(0.95 * two_to_32);
  std::uint64_t u = 0, v = 0, state = mixed(p.seed * 0x2545f4914f6cdd1du + i), bits = 0;
  for (unsigned level = 0; level < p.scale; ++level) {
    if (level % 2 == 0) bits = state = mixed(state);
    const auto r = static_cast<std::uint32_t>(bits);
    bits >>= 32;
    u = 2 * u + (r >= ab);
    v = 2 * v + ((r >= a && r < ab) || r >= abc);
  }
  return {static_cast<vertex>(u), static_cast<vertex>(v)};
}
/// The same in the graph.
inline std::pair<vertex, vertex> edge(const problem& p, std::uint64_t i) {
  const auto [u, v] = plain_edge(p, i);
  if (!p.permuted) return {u, v};
  return {scrambled(u, p), scrambled(v, p)};
}

/// Compressed rows: the neighbours of v are targets[offsets[v]] up to targets[offsets[v + 1]].
struct plain_graph {
  std::vector<std::uint64_t> offsets;
  std::vector<vertex> targets;
  std::uint64_t vertices() const { return offsets.size() - 1; }
  std::uint64_t degree(std::uint64_t v) const { return offsets[v + 1] - offsets[v]; }
};

inline constexpr double damping = 0.85;

plain_graph build_serial(const problem& p);
/// Ranks after p.iterations, from equal ones. The rank of vertices without neighbours is dealt out to all.
std::vector<double> pagerank_serial(const plain_graph& g, unsigned iterations);
/// The vertices that searches start from: with neighbours, spread over the numbers.
std::vector<vertex> sources_of(const plain_graph& g, const problem& p);
/// A parent per vertex, the source its own; none: not reached. Switches between pushing from a small frontier
/// and pulling into what is left (Beamer's direction-optimising search).
std::vector<vertex> bfs_serial(const plain_graph& g, vertex source);

/// When to switch, the same for serial and parallel code: pull while the frontier has more than 1/14 of the
/// edges that are left, push again when it has less than 1/24 of the vertices.
inline bool should_pull(std::uint64_t frontier_entries, std::uint64_t entries_left) {
  return frontier_entries > entries_left / 14;
}
inline bool should_push(std::uint64_t frontier, std::uint64_t vertices) { return frontier < vertices / 24; }

/// Levels that follow from @p parents, none where not reached; empty if the parents are no tree with the root
/// @p source.
std::vector<vertex> levels_of(const vertex* parents, std::uint64_t n, vertex source);
/// Graph500's rules: a tree rooted at the source; its edges are edges of the graph; the ends of every edge
/// are both reached, their levels at most one apart, or both not. Also: the levels are @p expected.
bool valid_tree(const plain_graph& g, const vertex* parents, vertex source,
                const std::vector<vertex>& expected);

/// The largest relative difference.
double difference(const double* a, const double* b, std::uint64_t n);

}  // namespace graph
