// Breadth-first search in global memory, level by level. Push: the frontier's vertices claim their neighbours
// by compare-exchange on the parent. Pull: each vertex that is left looks for a neighbour in the frontier, a
// bitmap; only its own thread writes there.

#include <bit>

#include "ours.hpp"

namespace graph {

namespace {

constexpr std::uint64_t grain_frontier = 64;
constexpr std::uint64_t grain_list = 2048;
constexpr std::uint64_t grain_words = 64;  ///< of bitmaps, 64 vertices each

/// What a level found: vertices, and entries of their rows.
struct tally {
  std::uint64_t vertices = 0, entries = 0;
  tally& operator+=(const tally& o) {
    vertices += o.vertices;
    entries += o.entries;
    return *this;
  }
};

/// All of a bitmap, for reading in a leaf.
class bitmap {
 public:
  bitmap(gw::global_ptr<std::uint64_t> p, std::uint64_t words)
      : words_(gw::checkout(p, words, gw::access::read)) {}
  bool operator[](std::uint64_t v) const { return (words_[v / 64] >> (v % 64) & 1) != 0; }

 private:
  gw::checked_out<const std::uint64_t> words_;
};

std::uint64_t words_of(const global_graph& g) { return (g.vertices + 63) / 64; }

/// Vertices on their way into the list of what was found.
class appender {
 public:
  explicit appender(const bfs_room& r) : r_(r) {}
  ~appender() { flush(); }
  appender(const appender&) = delete;
  appender& operator=(const appender&) = delete;
  void push(vertex v) {
    if (n_ == sizeof buffer_ / sizeof buffer_[0]) flush();
    buffer_[n_++] = v;
  }

 private:
  void flush() {
    if (n_ == 0) return;
    const std::uint64_t at = gw::atomic_fetch_add(r_.count, n_, std::memory_order_relaxed);
    gw::put(r_.found + static_cast<std::ptrdiff_t>(at), buffer_, n_);
    n_ = 0;
  }
  const bfs_room& r_;
  std::size_t n_ = 0;
  vertex buffer_[512];
};

// Apart from the code that spawns, so that the buffers are in no frame that is stolen.
[[gnu::noinline]] void push_piece(const global_graph& g, const bfs_room& r, std::uint64_t from,
                                  std::uint64_t to) {
  const bitmap seen(r.seen, words_of(g));
  appender out(r);
  for (const vertex u :
       gw::checkout(r.frontier + static_cast<std::ptrdiff_t>(from), to - from, gw::access::read)) {
    std::uint64_t row[2];
    gw::get(g.offsets + u, row, 2);
    for (const vertex v :
         gw::checkout(g.targets + static_cast<std::ptrdiff_t>(row[0]), row[1] - row[0], gw::access::read)) {
      if (seen[v]) continue;
      vertex expected = none;
      if (gw::atomic_compare_exchange(r.parent + v, expected, u, std::memory_order_relaxed)) out.push(v);
    }
  }
}

/// Enter the vertices of a list into bitmaps.
tally mark_piece(const global_graph& g, gw::global_ptr<vertex> list, gw::global_ptr<std::uint64_t> bits,
                 std::uint64_t from, std::uint64_t to) {
  tally sum;
  for (const vertex v : gw::checkout(list + static_cast<std::ptrdiff_t>(from), to - from, gw::access::read)) {
    gw::atomic_fetch_or(bits + v / 64, std::uint64_t{1} << (v % 64), std::memory_order_relaxed);
    std::uint64_t row[2];
    gw::get(g.offsets + v, row, 2);
    sum += {1, row[1] - row[0]};
  }
  return sum;
}

tally mark(const global_graph& g, gw::global_ptr<vertex> list, std::uint64_t count,
           gw::global_ptr<std::uint64_t> bits) {
  return bench::each_piece(count, grain_list, [=](std::uint64_t from, std::uint64_t to) {
    return mark_piece(g, list, bits, from, to);
  });
}

/// What a push found when that is much: the front becomes all that have a parent and were not seen. No
/// atomics, every word has one writer; between hosts an atomic per vertex would be a round trip each.
tally scan_piece(const global_graph& g, const bfs_room& r, std::uint64_t first_word,
                 std::uint64_t last_word) {
  const std::uint64_t low = first_word * 64, n = std::min(g.vertices, last_word * 64) - low;
  const auto at = static_cast<std::ptrdiff_t>(low);
  auto offsets = gw::checkout(g.offsets + at, n + 1, gw::access::read);
  auto parent = gw::checkout(r.parent + at, n, gw::access::read);
  auto seen = gw::checkout(r.seen + static_cast<std::ptrdiff_t>(first_word), last_word - first_word,
                           gw::access::read_write);
  auto front = gw::checkout(r.front + static_cast<std::ptrdiff_t>(first_word), last_word - first_word,
                            gw::access::write);
  tally sum;
  for (std::uint64_t w = 0; w < last_word - first_word; ++w) {
    std::uint64_t reached = 0;
    for (std::uint64_t bit = 0; bit < std::min<std::uint64_t>(64, n - w * 64); ++bit)
      reached |= std::uint64_t{parent[w * 64 + bit] != none} << bit;
    front[w] = reached & ~seen[w];
    for (std::uint64_t bits = front[w]; bits != 0; bits &= bits - 1) {
      const std::uint64_t v = w * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
      sum += {1, offsets[v + 1] - offsets[v]};
    }
    seen[w] |= reached;
  }
  return sum;
}

tally pull_piece(const global_graph& g, const bfs_room& r, std::uint64_t first_word,
                 std::uint64_t last_word) {
  const std::uint64_t low = first_word * 64, n = std::min(g.vertices, last_word * 64) - low;
  const auto at = static_cast<std::ptrdiff_t>(low);
  const bitmap front(r.front, words_of(g));
  auto offsets = gw::checkout(g.offsets + at, n + 1, gw::access::read);
  auto targets = gw::checkout(g.targets + static_cast<std::ptrdiff_t>(offsets[0]), offsets[n] - offsets[0],
                              gw::access::read);
  auto parent = gw::checkout(r.parent + at, n, gw::access::read_write);
  auto seen = gw::checkout(r.seen + static_cast<std::ptrdiff_t>(first_word), last_word - first_word,
                           gw::access::read_write);
  auto next = gw::checkout(r.next + static_cast<std::ptrdiff_t>(first_word), last_word - first_word,
                           gw::access::write);
  tally sum;
  for (std::uint64_t w = 0; w < last_word - first_word; ++w) {
    const std::uint64_t left = n - w * 64;
    std::uint64_t unseen = ~seen[w] & (left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1),
                  found = 0;
    for (; unseen != 0; unseen &= unseen - 1) {
      const std::uint64_t bit = static_cast<std::uint64_t>(std::countr_zero(unseen)), v = w * 64 + bit;
      for (std::uint64_t e = offsets[v] - offsets[0]; e < offsets[v + 1] - offsets[0]; ++e) {
        if (!front[targets[e]]) continue;
        parent[v] = targets[e];
        found |= std::uint64_t{1} << bit;
        sum += {1, offsets[v + 1] - offsets[v]};
        break;
      }
    }
    seen[w] |= found;
    next[w] = found;
  }
  return sum;
}

/// The vertices of the bitmap `front` become the list `found`.
[[gnu::noinline]] void list_piece(const bfs_room& r, std::uint64_t first_word, std::uint64_t last_word) {
  appender out(r);
  auto front = gw::checkout(r.front + static_cast<std::ptrdiff_t>(first_word), last_word - first_word,
                            gw::access::read);
  for (std::uint64_t w = 0; w < front.size(); ++w)
    for (std::uint64_t bits = front[w]; bits != 0; bits &= bits - 1)
      out.push(static_cast<vertex>((first_word + w) * 64 + static_cast<unsigned>(std::countr_zero(bits))));
}

template <class T>
void fill(gw::global_ptr<T> p, std::uint64_t n, T value) {
  bench::each_piece(n, 64 << 10, [=](std::uint64_t from, std::uint64_t to) {
    for (T& x : gw::checkout(p + static_cast<std::ptrdiff_t>(from), to - from, gw::access::write)) x = value;
  });
}

}  // namespace

bfs_room make_bfs_room(const global_graph& g, const gw::distribution& parents) {
  const auto spread = gw::distribution::blocked();
  bfs_room r;
  r.parent = gw::allocate<vertex>(g.vertices, parents);
  r.frontier = gw::allocate<vertex>(g.vertices, spread);
  r.found = gw::allocate<vertex>(g.vertices, spread);
  r.seen = gw::allocate<std::uint64_t>(words_of(g), spread);
  r.front = gw::allocate<std::uint64_t>(words_of(g), spread);
  r.next = gw::allocate<std::uint64_t>(words_of(g), spread);
  r.count = gw::global_new<std::uint64_t>(0u);
  return r;
}

void destroy(const bfs_room& r, const global_graph& g) {
  gw::deallocate(r.parent, g.vertices);
  gw::deallocate(r.frontier, g.vertices);
  gw::deallocate(r.found, g.vertices);
  gw::deallocate(r.seen, words_of(g));
  gw::deallocate(r.front, words_of(g));
  gw::deallocate(r.next, words_of(g));
  gw::global_delete(r.count);
}

void bfs(const global_graph& g, bfs_room r, vertex source) {
  const std::uint64_t words = words_of(g);
  fill(r.parent, g.vertices, none);
  fill(r.seen, words, std::uint64_t{0});
  gw::put(r.parent + source, source);
  gw::put(r.frontier, source);
  tally level = mark(g, r.frontier, 1, r.seen);
  std::uint64_t left = g.entries - level.entries;
  bool in_front = false;  // the frontier is a bitmap, too
  while (level.vertices != 0) {
    if (!should_pull(level.entries, left)) {
      gw::atomic_store(r.count, 0u);
      bench::each_piece(level.vertices, grain_frontier,
                        [=](std::uint64_t from, std::uint64_t to) { push_piece(g, r, from, to); });
      const std::uint64_t count = gw::atomic_load(r.count);
      in_front = count > g.vertices / 64;
      if (in_front)
        level = bench::each_piece(words, grain_words, [=](std::uint64_t from, std::uint64_t to) {
          return scan_piece(g, r, from, to);
        });
      else
        level = mark(g, r.found, count, r.seen);
      std::swap(r.frontier, r.found);
      left -= level.entries;
      continue;
    }
    if (!in_front) {
      fill(r.front, words, std::uint64_t{0});
      mark(g, r.frontier, level.vertices, r.front);
    }
    in_front = false;
    std::uint64_t before;
    do {
      before = level.vertices;
      level = bench::each_piece(words, grain_words, [=](std::uint64_t from, std::uint64_t to) {
        return pull_piece(g, r, from, to);
      });
      left -= level.entries;
      std::swap(r.front, r.next);
    } while (level.vertices != 0 && (level.vertices >= before || !should_push(level.vertices, g.vertices)));
    gw::atomic_store(r.count, 0u);
    bench::each_piece(words, grain_words,
                      [=](std::uint64_t from, std::uint64_t to) { list_piece(r, from, to); });
    std::swap(r.frontier, r.found);
  }
}

}  // namespace graph
