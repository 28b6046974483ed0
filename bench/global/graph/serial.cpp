// The serial code and the checks. See graph.hpp.

#include <algorithm>
#include <cmath>

#include "graph.hpp"

namespace graph {

plain_graph build_serial(const problem& p) {
  std::vector<std::pair<vertex, vertex>> edges;
  edges.reserve(p.edges());
  plain_graph g;
  g.offsets.assign(p.vertices() + 1, 0);
  for (std::uint64_t i = 0; i < p.edges(); ++i) {
    const auto e = edge(p, i);
    if (e.first == e.second) continue;
    edges.push_back(e);
    ++g.offsets[e.first + 1];
    ++g.offsets[e.second + 1];
  }
  for (std::uint64_t v = 0; v < p.vertices(); ++v) g.offsets[v + 1] += g.offsets[v];
  g.targets.resize(g.offsets.back());
  std::vector<std::uint64_t> at(g.offsets.begin(), g.offsets.end() - 1);
  for (const auto& [u, v] : edges) {
    g.targets[at[u]++] = v;
    g.targets[at[v]++] = u;
  }
  const auto row = [&](std::uint64_t v) {
    return g.targets.begin() + static_cast<std::ptrdiff_t>(g.offsets[v]);
  };
  for (std::uint64_t v = 0; v < p.vertices(); ++v) std::sort(row(v), row(v + 1));
  return g;
}

std::vector<double> pagerank_serial(const plain_graph& g, unsigned iterations) {
  const std::uint64_t n = g.vertices();
  std::vector<double> rank(n, 1.0 / static_cast<double>(n)), share(n);
  for (unsigned i = 0; i < iterations; ++i) {
    double idle = 0;
    for (std::uint64_t v = 0; v < n; ++v) {
      const std::uint64_t degree = g.degree(v);
      share[v] = degree == 0 ? 0 : rank[v] / static_cast<double>(degree);
      if (degree == 0) idle += rank[v];
    }
    const double base = (1 - damping + damping * idle) / static_cast<double>(n);
    for (std::uint64_t v = 0; v < n; ++v) {
      double sum = 0;
      for (std::uint64_t e = g.offsets[v]; e < g.offsets[v + 1]; ++e) sum += share[g.targets[e]];
      rank[v] = base + damping * sum;
    }
  }
  return rank;
}

std::vector<vertex> sources_of(const plain_graph& g, const problem& p) {
  std::vector<vertex> sources;
  for (std::uint64_t i = 0; i < p.sources; ++i) {
    std::uint64_t v = mixed(p.seed + i) % g.vertices();
    while (g.degree(v) == 0) v = (v + 1) % g.vertices();
    sources.push_back(static_cast<vertex>(v));
  }
  return sources;
}

std::vector<vertex> bfs_serial(const plain_graph& g, vertex source) {
  const std::uint64_t n = g.vertices();
  std::vector<vertex> parent(n, none), frontier = {source}, found;
  std::vector<std::uint64_t> front, next;
  parent[source] = source;
  std::uint64_t left = g.offsets[n] - g.degree(source), entries = g.degree(source);
  while (!frontier.empty()) {
    if (!should_pull(entries, left)) {
      found.clear();
      entries = 0;
      for (const vertex u : frontier)
        for (std::uint64_t e = g.offsets[u]; e < g.offsets[u + 1]; ++e) {
          const vertex v = g.targets[e];
          if (parent[v] != none) continue;
          parent[v] = u;
          found.push_back(v);
          entries += g.degree(v);
        }
      left -= entries;
      frontier.swap(found);
      continue;
    }
    front.assign((n + 63) / 64, 0);
    for (const vertex u : frontier) front[u / 64] |= std::uint64_t{1} << (u % 64);
    std::uint64_t count = frontier.size(), before = 0;
    do {
      before = count;
      count = entries = 0;
      next.assign(front.size(), 0);
      for (std::uint64_t v = 0; v < n; ++v) {
        if (parent[v] != none) continue;
        for (std::uint64_t e = g.offsets[v]; e < g.offsets[v + 1]; ++e) {
          const vertex u = g.targets[e];
          if ((front[u / 64] >> (u % 64) & 1) == 0) continue;
          parent[v] = u;
          next[v / 64] |= std::uint64_t{1} << (v % 64);
          ++count;
          entries += g.degree(v);
          break;
        }
      }
      left -= entries;
      front.swap(next);
    } while (count != 0 && (count >= before || !should_push(count, n)));
    frontier.clear();
    for (std::uint64_t w = 0; w < front.size(); ++w)
      for (std::uint64_t bits = front[w]; bits != 0; bits &= bits - 1)
        frontier.push_back(static_cast<vertex>(w * 64 + static_cast<unsigned>(__builtin_ctzll(bits))));
  }
  return parent;
}

std::vector<vertex> levels_of(const vertex* parents, std::uint64_t n, vertex source) {
  std::vector<vertex> levels(n, none), way;
  if (parents[source] != source) return {};
  levels[source] = 0;
  for (std::uint64_t v = 0; v < n; ++v) {
    way.clear();
    for (auto u = static_cast<vertex>(v); levels[u] == none && parents[u] != none; u = parents[u]) {
      if (parents[u] >= n || parents[u] == u || way.size() == n) return {};
      way.push_back(u);
    }
    if (way.empty()) continue;
    vertex level = levels[parents[way.back()]];
    if (level == none) return {};  // the way ends at a vertex that is not reached
    for (auto u = way.rbegin(); u != way.rend(); ++u) levels[*u] = ++level;
  }
  return levels;
}

bool valid_tree(const plain_graph& g, const vertex* parents, vertex source,
                const std::vector<vertex>& expected) {
  const std::uint64_t n = g.vertices();
  const auto levels = levels_of(parents, n, source);
  if (levels.empty() || levels != expected) return false;
  for (std::uint64_t v = 0; v < n; ++v) {
    const auto *from = g.targets.data() + g.offsets[v], *to = g.targets.data() + g.offsets[v + 1];
    if (levels[v] != none && v != source && !std::binary_search(from, to, parents[v])) return false;
    for (const auto* u = from; u != to; ++u) {
      if ((levels[v] == none) != (levels[*u] == none)) return false;
      if (levels[v] != none && levels[v] > levels[*u] + 1) return false;
    }
  }
  return true;
}

double difference(const double* a, const double* b, std::uint64_t n) {
  double most = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double off = std::abs(a[i] - b[i]) / std::max(std::abs(b[i]), 1e-300);
    if (!(off <= most)) most = off;
    if (off != off) break;
  }
  return most;
}

}  // namespace graph
