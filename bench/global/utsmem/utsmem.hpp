// UTS in global memory: the tree of bench/uts is first built, a node in memory for every node, and then
// traversed.
//
// Unlike bench/uts, which computes nodes and forgets them, this is what graph and tree libraries do: millions
// of small allocations by all workers, then pointers followed wherever they lead. Every traversal must find
// the published size, and the sum of all random numbers that the serial tree has. Document:
// docs/performance.md. Tests: bench.global_utsmem, mpi.global_utsmem (bench/CMakeLists.txt, tests/bench).
#pragma once

#include "../../uts/tree.hpp"

namespace utsmem {

/// What a traversal finds.
struct found {
  std::uint64_t nodes = 0, leaves = 0, depth = 0;
  std::uint64_t sum = 0;  ///< of random numbers

  friend bool operator==(const found&, const found&) = default;
};

/// A node as it is stored, in global memory (Link: global_ptr) or in the serial program's heap (plain
/// pointers).
template <template <class> class Link>
struct stored {
  std::uint32_t children = 0;
  std::uint32_t random = 0;
  Link<Link<stored>> child{};  ///< that many

  found itself() const { return {1, children == 0, 0, random}; }
};
/// A node and the subtrees of its children become one.
inline void add_below(found& to, const found& child) {
  to.nodes += child.nodes;
  to.leaves += child.leaves;
  to.depth = std::max(to.depth, child.depth + 1);
  to.sum += child.sum;
}
/// Siblings.
inline void add_beside(found& to, const found& other) {
  to.nodes += other.nodes;
  to.leaves += other.leaves;
  to.depth = std::max(to.depth, other.depth);
  to.sum += other.sum;
}

template <class T>
using plain_link = T*;
using plain_node = stored<plain_link>;

/// Of uts::the_tree.
plain_node* build_serial();
found traverse_serial(const plain_node* n);
void destroy_serial(plain_node* n);

}  // namespace utsmem
