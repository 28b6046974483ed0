// The search in godwit: subtrees are threads.
//
// A node's children are split in halves; the left half becomes a thread, the right half goes on in the calling
// one. So a frame holds one future, however many children there are (2,000 at a binomial root), and the
// continuations that thieves find oldest are the largest. Threads get their node by value: what a closure
// refers to in its parent's frame stays behind when the thread migrates.

#include "serial.hpp"

#include <godwit/godwit.hpp>

namespace uts {

live_page* live = nullptr;

namespace {

// A worker counts in its own cell: nobody else writes it, so no atomic addition is needed.
template <bool Live>
[[gnu::always_inline]] inline void count_live(int nodes) {
  if constexpr (Live) {
    auto& mine = live->of_worker[godwit::worker_id() % live_page::most_workers].nodes;
    mine.store(mine.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(nodes),
               std::memory_order_relaxed);
  }
}

template <class Sha, bool Live>
totals every(const node& n);

template <class Sha, bool Live>
totals every_of(const node& parent, int first, int last) {
  if (last - first == 1) return every<Sha, Live>(the_tree.child<Sha>(parent, first));
  const int middle = first + (last - first) / 2;
  auto left = godwit::spawn([=] { return every_of<Sha, Live>(parent, first, middle); });
  totals t = every_of<Sha, Live>(parent, middle, last);
  t += left.join();
  return t;
}

template <class Sha, bool Live>
totals every(const node& n) {
  const int children = the_tree.children(n);
  totals t{1, children == 0, static_cast<std::uint64_t>(n.depth)};
  if (children != 0) {
    count_live<Live>(children);
    t += every_of<Sha, Live>(n, 0, children);
  }
  return t;
}

template <class Sha, bool Live>
totals inner(const node& n, int children);

// Children first..last of parent, after `waiting`, a child that has `its` children: it becomes a thread as
// soon as there is something to do beside it.
template <class Sha, bool Live>
totals inner_of(const node& parent, int first, int last, const node& waiting, int its) {
  totals t;
  for (int i = first; i < last; ++i) {
    const node c = the_tree.child<Sha>(parent, i);
    const int of_c = the_tree.children(c);
    if (of_c == 0) {
      t += {1, 1, static_cast<std::uint64_t>(c.depth)};
    } else {
      auto before = godwit::spawn([waiting, its] { return inner<Sha, Live>(waiting, its); });
      t += inner_of<Sha, Live>(parent, i + 1, last, c, of_c);
      t += before.join();
      return t;
    }
  }
  t += inner<Sha, Live>(waiting, its);
  return t;
}

template <class Sha, bool Live>
totals inner(const node& n, int children) {
  totals t{1, children == 0, static_cast<std::uint64_t>(n.depth)};
  count_live<Live>(children);
  for (int i = 0; i < children; ++i) {
    const node c = the_tree.child<Sha>(n, i);
    const int its = the_tree.children(c);
    if (its != 0) {
      t += inner_of<Sha, Live>(n, i + 1, children, c, its);
      break;
    }
    t += {1, 1, static_cast<std::uint64_t>(c.depth)};
  }
  return t;
}

template <class Sha, bool Live>
totals search(threads which) {
  const node root = the_tree.root();
  return which == threads::every ? every<Sha, Live>(root) : inner<Sha, Live>(root, the_tree.children(root));
}

}  // namespace

totals search_godwit(threads which, bool ni, bool with_live) {
#if BENCH_HAS_SHA_NI
  if (ni) return with_live ? search<sha1_ni, true>(which) : search<sha1_ni, false>(which);
#endif
  static_cast<void>(ni);
  return with_live ? search<sha1_portable, true>(which) : search<sha1_portable, false>(which);
}

}  // namespace uts
