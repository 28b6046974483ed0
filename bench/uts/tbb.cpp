// The search in oneTBB: every child is a task of its parent's group.

#include "searches.hpp"

#if BENCH_HAS_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

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
  tbb::task_group group;
  for (int i = 0; i + 1 < children; ++i)
    group.run([&n, &parts, i] { parts[static_cast<std::size_t>(i)] = search_child<Sha>(n, i); });
  parts.back() = search_child<Sha>(n, children - 1);
  group.wait();
  for (const auto& part : parts) t += part;
  return t;
}

}  // namespace

totals search_tbb(unsigned workers, bool ni) {
  using tbb::global_control;
  global_control most(global_control::max_allowed_parallelism, workers);
  global_control stack(global_control::thread_stack_size, std::size_t{256} << 20);
  tbb::task_arena arena(static_cast<int>(workers));
  return arena.execute([ni] {
#if BENCH_HAS_SHA_NI
    if (ni) return search<sha1_ni>(the_tree.root());
#endif
    static_cast<void>(ni);
    return search<sha1_portable>(the_tree.root());
  });
}

}  // namespace uts
#else
uts::totals uts::search_tbb(unsigned, bool) { return {}; }
#endif
