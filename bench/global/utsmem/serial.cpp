// The serial code. See utsmem.hpp.

#include "utsmem.hpp"

namespace utsmem {

namespace {
plain_node* build(const uts::node& n) {
  const int children = uts::the_tree.children(n);
  auto* m = new plain_node{static_cast<std::uint32_t>(children), n.random(), nullptr};
  if (children == 0) return m;
  m->child = new plain_node*[m->children];
  for (int i = 0; i < children; ++i) {
    uts::node c;
    uts::the_tree.child<uts::sha1_portable>(n, i, c);
    m->child[i] = build(c);
  }
  return m;
}
}  // namespace

plain_node* build_serial() { return build(uts::the_tree.root()); }

found traverse_serial(const plain_node* n) {
  found all = n->itself();
  for (std::uint32_t i = 0; i < n->children; ++i) add_below(all, traverse_serial(n->child[i]));
  return all;
}

void destroy_serial(plain_node* n) {
  for (std::uint32_t i = 0; i < n->children; ++i) destroy_serial(n->child[i]);
  delete[] n->child;
  delete n;
}

}  // namespace utsmem
