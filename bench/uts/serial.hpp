// The references: plain recursion over the shared node function. Deep trees need a deep stack
// (bench::on_big_stack).
#pragma once

#include "searches.hpp"

namespace uts {

/// Every node is visited by a call.
template <class Sha>
totals serial_every(const node& n) {
  const int children = the_tree.children(n);
  totals t = just(n, children);
  for (int i = 0; i < children; ++i) {
    node c;
    the_tree.child<Sha>(n, i, c);
    t += serial_every<Sha>(c);
  }
  return t;
}

/// Leaves are counted by their parent. @p children: how many n has, at least one.
template <class Sha>
totals serial_inner(const node& n, int children) {
  totals t = just(n, children);
  for (int i = 0; i < children; ++i) {
    node c;
    the_tree.child<Sha>(n, i, c);
    if (const int its = the_tree.children(c); its == 0)
      t += just(c, 0);
    else
      t += serial_inner<Sha>(c, its);
  }
  return t;
}

}  // namespace uts
