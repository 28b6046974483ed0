// global_graph: an R-MAT graph in global memory: built in parallel, then PageRank and breadth-first search,
// beside plain serial code. Every run's graph is compared with the serial one entry by entry, ranks with the
// serial ones to 1e-12, searches by the rules of Graph500 (graph.hpp).

#include <cstdio>

#include "../timed_parts.hpp"
#include "ours.hpp"

namespace {

using namespace graph;

/// What is right: made before the run, so that all workers have it.
struct reference {
  plain_graph g;
  std::vector<double> ranks;
  std::vector<vertex> sources;
  std::vector<std::vector<vertex>> levels;
  std::uint64_t reached_entries = 0;
};
reference right;
constexpr double tolerance = 1e-12;

enum part : std::size_t { building, ranking, searching, part_count };
using times = bench::parts<part_count>;

reference make_reference(const problem& p) {
  reference r;
  r.g = build_serial(p);
  r.ranks = pagerank_serial(r.g, p.iterations);
  r.sources = sources_of(r.g, p);
  for (const vertex s : r.sources) {
    const auto parents = bfs_serial(r.g, s);
    r.levels.push_back(levels_of(parents.data(), parents.size(), s));
    for (std::uint64_t v = 0; v < parents.size(); ++v)
      if (parents[v] != none) r.reached_entries += r.g.degree(v);
  }
  return r;
}

times serial(const problem& p) {
  times t;
  const plain_graph g = t.time(building, [&] { return build_serial(p); });
  t.correct = g.targets == right.g.targets;
  const auto ranks = t.time(ranking, [&] { return pagerank_serial(g, p.iterations); });
  t.correct &= ranks == right.ranks;
  for (std::size_t i = 0; i < right.sources.size(); ++i) {
    const auto parents = t.time(searching, [&] { return bfs_serial(g, right.sources[i]); });
    t.correct &= valid_tree(right.g, parents.data(), right.sources[i], right.levels[i]);
  }
  return t;
}

bool right_ranks(gw::global_ptr<double> ranks) {
  auto have = gw::checkout(ranks, right.ranks.size(), gw::access::read);
  const double off = difference(have.data(), right.ranks.data(), have.size());
  if (off > tolerance) std::fprintf(stderr, "global_graph: ranks are off by %g\n", off);
  return off <= tolerance;
}

bool right_parents(gw::global_ptr<vertex> parents, std::size_t i) {
  auto have = gw::checkout(parents, right.g.vertices(), gw::access::read);
  return valid_tree(right.g, have.data(), right.sources[i], right.levels[i]);
}

times ours(const problem& p, std::uint64_t cache_bytes) {
  times t;
  const auto g = t.time(building, [=] { return build(p); });
  t.correct = equal(g, right.g);
  const auto ranks = make_pagerank_room(g, cache_bytes);
  t.time(ranking, [=] { pagerank(g, ranks, p.iterations); });
  t.correct &= right_ranks(ranks.rank);
  destroy(ranks, g);
  const auto room = make_bfs_room(g);
  for (std::size_t i = 0; i < right.sources.size(); ++i) {
    t.time(searching, [=] { bfs(g, room, right.sources[i]); });
    t.correct &= right_parents(room.parent, i);
  }
  destroy(room, g);
  destroy(g);
  return t;
}

void compare(bench::program& program, const problem& p) {
  right = make_reference(p);
  const std::uint64_t cache_bytes = godwit::resolve_options().cache_bytes;
  const auto all = bench::measure_parts(
      program, bench::ways_of<part_count>(
                   program, [p] { return serial(p); }, [p, cache_bytes] { return ours(p, cache_bytes); }));
  const std::string what = "R-MAT, 2^" + std::to_string(p.scale) + " vertices, " +
                           bench::grouped(right.g.targets.size()) + " entries";
  const bench::ordered_json parameters = {
      {"scale", p.scale},           {"edge_factor", p.edge_factor},    {"seed", p.seed},
      {"iterations", p.iterations}, {"sources", right.sources.size()}, {"entries", right.g.targets.size()}};
  program.show(what + ": build", parameters, all[building]);
  bench::show_ratios(program, "build", "build", all[building]);
  program.show(what + ": PageRank, " + std::to_string(p.iterations) + " iterations", parameters,
               all[ranking]);
  bench::show_ratios(program, "pagerank", "PageRank", all[ranking]);
  program.show(what + ": breadth-first search from " + std::to_string(right.sources.size()) + " vertices",
               parameters, all[searching]);
  bench::show_ratios(program, "bfs", "BFS", all[searching]);
  if (const auto* many = bench::find(all[searching], "godwit", program.most_workers()))
    program.figure("bfs.mteps", "BFS, " + std::to_string(program.most_workers()) + " workers",
                   static_cast<double>(right.reached_entries) / 2 / many->median_s * 1e-6, "Medges/s",
                   "edges between reached vertices, over all searches / median time");
}

}  // namespace

int main(int argc, char** argv) {
  problem p;
  bench::program program("global_graph",
                         "R-MAT graph in global memory: build, PageRank, breadth-first search.", argc, argv);
  program.option("--scale", p.scale, "log2 of the number of vertices (default 20; with --quick 16)",
                 bench::between(1, 31));
  program.option("--edge-factor", p.edge_factor, "Edges per vertex", bench::between(1, 1024));
  program.option("--seed", p.seed, "Of the graph");
  program.option("--iterations", p.iterations, "Of PageRank", bench::between(1, 1000));
  program.option("--sources", p.sources, "Vertices to search from", bench::between(1, 1024));
  program.parse();
  if (program.options().quick && !program.given("--scale")) p.scale = 16;
  try {
    compare(program, p);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_graph: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
