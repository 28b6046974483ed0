// global_rmat: load that balances itself, on an R-MAT graph (Graph500's parameters, 16 edges per vertex).
//
// First on paper: degrees, and how many partitions nodes give away, and what that helps, with 32 to 512 nodes
// (partitions.hpp): counts, the same on every machine, and at scale 20 compared with what is known of them.
// Then in a run: the parents of a search lie in movable memory, a page for each 1,024 vertices, whose load
// are their edges; gw::rebalance deals them out by that, and must move what the plan says. Before and after
// it searches from all keys; each tree is looked at by the rules of Graph500 (graph.hpp). Edges of the
// searched component per second, harmonic mean over the keys.
// Source: Active global address space, section 6.7. Test: bench/CMakeLists.txt (bench.global_rmat).
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../common/godwit_run.hpp"
#include "../graph/ours.hpp"
#include "partitions.hpp"

namespace {

using namespace rmat;
using graph::none;
using graph::problem;
using graph::vertex;

constexpr std::uint64_t page_vertices = 4096 / sizeof(vertex);
constexpr unsigned most_sources = 64;

/// What is right: made before the runs, so that all workers have it.
struct reference {
  graph::plain_graph g;
  std::vector<vertex> sources;
  std::vector<std::vector<vertex>> levels;
  std::vector<double> edges;  ///< of the component of each source
  std::vector<gw::part_load> pages;
};
reference right;

reference make_reference(const problem& p) {
  reference r;
  r.g = graph::build_serial(p);
  r.sources = graph::sources_of(r.g, p);
  for (const vertex s : r.sources) {
    const auto parents = graph::bfs_serial(r.g, s);
    r.levels.push_back(graph::levels_of(parents.data(), parents.size(), s));
    std::uint64_t ends = 0;
    for (std::uint64_t v = 0; v < parents.size(); ++v)
      if (parents[v] != none) ends += r.g.degree(v);
    r.edges.push_back(static_cast<double>(ends) / 2);
  }
  for (std::uint64_t v = 0; v < p.vertices(); v += page_vertices)
    r.pages.push_back(
        {static_cast<double>(r.g.offsets[std::min(v + page_vertices, p.vertices())] - r.g.offsets[v]), 0});
  return r;
}

bool right_parents(gw::global_ptr<vertex> parents, std::size_t i) {
  auto have = gw::checkout(parents, right.g.vertices(), gw::access::read);
  return graph::valid_tree(right.g, have.data(), right.sources[i], right.levels[i]);
}

/// Plain bytes: it leaves the run.
struct outcome {
  std::uint32_t wrong_trees = 0;
  gw::rebalance_result moved;
  gw::rebalance_result again;
  double planned_after = 0;
  std::uint64_t planned = 0;
  double seconds[2][most_sources] = {};  ///< of each search, before and after
};

void search(const graph::global_graph& g, const graph::bfs_room& room, outcome& o, int when) {
  for (std::size_t i = 0; i < right.sources.size(); ++i) {
    const std::uint64_t start = bench::now_ns();
    graph::bfs(g, room, right.sources[i]);
    o.seconds[when][i] = static_cast<double>(bench::now_ns() - start) * 1e-9;
    if (!right_parents(room.parent, i)) ++o.wrong_trees;
  }
}

[[gnu::noinline]] void plan(const graph::bfs_room& room, std::uint64_t vertices, const gw::balance_rule& how,
                            outcome& o) {
  std::vector<gw::part_load> pages = right.pages;
  const std::vector<gw::part_info> parts = gw::parts_of(room.parent, vertices);
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i].owner = parts[i].owner;
  const gw::balance_plan made = gw::plan_rebalance(pages, gw::worker_count(), how);
  o.planned = made.moves.size();
  o.planned_after = made.after;
}

outcome in_a_run(const problem& p) {
  outcome o;
  const auto g = graph::build(p);
  gw::distribution blocks = gw::distribution::blocked();
  const auto room = graph::make_bfs_room(g, blocks.movable(4096));
  search(g, room, o, 0);
  const gw::balance_rule how{.threshold = 1.2};
  plan(room, g.vertices, how, o);
  const auto weight = [at = room.parent.address()](const gw::part_info& part) {
    return right.pages[(part.begin.address() - at) / 4096].load;
  };
  o.moved = gw::rebalance(room.parent, g.vertices, how, weight);
  o.again = gw::rebalance(room.parent, g.vertices, how, weight);
  search(g, room, o, 1);
  graph::destroy(room, g);
  graph::destroy(g);
  return o;
}

/// Edges per second, in millions.
double mteps(const double* seconds) {
  double sum = 0;
  for (std::size_t i = 0; i < right.edges.size(); ++i) sum += seconds[i] / right.edges[i];
  return static_cast<double>(right.edges.size()) / sum * 1e-6;
}

std::vector<balanced> show_nodes(bench::program& program, const problem& p, const degrees& d,
                                 const char* labels) {
  std::vector<balanced> all;
  for (const std::uint32_t n : node_counts) all.push_back(balance(p, d, n));
  if (!gw::is_first_process()) return all;
  std::fprintf(program.out(),
               "1,024 partitions of %llu vertices, %s; largest degree %u. Largest load of a node / mean:\n"
               "  %5s %8s %8s   %-24s %-24s %-24s %-24s\n",
               static_cast<unsigned long long>(p.vertices() / partition_count), labels, d.most(), "nodes",
               "before", "2D", policy_names[0], policy_names[1], policy_names[2], policy_names[3]);
  bench::ordered_json rows = bench::ordered_json::array();
  for (const balanced& b : all) {
    bench::ordered_json row = {{"nodes", b.nodes}, {"before", b.before}, {"squares", b.squares}};
    std::fprintf(program.out(), "  %5u %8.3f %8.3f", b.nodes, b.before, b.squares);
    for (std::size_t k = 0; k < policies.size(); ++k) {
      const given& g = b.by[k];
      std::fprintf(program.out(), "   %3llu of %4.0f KB -> %6.3f", static_cast<unsigned long long>(g.moves),
                   g.kb_each, g.after);
      row[policy_names[k]] = {{"moves", g.moves}, {"kb_each", g.kb_each}, {"after", g.after}};
    }
    std::fprintf(program.out(), "\n");
    rows.push_back(row);
  }
  program.json()["measurements"].push_back({{"title", std::string("Partitions, ") + labels},
                                            {"parameters", {{"scale", p.scale}, {"seed", p.seed}}},
                                            {"largest_degree", d.most()},
                                            {"rows", rows}});
  return all;
}

void on_paper(bench::program& program, const problem& p) {
  const both b = count(p);
  const auto plain = show_nodes(program, p, b.plain, "as generated");
  const auto permuted = show_nodes(program, p, b.permuted, "permuted");
  if (p.scale != 20 || p.edge_factor != 16) return;
  for (const std::string& line : out_of_bands(p, plain, permuted, b.plain.most())) program.wrong(line);
}

/// What is wrong with a run; empty: nothing.
std::string fault_of(const outcome& o) {
  if (o.wrong_trees != 0) return std::to_string(o.wrong_trees) + " searches broke a rule of Graph500";
  if (o.moved.busy != 0 || o.again.busy != 0) return "parts were in use, but nobody used them";
  if (o.moved.moves != o.planned)
    return std::to_string(o.moved.moves) + " parts moved, planned were " + std::to_string(o.planned);
  if (o.moved.bytes != o.moved.moves * 4096) return "what moved are not whole pages";
  if (std::abs(o.moved.after - o.planned_after) > 1e-9) return "the load afterwards is not the plan's";
  if (std::abs(o.again.before - o.moved.after) > 1e-9) return "owners are not those that were named";
  return {};
}

void for_real(bench::program& program, problem p) {
  p.permuted = false;  // else few workers have as much each, and nothing has to move
  right = make_reference(p);
  bench::ordered_json rows = bench::ordered_json::array();
  if (gw::is_first_process())
    std::fprintf(program.out(),
                 "Parents in movable memory, a page for each %llu vertices, as generated\n"
                 "  %7s %8s %8s %7s %14s %14s\n",
                 static_cast<unsigned long long>(page_vertices), "workers", "before", "after", "moves",
                 "Medges/s", "then");
  for (const unsigned w : program.workers()) {
    outcome o;
    std::vector<double> rates[2];
    for (int rep = 0; rep < program.options().reps; ++rep) {
      gw::options opts;
      opts.workers = w;
      o = gw::run<outcome>([p] { return in_a_run(p); }, opts);
      if (const std::string fault = fault_of(o); !fault.empty())
        program.wrong(std::to_string(w) + " workers: " + fault);
      for (int when = 0; when < 2; ++when) rates[when].push_back(mteps(o.seconds[when]));
    }
    if (!gw::is_first_process()) continue;
    const double then = bench::median(rates[0]), now = bench::median(rates[1]);
    std::fprintf(program.out(), "  %7u %8.3f %8.3f %7llu %14.2f %14.2f\n", w, o.moved.before, o.moved.after,
                 static_cast<unsigned long long>(o.moved.moves), then, now);
    rows.push_back({{"workers", w},
                    {"before", o.moved.before},
                    {"after", o.moved.after},
                    {"moves", o.moved.moves},
                    {"mteps_before", then},
                    {"mteps_after", now}});
    if (w == program.most_workers())
      program.figure("bfs.mteps", "BFS, " + std::to_string(w) + " workers, after gw::rebalance", rates[1],
                     "Medges/s", "harmonic mean over the keys of edges of the component / time");
  }
  if (gw::is_first_process())
    program.json()["measurements"].push_back(
        {{"title", "Searches"},
         {"parameters", {{"scale", p.scale}, {"seed", p.seed}, {"sources", right.sources.size()}}},
         {"rows", rows}});
}

}  // namespace

int main(int argc, char** argv) {
  problem p;
  p.sources = 0;
  bench::program program("global_rmat",
                         "Load that balances itself: partitions of an R-MAT graph, and searches on it.", argc,
                         argv);
  bool only_paper = false;
  program.option("--scale", p.scale, "log2 of the number of vertices", bench::between(10, 28));
  program.option("--seed", p.seed, "Of the graph");
  program.option("--sources", p.sources, "Keys of the searches (default 64; with --quick 8)",
                 bench::between(1, most_sources));
  program.flag("--only-partitions", only_paper, "No searches");
  program.parse();
  if (program.options().quick && !program.given("--scale")) p.scale = 16;
  if (p.sources == 0) p.sources = program.options().quick ? 8 : most_sources;
  try {
    on_paper(program, p);
    if (!only_paper) for_real(program, p);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_rmat: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
