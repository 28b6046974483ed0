// The search in oneTBB: the children that get a thread in ours.cpp are tasks of their parent's group; the
// last child is a call, as there.

#include "searches.hpp"

#if BENCH_HAS_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <vector>

namespace uts {

namespace {

// @p children: of n.
template <class Sha, threads Which>
totals search(const node& n, int children) {
  totals t = just(n, children);
  std::vector<totals> parts;  // of the tasks; empty where all children are leaves
  tbb::task_group group;
  for (int i = 0; i < children; ++i) {
    node c;
    the_tree.child<Sha>(n, i, c);
    const int its = the_tree.children(c);
    if (Which == threads::inner && its == 0) {
      t += just(c, 0);
    } else if (i + 1 == children) {
      t += search<Sha, Which>(c, its);
    } else {
      if (parts.empty()) parts.resize(static_cast<std::size_t>(children));
      group.run([c, its, to = &parts[static_cast<std::size_t>(i)]] { *to = search<Sha, Which>(c, its); });
    }
  }
  if (parts.empty()) return t;
  group.wait();
  for (const auto& part : parts) t += part;
  return t;
}

template <class Sha>
totals search_all(threads which) {
  const node root = the_tree.root();
  const int children = the_tree.children(root);
  return which == threads::every ? search<Sha, threads::every>(root, children)
                                 : search<Sha, threads::inner>(root, children);
}

}  // namespace

totals search_tbb(unsigned workers, threads which, bool ni) {
  using tbb::global_control;
  global_control most(global_control::max_allowed_parallelism, workers);
  global_control stack(global_control::thread_stack_size, std::size_t{256} << 20);
  tbb::task_arena arena(static_cast<int>(workers));
  return arena.execute([which, ni] {
#if BENCH_HAS_SHA_NI
    if (ni) return search_all<sha1_ni>(which);
#endif
    static_cast<void>(ni);
    return search_all<sha1_portable>(which);
  });
}

}  // namespace uts
#else
uts::totals uts::search_tbb(unsigned, threads, bool) { return {}; }
#endif
