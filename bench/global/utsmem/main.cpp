// global_utsmem: a UTS tree built in global memory, traversed, and given back, beside plain serial code with
// new and delete.

#include <cstdio>

#include "../timed_parts.hpp"
#include "ours.hpp"

namespace {

using namespace utsmem;

found right;  ///< made before the run, so that all workers have it

enum part : std::size_t { building, traversing, destroying, part_count };
using times = bench::parts<part_count>;

times serial() {
  times t;
  bench::on_big_stack([&] {
    plain_node* root = t.time(building, [] { return build_serial(); });
    t.correct = t.time(traversing, [=] { return traverse_serial(root); }) == right;
    t.time(destroying, [=] { destroy_serial(root); });
  });
  return t;
}

times ours() {
  times t;
  const auto root = t.time(building, [] { return build(); });
  t.correct = t.time(traversing, [=] { return traverse(root); }) == right;
  t.time(destroying, [=] { destroy(root); });
  return t;
}

/// Count without storing: what the trees in memory are compared with, beside the published size.
found count(const uts::node& n) {
  const int children = uts::the_tree.children(n);
  found all = {1, children == 0, 0, n.random()};
  for (int i = 0; i < children; ++i) {
    uts::node c;
    uts::the_tree.child<uts::sha1_portable>(n, i, c);
    add_below(all, count(c));
  }
  return all;
}

void compare(bench::program& program, const uts::named_tree& tree) {
  uts::the_tree = uts::tree(tree.p);
  bench::on_big_stack([] { right = count(uts::the_tree.root()); });
  if (!uts::matches(tree, {right.nodes, right.leaves, right.depth}))
    program.wrong("the tree does not have the published size");
  const auto all = bench::measure_parts(program, bench::ways_of<part_count>(program, serial, ours));
  const std::string what =
      std::string("UTS ") + tree.name + ", " + bench::grouped(right.nodes) + " nodes in memory: ";
  const bench::ordered_json parameters = {
      {"tree", tree.name}, {"flags", tree.p.flags()}, {"nodes", right.nodes}};
  constexpr const char* names[] = {"build", "traverse", "destroy"};
  for (std::size_t i = 0; i < part_count; ++i) {
    program.show(what + names[i], parameters, all[i]);
    bench::show_ratios(program, std::string(tree.name) + "." + names[i], names[i], all[i]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string name;
  uts::parameters own;
  bench::program program("global_utsmem", "A UTS tree in global memory: build, traverse, destroy.", argc,
                         argv);
  program.option("--tree", name, "A published tree (default T1)");
  program.option(
      "--size", own.depth,
      "A smaller one instead: depth of a geometric tree like T1, 1 to 10 (default with --quick: 8)",
      bench::between(1, 10));
  program.parse();
  const bool sized = program.given("--size");
  if (sized && !name.empty()) bench::usage_error("global_utsmem: give either --tree or --size");
  own.shape = uts::shape_function::fixed;
  own.branching = 4;
  own.seed = 19;
  const bool small = sized || (program.options().quick && name.empty());
  if (small && !sized) own.depth = 8;
  const uts::named_tree* known = small ? uts::find_named(own) : uts::find_named(name.empty() ? "T1" : name);
  if (known == nullptr && !small) bench::usage_error("global_utsmem: no tree is called " + name);
  try {
    compare(program, known != nullptr ? *known : uts::named_tree{"small", own, {}});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_utsmem: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
