// The Unbalanced Tree Search problem: parameters, the node function, the published trees.
//
// Every node carries a SHA-1 state; the state decides how many children it has, and child i's state is the
// digest of the node's state and i. Serial and parallel searches share everything in this file. The rules
// are those of the public UTS benchmark (Olivier et al., "UTS: An Unbalanced Tree Search Benchmark").
// Not here: the searches (serial.hpp, ours.cpp, tbb.cpp, openmp.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sha1.hpp"

namespace uts {

enum class tree_type : int { binomial, geometric, hybrid, balanced };  // -t 0 1 2 3
enum class shape_function : int { linear, expdec, cyclic, fixed };     // -a 0 1 2 3

/// No node but a binomial root has more children.
inline constexpr int max_children = 100;

/// What a tree is made of; the defaults are those of the public benchmark.
struct parameters {
  tree_type type = tree_type::geometric;          // -t
  shape_function shape = shape_function::linear;  // -a
  double branching = 4.0;                         // -b: children of the root, expected
  int depth = 6;                                  // -d: gen_mx, the depth that shape functions refer to
  int seed = 0;                                   // -r
  double nonleaf_probability = 15.0 / 64.0;       // -q: of a binomial node
  int nonleaf_children = 4;                       // -m: of a binomial node that is no leaf
  double shift = 0.5;                             // -f: hybrid: geometric above this fraction of depth
  int granularity = 1;                            // -g: digests per child

  std::string flags() const;
  std::string describe() const;
};

/// A count of children by the book: two logarithms per node. @p value is the node's random number.
int children_by_formula(const parameters& p, int depth, std::uint32_t value);

/// Size of a (sub)tree.
struct totals {
  std::uint64_t nodes = 0, leaves = 0, depth = 0;

  totals& operator+=(const totals& o) noexcept {
    nodes += o.nodes;
    leaves += o.leaves;
    depth = std::max(depth, o.depth);
    return *this;
  }
  friend bool operator==(const totals&, const totals&) = default;
};

/// The totals of one node alone.
[[gnu::always_inline]] inline totals just(const node& n, int children) noexcept {
  return {1, children == 0, n.depth()};
}

/// The tree being searched. Made before the run, read by everybody afterwards.
class tree {
 public:
  tree() = default;
  explicit tree(const parameters& p);

  const parameters& made_from() const { return parameters_; }
  int granularity() const { return parameters_.granularity; }

  node root() const;

  /// Number of children, the same as children_by_formula() gives.
  [[gnu::always_inline]] int children(const node& n) const {
    const std::uint32_t value = n.random();
    const level& l = levels_[std::min<std::size_t>(n.depth(), last_)];
    switch (l.how) {
      case rule::chance:
        return value < l.limit ? l.count : 0;
      case rule::steps: {
        int k = l.first[value >> 23];
        while (value >= l.step[static_cast<std::size_t>(k)]) ++k;
        return k;
      }
      case rule::always:
        return l.count;
      default:
        return children_by_formula(parameters_, static_cast<int>(n.depth()), value);
    }
  }

  /// Has no node of this depth a child?
  [[gnu::always_inline]] bool ends_at(std::uint32_t depth) const {
    const level& l = levels_[std::min<std::size_t>(depth, last_)];
    return l.how == rule::steps && l.step[0] == no_value;
  }

  /// Child @p i of @p n, made in place: what is made where a thread finds it is copied once less.
  template <class Sha>
  [[gnu::always_inline]] void child(const node& n, int i, node& to) const {
    for (int again = parameters_.granularity; again > 0; --again)
      Sha::child(n, static_cast<std::uint32_t>(i), to);
  }

 private:
  // The number of children grows with the random number, so a level is a table of 31-bit limits: node has at
  // least k + 1 children iff value >= step[k]. first[] leads to the right place from the upper 8 bits.
  // This takes the place of two logarithms a node, and gives the very same counts.
  enum class rule : std::uint8_t { chance, steps, always, formula };
  struct level {
    rule how = rule::formula;
    int count = 0;
    std::uint32_t limit = 0;
    std::uint8_t first[256] = {};
    std::uint32_t step[max_children + 1] = {};
  };

  static constexpr std::uint32_t no_value = 0x80000000u;  // above every random number
  level make_level(int depth) const;

  parameters parameters_;
  std::vector<level> levels_;  // of depth 0, 1, ...; the last one is for all deeper nodes
  std::size_t last_ = 0;
};

/// The one tree of this program: global, so that every worker inherits it at the same address.
extern tree the_tree;

/// A tree whose size is published. What is not published is 0.
struct named_tree {
  const char* name;
  parameters p;
  totals published;
};
const named_tree* find_named(std::string_view name);
const std::vector<named_tree>& named_trees();
/// The published tree that @p p describes, if any.
const named_tree* find_named(const parameters& p);

/// Does @p t agree with what is published?
bool matches(const named_tree& named, const totals& t);

}  // namespace uts
