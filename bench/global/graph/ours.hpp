// The graph in global memory, and what computes with it. To be called inside a run.
#pragma once

#include "../loops.hpp"
#include "graph.hpp"

namespace graph {

namespace gw = godwit;

/// Compressed rows in global memory, dealt out in one part per home. A handle: copied into closures.
struct global_graph {
  std::uint64_t vertices = 0, entries = 0;
  gw::global_ptr<std::uint64_t> offsets;  ///< vertices + 1
  gw::global_ptr<vertex> targets;
};

global_graph build(const problem& p);
void destroy(const global_graph& g);
/// Is it the very same graph?
bool equal(const global_graph& g, const plain_graph& expected);

/// Room for PageRank. On several hosts leaves read the whole vector of shares through the cache if it takes a
/// quarter of that at most, else only what the neighbours of their vertices have.
struct pagerank_room {
  gw::global_ptr<double> rank, share;
  bool whole = true;
};
pagerank_room make_pagerank_room(const global_graph& g, std::uint64_t cache_bytes);
void destroy(const pagerank_room& room, const global_graph& g);
void pagerank(const global_graph& g, const pagerank_room& room, unsigned iterations);

/// Room for searches: bitmaps of 64-bit words, lists of vertices.
struct bfs_room {
  gw::global_ptr<vertex> parent;
  gw::global_ptr<std::uint64_t> seen, front, next;  ///< seen: all that earlier levels reached
  gw::global_ptr<vertex> frontier, found;
  gw::global_ptr<std::uint64_t> count;  ///< of found
};
/// @p parents: how those are dealt out.
bfs_room make_bfs_room(const global_graph& g, const gw::distribution& parents = gw::distribution::blocked());
void destroy(const bfs_room& room, const global_graph& g);
/// Fills room.parent.
void bfs(const global_graph& g, bfs_room room, vertex source);

}  // namespace graph
