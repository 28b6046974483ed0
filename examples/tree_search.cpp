// An unbalanced tree: nobody knows how large a subtree is before it has been searched.
//
//   example_tree_search [SEED] --godwit-workers=4
//
// Each node is a thread. An idle worker steals the oldest continuation of another one, which is as a rule the
// largest piece of work. The benchmark: bench/uts.
#include <godwit/godwit.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace gw = godwit;

struct node {
  std::uint64_t state;
  int depth;
};

/// The same state gives the same children on every schedule.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct result {
  std::uint64_t nodes = 0;
  int depth = 0;
};

result search(node n) {
  constexpr int most = 4;
  result all{1, n.depth};
  const std::uint64_t drawn = n.state >> 40;  // of 2^24
  const int children = n.depth < 12 ? most : drawn < (1u << 24) * 0.249 ? most : 0;
  std::array<gw::future<result>, most> below;
  for (int i = 0; i < children; ++i)
    below[i] = gw::spawn(search, node{mix(n.state + static_cast<std::uint64_t>(i) + 1), n.depth + 1});
  for (int i = 0; i < children; ++i) {
    const result r = below[i].join();
    all.nodes += r.nodes;
    all.depth = std::max(all.depth, r.depth);
  }
  return all;
}

int main(int argc, char** argv) {
  gw::take_options(argc, argv);
  const std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  return gw::run(argc, argv, [seed] {
    const result r = search({mix(seed), 6});
    std::cout << r.nodes << " nodes, the deepest at " << r.depth - 6 << '\n';
  });
}
