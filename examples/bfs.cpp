// Breadth-first search: how many steps lead from one vertex to each other one, level by level.
//
// The graph lies in global memory, each vertex's neighbours side by side, and so does the frontier: the
// vertices of the last level. Blocks of it are threads; a vertex belongs to whoever exchanges its parent
// first. The graph is de Bruijn's: v leads to 2v and 2v + 1, modulo their number, so all vertices are
// reached. The benchmark, on graphs with rows of any length and searching in both directions:
// bench/global/graph.
#include <godwit/godwit.hpp>

#include <cstdint>
#include <iostream>
#include <utility>

namespace gw = godwit;

constexpr std::uint32_t vertices = 1 << 16, degree = 2, none = ~0u;
constexpr std::uint64_t leaf = 128;

template <class F>
void blocks(std::uint64_t low, std::uint64_t high, F f) {
  if (high - low <= leaf) return f(low, high);
  const std::uint64_t middle = low + (high - low) / 2;
  gw::invoke([=] { blocks(low, middle, f); }, [=] { blocks(middle, high, f); });
}

// A handle: closures copy it.
struct search {
  gw::global_span<std::uint32_t> neighbours, parent, frontier, next;
  gw::global_ptr<std::uint64_t> count;  // of next
};

void expand(search s, std::uint64_t low, std::uint64_t high) {
  for (const std::uint32_t u : s.frontier.subspan(low, high - low).checkout(gw::access::read)) {
    std::uint32_t to[degree];
    gw::get(s.neighbours.data() + u * degree, to, degree);
    for (const std::uint32_t v : to) {
      std::uint32_t expected = none;
      if (gw::atomic_compare_exchange(s.parent.data() + v, expected, u))
        s.next[gw::atomic_fetch_add(s.count, 1)] = v;
    }
  }
}

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    const auto spread = gw::distribution::blocked();
    gw::global_array<std::uint32_t> neighbours(vertices * degree, spread), frontier(vertices, spread),
        next(vertices, spread);
    gw::global_array<std::uint32_t> parent(vertices, spread, none);
    search s{neighbours.span(), parent.span(), frontier.span(), next.span(), gw::global_new<std::uint64_t>()};
    blocks(0, vertices, [s](std::uint64_t low, std::uint64_t high) {
      const auto out = s.neighbours.subspan(low * degree, (high - low) * degree).checkout(gw::access::write);
      for (std::uint64_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<std::uint32_t>((low * degree + i) % vertices);
    });
    constexpr std::uint32_t source = 1;
    s.parent[source] = source;
    s.frontier[0] = source;
    std::uint64_t reached = 0, steps = 0;
    for (std::uint64_t found = 1; found != 0; ++steps) {
      reached += found;
      gw::atomic_store(s.count, 0);
      blocks(0, found, [s](std::uint64_t low, std::uint64_t high) { expand(s, low, high); });
      found = gw::atomic_load(s.count);
      std::swap(s.frontier, s.next);
    }
    std::cout << reached << " of " << vertices << " vertices within " << steps - 1 << " steps\n";
    gw::global_delete(s.count);
  });
}
