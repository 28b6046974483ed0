// The search in godwit: subtrees are threads.
//
// A thread is a `subtree`: up to 32 bytes, made where spawn takes it from, moved into it by value (what a
// closure refers to in its parent's frame would stay behind when the thread migrates). The siblings of a node
// follow one another by recursion, so a frame holds one or two futures, however many children there are
// (2,000 at a binomial root). Tried and slower, time on one worker over serial code on T1: splitting the
// children in halves (1.17), keeping one child back so that it can be a call (1.02 instead of 1.01).

#include <godwit/godwit.hpp>
#include <stdexcept>

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
template <class P, class Sha, bool Live>
struct subtree {
  node n;
  totals operator()() const;
};

// Children i..last of parent: two per frame, because that costs less than one.
template <class P, class Sha, bool Live>
totals siblings(const node& parent, int i, int last) {
  subtree<P, Sha, Live> one;
  the_tree.child<Sha>(parent, i, one.n);
  if (i + 1 == last) return one();
  auto first = P::spawn(std::move(one));
  subtree<P, Sha, Live> two;
  the_tree.child<Sha>(parent, i + 1, two.n);
  if (i + 2 == last) {
    totals t = two();
    t += first.join();
    return t;
  }
  auto second = P::spawn(std::move(two));
  totals t = siblings<P, Sha, Live>(parent, i + 2, last);
  t += second.join();
  t += first.join();
  return t;
}

template <class P, class Sha, bool Live>
totals subtree<P, Sha, Live>::operator()() const {
  const int children = the_tree.children(n);
  totals t = just(n, children);
  if (children != 0) {
    count_live<Live>(children);
    t += siblings<P, Sha, Live>(n, 0, children);
  }
  return t;
}

// Every child that has children is a thread; the last one is a call.
template <class P, class Sha, bool Live>
struct inner_subtree {
  node n;
  int children;  ///< how many n has: who made it had to know
  totals operator()() const;
};

// Children i..last of parent: two per frame, as above.
template <class P, class Sha, bool Live>
totals inner_siblings(const node& parent, int i, int last) {
  totals t;
  inner_subtree<P, Sha, Live> one;
  for (;; ++i) {
    if (i == last) return t;
    the_tree.child<Sha>(parent, i, one.n);
    one.children = the_tree.children(one.n);
    if (one.children != 0) break;
    t += just(one.n, 0);
  }
  if (i + 1 == last) {
    t += one();
    return t;
  }
  auto first = P::spawn(std::move(one));
  for (++i; i < last; ++i) {
    inner_subtree<P, Sha, Live> two;
    the_tree.child<Sha>(parent, i, two.n);
    two.children = the_tree.children(two.n);
    if (two.children == 0) {
      t += just(two.n, 0);
      continue;
    }
    if (i + 1 == last) {
      t += two();
      break;
    }
    auto second = P::spawn(std::move(two));
    t += inner_siblings<P, Sha, Live>(parent, i + 1, last);
    t += second.join();
    break;
  }
  t += first.join();
  return t;
}

template <class P, class Sha, bool Live>
totals inner_subtree<P, Sha, Live>::operator()() const {
  totals t = just(n, children);
  count_live<Live>(children);
  t += inner_siblings<P, Sha, Live>(n, 0, children);
  return t;
}

template <class P, class Sha, bool Live>
totals search(threads which) {
  const node root = the_tree.root();
  return which == threads::every ? subtree<P, Sha, Live>{root}()
                                 : inner_subtree<P, Sha, Live>{root, the_tree.children(root)}();
}

}  // namespace

totals (*search_under(const std::string& policy, bool ni, bool with_live))(threads which) {
  if (with_live && policy != godwit::policies::greedy::name)
    throw std::invalid_argument("the live display is for the default policy only");
#if BENCH_HAS_SHA_NI
  if (ni && with_live) return &search<godwit::policies::greedy, sha1_ni, true>;
  if (ni)
    return godwit::with_policy(godwit::choice::named{policy},
                               [](auto p) { return &search<decltype(p), sha1_ni, false>; });
#endif
  static_cast<void>(ni);
  if (with_live) return &search<godwit::policies::greedy, sha1_portable, true>;
  return godwit::with_policy(godwit::choice::named{policy},
                             [](auto p) { return &search<decltype(p), sha1_portable, false>; });
}

}  // namespace uts
