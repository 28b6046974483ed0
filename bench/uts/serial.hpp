// The references: plain recursion over the shared node function, one per form of the parallel search. Deep trees
// need a deep stack (bench::on_big_stack).
#pragma once

#include "searches.hpp"

namespace uts {

/// Every child is visited by a call.
template <class Sha>
totals serial_every(const node& n) {
  const int children = the_tree.children(n);
  totals t{1, children == 0, static_cast<std::uint64_t>(n.depth)};
  for (int i = 0; i < children; ++i) t += serial_every<Sha>(the_tree.child<Sha>(n, i));
  return t;
}

/// Leaves are counted by their parent.
template <class Sha>
totals serial_inner(const node& n, int children) {
  totals t{1, children == 0, static_cast<std::uint64_t>(n.depth)};
  for (int i = 0; i < children; ++i) {
    const node c = the_tree.child<Sha>(n, i);
    if (const int its = the_tree.children(c); its == 0)
      t += {1, 1, static_cast<std::uint64_t>(c.depth)};
    else
      t += serial_inner<Sha>(c, its);
  }
  return t;
}

}  // namespace uts
