// The search in OpenMP: the children that get a thread in ours.cpp are tasks, their parent waits for them;
// the last child is a call, as there.

#include "searches.hpp"

#if BENCH_HAS_OPENMP
#include <vector>

namespace uts {

namespace {

// @p children: of n.
template <class Sha, threads Which>
totals search(const node& n, int children) {
  totals t = just(n, children);
  std::vector<totals> parts;  // of the tasks; empty where all children are leaves
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
      totals* const to = &parts[static_cast<std::size_t>(i)];
#pragma omp task firstprivate(c, its, to)
      *to = search<Sha, Which>(c, its);
    }
  }
  if (parts.empty()) return t;
#pragma omp taskwait
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

totals search_openmp(unsigned workers, threads which, bool ni) {
  totals t;
#pragma omp parallel num_threads(static_cast <int>(workers))
#pragma omp single
  {
#if BENCH_HAS_SHA_NI
    if (ni)
      t = search_all<sha1_ni>(which);
    else
#endif
      t = search_all<sha1_portable>(which);
  }
  static_cast<void>(ni);
  return t;
}

}  // namespace uts
#else
uts::totals uts::search_openmp(unsigned, threads, bool) { return {}; }
#endif
