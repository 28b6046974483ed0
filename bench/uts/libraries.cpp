// The search in other libraries of lightweight threads, where they are found: the children that get a thread
// in ours.cpp get one here, and so does the last one: stacks are small, and a chain of calls may be as deep
// as the tree.
#include "../common/thread_libraries.hpp"

#include "searches.hpp"

namespace uts {

namespace {

template <class L>
struct part {
  node n;
  int children;
  totals found;
  typename L::handle thread;
};

template <class L, class Sha, threads Which>
void search(void* argument) {
  part<L>& mine = *static_cast<part<L>*>(argument);
  totals t = just(mine.n, mine.children);
  std::vector<part<L>> parts;
  for (int i = 0; i < mine.children; ++i) {
    node c;
    the_tree.child<Sha>(mine.n, i, c);
    const int its = the_tree.children(c);
    if (Which == threads::inner && its == 0) {
      t += just(c, 0);
      continue;
    }
    if (parts.empty())
      parts.reserve(static_cast<std::size_t>(mine.children));  // threads keep their part's address
    part<L>& p = parts.emplace_back(part<L>{c, its, {}, {}});
    L::template create<search<L, Sha, Which>>(p.thread, &p);
  }
  for (part<L>& p : parts) {
    L::join(p.thread);
    t += p.found;
  }
  mine.found = t;
}

template <class L, class Sha>
totals search_all(unsigned workers, threads which) {
  const node root = the_tree.root();
  part<L> all{root, the_tree.children(root), {}, {}};
  L::run(workers, bench::first::child, [&] {
    which == threads::every ? search<L, Sha, threads::every>(&all) : search<L, Sha, threads::inner>(&all);
  });
  return all.found;
}

}  // namespace

std::vector<library> libraries() {
  std::vector<library> all;
  bench::for_each_thread_library([&]<class L>() {
    all.push_back({L::name, [](unsigned workers, threads which, bool ni) {
#if BENCH_HAS_SHA_NI
                     if (ni) return search_all<L, sha1_ni>(workers, which);
#endif
                     static_cast<void>(ni);
                     return search_all<L, sha1_portable>(workers, which);
                   }});
  });
#if BENCH_HAS_LACE
  all.push_back({"lace", search_lace});
#endif
#if BENCH_HAS_LIBFORK
  all.push_back({"libfork", search_libfork});
#endif
  return all;
}

}  // namespace uts
