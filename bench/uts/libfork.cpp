// The search in libfork: the children that get a thread in ours.cpp are tasks, the last one is a call, as
// there.
#include "../common/on_libfork.hpp"
#include "searches.hpp"

#if BENCH_HAS_LIBFORK
namespace uts {

namespace {

template <class Sha, threads Which>
constexpr auto search = [](auto self, node n, int children) -> lf::task<totals> {
  totals t = just(n, children);
  std::vector<totals> parts;  // of the tasks; empty where all children are leaves
  for (int i = 0; i < children; ++i) {
    node c;
    the_tree.child<Sha>(n, i, c);
    const int its = the_tree.children(c);
    if (Which == threads::inner && its == 0) {
      t += just(c, 0);
      continue;
    }
    if (parts.empty()) parts.resize(static_cast<std::size_t>(children));
    totals* const to = &parts[static_cast<std::size_t>(i)];
    if (i + 1 == children)
      co_await lf::call(to, self)(c, its);
    else
      co_await lf::fork(to, self)(c, its);
  }
  co_await lf::join;
  for (const auto& part : parts) t += part;
  co_return t;
};

template <class Sha>
totals search_all(unsigned workers, threads which) {
  const node root = the_tree.root();
  const int children = the_tree.children(root);
  return which == threads::every ? bench::with_libfork(workers, search<Sha, threads::every>, root, children)
                                 : bench::with_libfork(workers, search<Sha, threads::inner>, root, children);
}

}  // namespace

totals search_libfork(unsigned workers, threads which, bool ni) {
#if BENCH_HAS_SHA_NI
  if (ni) return search_all<sha1_ni>(workers, which);
#endif
  static_cast<void>(ni);
  return search_all<sha1_portable>(workers, which);
}

}  // namespace uts
#endif
