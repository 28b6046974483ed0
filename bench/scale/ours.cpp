// UTS and BTC whose lower levels are charged. See scale.hpp.

#include <cmath>
#include <godwit/godwit.hpp>
#include <godwit/sim.hpp>

#include "scale.hpp"

namespace scale {

trees the_search;

namespace {

using uts::node;
using uts::the_tree;
using uts::totals;

/// Where uts::tree wants SHA-1: a number that is mixed. The low 31 bits of the last word decide.
struct law_hash {
  [[gnu::always_inline]] static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  [[gnu::always_inline]] static void set(std::uint64_t state, std::uint32_t depth, node& to) {
    const auto low = static_cast<std::uint32_t>(state), high = static_cast<std::uint32_t>(state >> 32);
    to.set(low, high, 0, 0, high, depth);
  }
  [[gnu::always_inline]] static void child(const node& parent, std::uint32_t i, node& to) {
    const std::uint64_t state = std::uint64_t{parent.head[1]} << 32 | parent.head[0];
    set(mixed(state + (i + 1) * 0x9e3779b97f4a7c15u), parent.depth() + 1, to);
  }
  static node root(int seed) {
    node n;
    set(mixed(static_cast<std::uint64_t>(seed) + 1), 0, n);
    return n;
  }
};

#if BENCH_HAS_SHA_NI
struct sha_hash {
  static void child(const node& parent, std::uint32_t i, node& to) {
    static const bool fast = uts::sha1_ni::available();
    fast ? uts::sha1_ni::child(parent, i, to) : uts::sha1_portable::child(parent, i, to);
  }
};
#else
using sha_hash = uts::sha1_portable;
#endif

/// The subtree of n. Leaves of the last level are counted only: it has most of the nodes, and no state of a
/// leaf decides anything.
template <class Hash>
void count(const node& n, totals& t) {
  const int children = the_tree.children(n);
  t += uts::just(n, children);
  if (children != 0 && the_tree.ends_at(n.depth() + 1)) {
    const auto leaves = static_cast<std::uint64_t>(children);
    t += {leaves, leaves, n.depth() + 1};
    return;
  }
  for (int i = 0; i < children; ++i) {
    node c;
    the_tree.child<Hash>(n, i, c);
    count<Hash>(c, t);
  }
}

template <class P, class Hash>
totals subtree(const node& n);

/// Children i..last of parent, each a thread, the last one a call.
template <class P, class Hash>
totals siblings(const node& parent, int i, int last) {
  node c;
  the_tree.child<Hash>(parent, i, c);
  if (i + 1 == last) return subtree<P, Hash>(c);
  auto one = P::spawn([c] { return subtree<P, Hash>(c); });
  totals t = siblings<P, Hash>(parent, i + 1, last);
  t += one.join();
  return t;
}

template <class P, class Hash>
totals subtree(const node& n) {
  totals t;
  if (n.depth() + the_search.grain >= static_cast<std::uint32_t>(the_tree.made_from().depth)) {
    count<Hash>(n, t);
    godwit::sim::charge(all_ns(t.nodes, the_search.node_ns));
    return t;
  }
  godwit::sim::charge(all_ns(1, the_search.node_ns));
  const int children = the_tree.children(n);
  t = uts::just(n, children);
  if (children != 0) t += siblings<P, Hash>(n, 0, children);
  return t;
}

template <class P>
totals search() {
  if (the_search.how == hash::sha) return subtree<P, sha_hash>(the_tree.root());
  return subtree<P, law_hash>(law_hash::root(the_tree.made_from().seed));
}

/// Expected size of the whole tree by what its first @p levels are.
double expected_size(const node& n, int levels, double branching) {
  const int below = the_tree.made_from().depth - static_cast<int>(n.depth());
  if (levels == 0) return (std::pow(branching, below + 1) - 1) / (branching - 1);
  double size = 1;
  for (int i = 0, children = the_tree.children(n); i < children; ++i) {
    node c;
    the_tree.child<law_hash>(n, i, c);
    size += expected_size(c, levels - 1, branching);
  }
  return size;
}

template <class P>
std::uint64_t binary(tasks t) {
  const std::uint64_t here = (std::uint64_t{2} << t.depth) - 1;
  if (t.depth <= t.grain) {
    compute(all_ns(here, t.task_ns));
    return here;
  }
  compute(all_ns(1, t.task_ns));
  --t.depth;
  auto a = P::spawn([t] { return binary<P>(t); });
  auto b = P::spawn([t] { return binary<P>(t); });
  const std::uint64_t one = b.join();
  return 1 + one + a.join();
}

}  // namespace

int seed_near(uts::parameters p, double nodes) {
  constexpr int seeds = 400, levels = 6;
  int best = 0;
  double distance = HUGE_VAL;
  for (p.seed = 0; p.seed < seeds; ++p.seed) {
    the_tree = uts::tree(p);
    const double size = expected_size(law_hash::root(p.seed), levels, p.branching);
    if (const double d = std::abs(std::log(size / nodes)); d < distance) distance = d, best = p.seed;
  }
  return best;
}

totals (*search_under(const std::string& policy))() {
  return godwit::with_policy(godwit::choice::named{policy}, [](auto p) { return &search<decltype(p)>; });
}

std::uint64_t (*tasks_under(const std::string& policy))(tasks t) {
  return godwit::with_policy(godwit::choice::named{policy}, [](auto p) { return &binary<decltype(p)>; });
}

}  // namespace scale
