// The search in godwit: subtrees are threads.
//
// A thread is a `subtree`: 24 bytes, made where spawn takes it from, moved into the thread by value (what a
// closure refers to in its parent's frame would stay behind when the thread migrates). The siblings of a node
// follow one another by recursion, so a frame holds one or two futures, however many children there are
// (2,000 at a binomial root). Tried and slower, time on one worker over serial code on T1: splitting the
// children in halves (1.17), keeping one child back so that it can be a call (1.02 instead of 1.01).

#include <godwit/godwit.hpp>

#include "serial.hpp"

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

// Every child is a thread.
template <class Sha, bool Live>
struct subtree {
  node n;
  totals operator()() const;
};

// Children i..last of parent: two per frame, because that costs less than one.
template <class Sha, bool Live>
totals siblings(const node& parent, int i, int last) {
  subtree<Sha, Live> one;
  the_tree.child<Sha>(parent, i, one.n);
  if (i + 1 == last) return one();
  auto first = godwit::spawn(std::move(one));
  subtree<Sha, Live> two;
  the_tree.child<Sha>(parent, i + 1, two.n);
  if (i + 2 == last) {
    totals t = two();
    t += first.join();
    return t;
  }
  auto second = godwit::spawn(std::move(two));
  totals t = siblings<Sha, Live>(parent, i + 2, last);
  t += second.join();
  t += first.join();
  return t;
}

template <class Sha, bool Live>
totals subtree<Sha, Live>::operator()() const {
  const int children = the_tree.children(n);
  totals t = just(n, children);
  if (children != 0) {
    count_live<Live>(children);
    t += siblings<Sha, Live>(n, 0, children);
  }
  return t;
}

// Every child that has children is a thread; the last one is a call.
template <class Sha, bool Live>
struct inner_subtree {
  node n;
  totals operator()() const;
};

template <class Sha, bool Live>
totals inner_siblings(const node& parent, int i, int last) {
  totals t;
  for (; i < last; ++i) {
    inner_subtree<Sha, Live> c;
    the_tree.child<Sha>(parent, i, c.n);
    if (the_tree.children(c.n) == 0) {
      t += just(c.n, 0);
      continue;
    }
    if (i + 1 == last) {
      t += c();
      return t;
    }
    auto here = godwit::spawn(std::move(c));
    t += inner_siblings<Sha, Live>(parent, i + 1, last);
    t += here.join();
    return t;
  }
  return t;
}

template <class Sha, bool Live>
totals inner_subtree<Sha, Live>::operator()() const {
  const int children = the_tree.children(n);
  totals t = just(n, children);
  count_live<Live>(children);
  t += inner_siblings<Sha, Live>(n, 0, children);
  return t;
}

template <class Sha, bool Live>
totals search(threads which) {
  const node root = the_tree.root();
  return which == threads::every ? subtree<Sha, Live>{root}() : inner_subtree<Sha, Live>{root}();
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
