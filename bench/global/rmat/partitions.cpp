// See partitions.hpp.
#include "partitions.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace rmat {

using graph::problem;
using graph::vertex;

std::uint32_t degrees::most() const { return *std::max_element(of.begin(), of.end()); }

/// Every permutation is as likely: that of graph.hpp is quicker, but has heavy vertices together more often.
static std::vector<vertex> shuffled(const problem& p) {
  std::vector<vertex> labels(p.vertices());
  for (std::uint64_t i = 0; i < labels.size(); ++i) {
    const std::uint64_t other = graph::mixed(p.seed * 0x2545f4914f6cdd1du ^ i) % (i + 1);
    labels[i] = labels[other];
    labels[other] = static_cast<vertex>(i);
  }
  return labels;
}

both count(const problem& p) {
  const std::uint64_t n = p.vertices();
  if (n < partition_count)
    throw std::invalid_argument("as many vertices as partitions are needed: --scale 10");
  const std::vector<vertex> labels = shuffled(p);
  both b;
  for (degrees* d : {&b.plain, &b.permuted}) {
    d->of.resize(n);
    d->cell.resize(most_cells * most_cells);
  }
  const unsigned shift = p.scale - static_cast<unsigned>(std::countr_zero(most_cells));
  const auto add = [shift](degrees& d, vertex u, vertex v) {
    ++d.of[u];
    ++d.of[v];
    ++d.cell[(u >> shift) * most_cells + (v >> shift)];
  };
  for (std::uint64_t i = 0; i < p.edges(); ++i) {
    const auto [u, v] = graph::plain_edge(p, i);
    add(b.plain, u, v);
    add(b.permuted, labels[u], labels[v]);
  }
  return b;
}

std::vector<std::uint64_t> loads(const degrees& d) {
  std::vector<std::uint64_t> all(partition_count);
  const std::uint64_t width = d.of.size() / partition_count;
  for (std::uint64_t v = 0; v < d.of.size(); ++v) all[v / width] += d.of[v];
  return all;
}

namespace {

double imbalance(const std::vector<std::uint64_t>& of_nodes) {
  std::uint64_t sum = 0;
  for (const std::uint64_t l : of_nodes) sum += l;
  return static_cast<double>(*std::max_element(of_nodes.begin(), of_nodes.end()) * of_nodes.size()) /
         static_cast<double>(sum);
}

/// Nodes are rows * columns rectangles.
double imbalance_of_squares(const degrees& d, std::uint32_t nodes) {
  const auto bits = static_cast<std::uint32_t>(std::countr_zero(nodes));
  const std::uint32_t columns = 1u << (bits + 1) / 2, rows = nodes / columns;
  std::vector<std::uint64_t> of_nodes(nodes);
  for (std::uint32_t i = 0; i < most_cells; ++i)
    for (std::uint32_t j = 0; j < most_cells; ++j)
      of_nodes[i * rows / most_cells * columns + j * columns / most_cells] += d.cell[i * most_cells + j];
  return imbalance(of_nodes);
}

}  // namespace

balanced balance(const problem& p, const degrees& d, std::uint32_t nodes) {
  const std::vector<std::uint64_t> weights = loads(d);
  std::vector<std::uint64_t> of_nodes(nodes);
  std::vector<gw::part_load> parts;
  for (std::uint32_t i = 0; i < partition_count; ++i) {
    const std::uint32_t owner = i / (partition_count / nodes);
    parts.push_back({static_cast<double>(weights[i]), owner});
    of_nodes[owner] += weights[i];
  }
  balanced b{nodes, imbalance(of_nodes), imbalance_of_squares(d, nodes), {}};
  for (std::size_t k = 0; k < policies.size(); ++k) {
    const gw::balance_plan plan =
        gw::plan_rebalance(parts, nodes, {.to = policies[k], .threshold = 1.4, .rounds = 1, .seed = p.seed});
    std::vector<std::uint64_t> then = of_nodes;
    std::uint64_t bytes = 0;
    for (const gw::planned_move& m : plan.moves) {
      then[m.from] -= weights[m.part];
      then[m.to] += weights[m.part];
      bytes += 16 * (p.vertices() / partition_count + weights[m.part]);
    }
    given& g = b.by[k];
    g.moves = plan.moves.size();
    g.after = imbalance(then);
    if (g.moves != 0) g.kb_each = static_cast<double>(bytes) / 1024 / static_cast<double>(g.moves);
    if (std::abs(g.after - plan.after) > 1e-9 || std::abs(b.before - plan.before) > 1e-9)
      throw std::runtime_error("the plan's figures are not those of its moves");
  }
  return b;
}

std::vector<std::string> out_of_bands(const problem& p, const std::vector<balanced>& plain,
                                      const std::vector<balanced>& permuted, std::uint32_t largest_degree) {
  std::vector<std::string> wrong;
  const auto within = [&](const std::string& what, double value, double low, double high) {
    if (value >= low && value <= high) return;
    char text[200];
    std::snprintf(text, sizeof text, "%s: %.3f is not from %.3f to %.3f", what.c_str(), value, low, high);
    wrong.emplace_back(text);
  };
  struct band {
    double low, high;
  };
  // By number of nodes, as node_counts.
  constexpr band before_plain[] = {{7.9, 8.3}, {12.0, 12.6}, {18.3, 19.1}, {27.9, 29.1}, {42.4, 44.2}};
  constexpr band before[] = {{1.05, 1.2}, {1.15, 1.35}, {1.35, 1.6}, {1.85, 2.15}, {2.8, 3.3}};
  constexpr band moves[] = {{0, 0}, {0, 0}, {0, 2}, {4, 9}, {24, 36}};
  constexpr band after[] = {{1.05, 1.2}, {1.15, 1.35}, {1.3, 1.5}, {1.7, 1.9}, {2.4, 2.8}};
  constexpr band kb[] = {{0, 0}, {0, 0}, {0, 400}, {400, 520}, {520, 620}};
  within("the largest degree", largest_degree, 135'000, 141'000);
  for (std::size_t i = 0; i < node_counts.size(); ++i) {
    const std::string nodes = std::to_string(node_counts[i]) + " nodes, ";
    const given& least = permuted[i].by[0];
    within(nodes + "not permuted, before", plain[i].before, before_plain[i].low, before_plain[i].high);
    within(nodes + "before", permuted[i].before, before[i].low, before[i].high);
    within(nodes + "moves", static_cast<double>(least.moves), moves[i].low, moves[i].high);
    within(nodes + "after", least.after, after[i].low, after[i].high);
    within(nodes + "KB of a move", least.kb_each, kb[i].low, kb[i].high);
    within(nodes + "after, least loaded / random", least.after / permuted[i].by[3].after, 0, 1 + 1e-9);
    within(nodes + "2D edge lists", permuted[i].squares, 1, 1.3);
  }
  if (p.seed != 1) return wrong;
  constexpr std::uint64_t exactly[policies.size()][node_counts.size()] = {
      {0, 0, 1, 6, 29}, {0, 0, 1, 6, 18}, {0, 0, 1, 6, 34}, {0, 0, 1, 6, 23}};
  for (std::size_t k = 0; k < policies.size(); ++k)
    for (std::size_t i = 0; i < node_counts.size(); ++i)
      within(std::to_string(node_counts[i]) + " nodes, moves by " + policy_names[k] + ", seed 1",
             static_cast<double>(permuted[i].by[k].moves), static_cast<double>(exactly[k][i]),
             static_cast<double>(exactly[k][i]));
  return wrong;
}

}  // namespace rmat
