// PageRank in global memory: every vertex adds up what its neighbours share, in the order of its row.

#include "ours.hpp"

namespace graph {

namespace {

constexpr std::uint64_t grain_vertices = 4096;
constexpr std::uint64_t grain_entries = 32 << 10;

/// What each vertex gives to a neighbour. The sum over the piece of the ranks that have no neighbour to go
/// to.
double make_shares(const global_graph& g, const pagerank_room& r, std::uint64_t from, std::uint64_t to) {
  const auto at = static_cast<std::ptrdiff_t>(from);
  auto offsets = gw::checkout(g.offsets + at, to - from + 1, gw::access::read);
  auto rank = gw::checkout(r.rank + at, to - from, gw::access::read);
  auto share = gw::checkout(r.share + at, to - from, gw::access::write);
  double idle = 0;
  for (std::uint64_t i = 0; i < to - from; ++i) {
    const std::uint64_t degree = offsets[i + 1] - offsets[i];
    share[i] = degree == 0 ? 0 : rank[i] / static_cast<double>(degree);
    if (degree == 0) idle += rank[i];
  }
  return idle;
}

/// New ranks of [from, to), whose entries begin at @p first; share_of(entry, target).
template <class ShareOf>
void pull(const std::uint64_t* offsets, const vertex* targets, double* rank, std::uint64_t n, double base,
          const ShareOf& share_of) {
  for (std::uint64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::uint64_t e = offsets[i] - offsets[0]; e < offsets[i + 1] - offsets[0]; ++e)
      sum += share_of(e, targets[e]);
    rank[i] = base + damping * sum;
  }
}

void pull_rows(const global_graph& g, const pagerank_room& r, std::uint64_t from, std::uint64_t to,
               double base) {
  const std::uint64_t n = to - from;
  auto offsets = gw::checkout(g.offsets + static_cast<std::ptrdiff_t>(from), n + 1, gw::access::read);
  auto targets = gw::checkout(g.targets + static_cast<std::ptrdiff_t>(offsets[0]), offsets[n] - offsets[0],
                              gw::access::read);
  auto rank = gw::checkout(r.rank + static_cast<std::ptrdiff_t>(from), n, gw::access::write);
  const auto by_target = [&](const double* share) {
    pull(offsets.data(), targets.data(), rank.data(), n, base,
         [=](std::uint64_t, vertex u) { return share[u]; });
  };
  if (const double* here = gw::try_local(r.share, g.vertices)) return by_target(here);
  if (r.whole) return by_target(gw::checkout(r.share, g.vertices, gw::access::read).data());
  std::vector<gw::global_ptr<double>> places(targets.size());
  std::vector<double> shares(targets.size());
  for (std::size_t e = 0; e < places.size(); ++e) places[e] = r.share + targets[e];
  gw::gather<double>(places, shares);
  pull(offsets.data(), targets.data(), rank.data(), n, base,
       [&](std::uint64_t e, vertex) { return shares[e]; });
}

/// Halves rows until they have few entries: some vertices have most neighbours.
void pull_all(const global_graph& g, const pagerank_room& r, std::uint64_t from, std::uint64_t to,
              std::uint64_t first, std::uint64_t last, double base) {
  if (to - from == 1 || (last - first <= grain_entries && to - from <= grain_vertices))
    return pull_rows(g, r, from, to, base);
  const std::uint64_t middle = from + (to - from) / 2;
  const std::uint64_t cut = gw::get(g.offsets + static_cast<std::ptrdiff_t>(middle));
  auto left = gw::spawn([=] { pull_all(g, r, from, middle, first, cut, base); });
  pull_all(g, r, middle, to, cut, last, base);
  left.join();
}

}  // namespace

pagerank_room make_pagerank_room(const global_graph& g, std::uint64_t cache_bytes) {
  const auto spread = gw::distribution::blocked();
  return {gw::allocate<double>(g.vertices, spread), gw::allocate<double>(g.vertices, spread),
          g.vertices * sizeof(double) <= cache_bytes / 4};
}

void destroy(const pagerank_room& room, const global_graph& g) {
  gw::deallocate(room.rank, g.vertices);
  gw::deallocate(room.share, g.vertices);
}

void pagerank(const global_graph& g, const pagerank_room& r, unsigned iterations) {
  const auto n = static_cast<double>(g.vertices);
  bench::each_piece(g.vertices, grain_vertices, [=](std::uint64_t from, std::uint64_t to) {
    for (double& x : gw::checkout(r.rank + static_cast<std::ptrdiff_t>(from), to - from, gw::access::write))
      x = 1 / n;
  });
  for (unsigned i = 0; i < iterations; ++i) {
    const double idle =
        bench::each_piece(g.vertices, grain_vertices,
                          [=](std::uint64_t from, std::uint64_t to) { return make_shares(g, r, from, to); });
    pull_all(g, r, 0, g.vertices, 0, g.entries, (1 - damping + damping * idle) / n);
  }
}

}  // namespace graph
