// Edges become compressed rows: each chunk of edges is sorted by blocks of vertices ("buckets"), then each
// bucket takes its pieces of all chunks and makes its rows. No atomics, and every piece of memory has one
// writer.

#include <algorithm>

#include "ours.hpp"

namespace graph {

namespace {

constexpr std::uint64_t chunk_edges = 64 << 10;
constexpr std::uint64_t most_buckets = 256;

/// One end of an edge, and the other.
struct entry {
  vertex from, to;
};

struct plan {
  problem p;
  std::uint64_t chunks, buckets, width;  ///< width: vertices of a bucket
  gw::global_ptr<entry> sorted;          ///< chunk c's entries from 2 * chunk_edges * c on, by bucket
  gw::global_ptr<std::uint32_t> starts;  ///< buckets + 1 per chunk: where in them
  gw::global_ptr<std::uint64_t> first;   ///< buckets + 1: entries in all buckets before

  gw::global_ptr<entry> chunk(std::uint64_t c) const {
    return sorted + static_cast<std::ptrdiff_t>(2 * chunk_edges * c);
  }
  gw::global_ptr<std::uint32_t> starts_of(std::uint64_t c) const {
    return starts + static_cast<std::ptrdiff_t>((buckets + 1) * c);
  }
};

void sort_chunk(const plan& s, std::uint64_t c) {
  std::vector<entry> made;
  std::vector<std::uint32_t> at(s.buckets + 1, 0);
  made.reserve(2 * chunk_edges);
  const std::uint64_t last = std::min(s.p.edges(), (c + 1) * chunk_edges);
  for (std::uint64_t i = c * chunk_edges; i < last; ++i) {
    const auto [u, v] = edge(s.p, i);
    if (u == v) continue;
    made.push_back({u, v});
    made.push_back({v, u});
    ++at[u / s.width + 1];
    ++at[v / s.width + 1];
  }
  for (std::uint64_t b = 0; b < s.buckets; ++b) at[b + 1] += at[b];
  gw::put(s.starts_of(c), at.data(), at.size());
  auto out = gw::checkout(s.chunk(c), made.size(), gw::access::write);
  for (const entry& e : made) out[at[e.from / s.width]++] = e;
}

/// Call f(entry) for all entries of a bucket.
template <class F>
void each_entry(const plan& s, std::uint64_t bucket, F&& f) {
  for (std::uint64_t c = 0; c < s.chunks; ++c) {
    std::uint32_t range[2];
    gw::get(s.starts_of(c) + static_cast<std::ptrdiff_t>(bucket), range, 2);
    for (const entry& e : gw::checkout(s.chunk(c) + range[0], range[1] - range[0], gw::access::read)) f(e);
  }
}

void make_rows(const plan& s, const global_graph& g, std::uint64_t bucket) {
  std::uint64_t range[2];
  gw::get(s.first + static_cast<std::ptrdiff_t>(bucket), range, 2);
  const std::uint64_t low = bucket * s.width, n = std::min(s.width, g.vertices - low);
  std::vector<std::uint64_t> at(n + 1, 0);
  each_entry(s, bucket, [&](const entry& e) { ++at[e.from - low + 1]; });
  at[0] = range[0];
  for (std::uint64_t v = 0; v < n; ++v) at[v + 1] += at[v];
  gw::put(g.offsets + static_cast<std::ptrdiff_t>(low), at.data(), n);
  if (low + n == g.vertices) gw::put(g.offsets + static_cast<std::ptrdiff_t>(g.vertices), at[n]);
  const std::uint64_t total = range[1] - range[0];
  auto out = gw::checkout(g.targets + static_cast<std::ptrdiff_t>(range[0]), total, gw::access::write);
  each_entry(s, bucket, [&](const entry& e) { out[at[e.from - low]++ - range[0]] = e.to; });
  std::uint64_t from = 0;
  for (std::uint64_t v = 0; v < n; ++v) {  // at[v] is the end of row v now
    std::sort(out.begin() + from, out.begin() + (at[v] - range[0]));
    from = at[v] - range[0];
  }
}

/// Entries of all buckets before each, from what the chunks say. Gives back the number of all entries.
std::uint64_t sum_up(const plan& s) {
  std::vector<std::uint64_t> first(s.buckets + 1, 0);
  for (std::uint64_t c = 0; c < s.chunks; ++c) {
    auto starts = gw::checkout(s.starts_of(c), s.buckets + 1, gw::access::read);
    for (std::uint64_t b = 0; b < s.buckets; ++b) first[b + 1] += starts[b + 1] - starts[b];
  }
  for (std::uint64_t b = 0; b < s.buckets; ++b) first[b + 1] += first[b];
  gw::put(s.first, first.data(), first.size());
  return first.back();
}

}  // namespace

global_graph build(const problem& p) {
  const auto spread = gw::distribution::blocked();
  plan s{.p = p,
         .chunks = (p.edges() + chunk_edges - 1) / chunk_edges,
         .buckets = 0,
         .width = 0,
         .sorted = {},
         .starts = {},
         .first = {}};
  s.width = std::max<std::uint64_t>(64, (p.vertices() + most_buckets - 1) / most_buckets);
  s.buckets = (p.vertices() + s.width - 1) / s.width;
  s.sorted = gw::allocate<entry>(2 * chunk_edges * s.chunks, spread);
  s.starts = gw::allocate<std::uint32_t>((s.buckets + 1) * s.chunks, spread);
  s.first = gw::allocate<std::uint64_t>(s.buckets + 1);
  bench::each_block(0, s.chunks, [s](std::uint64_t c) { sort_chunk(s, c); });
  global_graph g;
  g.vertices = p.vertices();
  g.entries = sum_up(s);
  g.offsets = gw::allocate<std::uint64_t>(g.vertices + 1, spread);
  g.targets = gw::allocate<vertex>(g.entries, spread);
  bench::each_block(0, s.buckets, [s, g](std::uint64_t b) { make_rows(s, g, b); });
  gw::deallocate(s.sorted, 2 * chunk_edges * s.chunks);
  gw::deallocate(s.starts, (s.buckets + 1) * s.chunks);
  gw::deallocate(s.first, s.buckets + 1);
  return g;
}

void destroy(const global_graph& g) {
  gw::deallocate(g.offsets, g.vertices + 1);
  gw::deallocate(g.targets, g.entries);
}

namespace {
template <class T>
bool equal(gw::global_ptr<T> p, const std::vector<T>& expected) {
  constexpr std::size_t piece = 1 << 20;
  for (std::size_t at = 0; at < expected.size(); at += piece) {
    const std::size_t n = std::min(piece, expected.size() - at);
    auto have = gw::checkout(p + static_cast<std::ptrdiff_t>(at), n, gw::access::read);
    if (!std::equal(have.begin(), have.end(), expected.data() + at)) return false;
  }
  return true;
}
}  // namespace

bool equal(const global_graph& g, const plain_graph& expected) {
  return g.vertices == expected.vertices() && g.entries == expected.targets.size() &&
         equal(g.offsets, expected.offsets) && equal(g.targets, expected.targets);
}

}  // namespace graph
