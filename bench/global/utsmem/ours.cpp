// Subtrees are threads; leaves are dealt with by their parents. Siblings follow one another by recursion, so
// that a frame holds one future however many children there are (as in bench/uts/ours.cpp). The tree is read
// through the host's cache: what a worker of another host built lies together there, and comes in one piece.

#include "ours.hpp"

namespace utsmem {

namespace {

using node_ptr = gw::global_ptr<global_node>;
using child_list = gw::global_ptr<node_ptr>;

template <class T>
T cached(gw::global_ptr<T> p) {
  return gw::checkout(p, 1, gw::access::read)[0];
}

node_ptr build_node(uts::node n, int children);

void build_children(const uts::node& parent, int i, int last, child_list to) {
  for (; i < last; ++i) {
    uts::node c;
    uts::the_tree.child<uts::sha1_portable>(parent, i, c);
    const int its = uts::the_tree.children(c);
    if (its == 0) {
      gw::put(to + i, gw::global_new<global_node>(0u, c.random()));
    } else if (i + 1 == last) {
      gw::put(to + i, build_node(c, its));
    } else {
      auto one = gw::spawn([c, its] { return build_node(c, its); });
      build_children(parent, i + 1, last, to);
      const node_ptr built = one.join();
      gw::put(to + i, built);
      return;
    }
  }
}

node_ptr build_node(uts::node n, int children) {
  const auto list = gw::allocate<node_ptr>(static_cast<std::uint64_t>(children));
  build_children(n, 0, children, list);
  return gw::global_new<global_node>(static_cast<std::uint32_t>(children), n.random(), list);
}

found traverse_node(global_node n);

found traverse_children(child_list list, std::uint32_t i, std::uint32_t last) {
  found all;
  for (; i < last; ++i) {
    const global_node c = cached(cached(list + i));
    if (c.children == 0) {
      add_beside(all, c.itself());
    } else if (i + 1 == last) {
      add_beside(all, traverse_node(c));
    } else {
      auto one = gw::spawn([c] { return traverse_node(c); });
      add_beside(all, traverse_children(list, i + 1, last));
      add_beside(all, one.join());
      break;
    }
  }
  return all;
}

found traverse_node(global_node n) {
  found all = n.itself();
  if (n.children != 0) add_below(all, traverse_children(n.child, 0, n.children));
  return all;
}

void destroy_below(global_node n);

void destroy_children(child_list list, std::uint32_t i, std::uint32_t last) {
  for (; i < last; ++i) {
    const node_ptr at = cached(list + i);
    const global_node c = cached(at);
    gw::global_delete(at);
    if (c.children == 0) continue;
    if (i + 1 == last) return destroy_below(c);
    auto one = gw::spawn([c] { destroy_below(c); });
    destroy_children(list, i + 1, last);
    one.join();
    return;
  }
}

void destroy_below(global_node n) {
  destroy_children(n.child, 0, n.children);
  gw::deallocate(n.child, n.children);
}

}  // namespace

gw::global_ptr<global_node> build() {
  const uts::node root = uts::the_tree.root();
  const int children = uts::the_tree.children(root);
  return children == 0 ? gw::global_new<global_node>(0u, root.random()) : build_node(root, children);
}

found traverse(gw::global_ptr<global_node> root) { return traverse_node(cached(root)); }

void destroy(gw::global_ptr<global_node> root) {
  const global_node n = cached(root);
  gw::global_delete(root);
  if (n.children != 0) destroy_below(n);
}

}  // namespace utsmem
