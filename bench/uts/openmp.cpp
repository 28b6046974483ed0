// The search in OpenMP: every child is a task, its parent waits for all of them.

#include "searches.hpp"

#if BENCH_HAS_OPENMP
#include <vector>

namespace uts {

namespace {

template <class Sha>
totals search(const node& n);

template <class Sha>
totals search_child(const node& n, int i) {
  node c;
  the_tree.child<Sha>(n, i, c);
  return search<Sha>(c);
}

template <class Sha>
totals search(const node& n) {
  const int children = the_tree.children(n);
  totals t = just(n, children);
  if (children == 0) return t;
  std::vector<totals> parts(static_cast<std::size_t>(children));
  totals* const to = parts.data();
  const node* const parent = &n;
  for (int i = 0; i + 1 < children; ++i) {
#pragma omp task firstprivate(i, to, parent)
    to[i] = search_child<Sha>(*parent, i);
  }
  parts.back() = search_child<Sha>(n, children - 1);
#pragma omp taskwait
  for (const auto& part : parts) t += part;
  return t;
}

}  // namespace

totals search_openmp(unsigned workers, bool ni) {
  totals t;
#pragma omp parallel num_threads(static_cast <int>(workers))
#pragma omp single
  {
#if BENCH_HAS_SHA_NI
    if (ni)
      t = search<sha1_ni>(the_tree.root());
    else
#endif
      t = search<sha1_portable>(the_tree.root());
  }
  static_cast<void>(ni);
  return t;
}

}  // namespace uts
#else
uts::totals uts::search_openmp(unsigned, bool) { return {}; }
#endif
