// The search in Lace: the children that get a thread in ours.cpp are tasks, the last one too.
#include "../common/on_lace.hpp"
#include "searches.hpp"

#if BENCH_HAS_LACE
namespace uts {

namespace {

struct part {
  node n;
  int children;
  totals found;
};
threads which_children;  // set before the run
bool with_ni;

void child(const node& parent, int i, node& c) {
#if BENCH_HAS_SHA_NI
  if (with_ni) return the_tree.child<sha1_ni>(parent, i, c);
#endif
  the_tree.child<sha1_portable>(parent, i, c);
}

VOID_TASK_1(lace_search, part*, mine) {  // Lace's tasks cannot be templates
  totals t = just(mine->n, mine->children);
  std::vector<part> parts;
  for (int i = 0; i < mine->children; ++i) {
    node c;
    child(mine->n, i, c);
    const int its = the_tree.children(c);
    if (which_children == threads::inner && its == 0) {
      t += just(c, 0);
      continue;
    }
    if (parts.empty())
      parts.reserve(static_cast<std::size_t>(mine->children));  // tasks keep their part's address
    part& p = parts.emplace_back(part{c, its, {}});
    SPAWN(lace_search, &p);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) SYNC(lace_search);
  for (const part& p : parts) t += p.found;
  mine->found = t;
}

}  // namespace

totals search_lace(unsigned workers, threads which, bool ni) {
  which_children = which;
  with_ni = ni;
  const node root = the_tree.root();
  part all{root, the_tree.children(root), {}};
  return bench::with_lace(workers, [&all] {
    RUN(lace_search, &all);
    return all.found;
  });
}

}  // namespace uts
#endif
