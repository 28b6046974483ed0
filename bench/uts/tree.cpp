// Shape functions, limit tables and the published trees. See tree.hpp.

#include "tree.hpp"

#include <cmath>
#include <cstdio>

namespace uts {

tree the_tree;

namespace {

constexpr double two_to_31 = 2147483648.0;

/// Expected number of children of a geometric node.
double target(const parameters& p, int depth) {
  if (depth == 0) return p.branching;
  const double at = depth, limit = p.depth;
  switch (p.shape) {
    case shape_function::expdec:
      return p.branching * std::pow(at, -std::log(p.branching) / std::log(limit));
    case shape_function::cyclic:
      if (depth > 5 * p.depth) return 0;
      return std::pow(p.branching, std::sin(2.0 * 3.141592653589793 * at / limit));
    case shape_function::fixed:
      return depth < p.depth ? p.branching : 0;
    case shape_function::linear:
      break;
  }
  return p.branching * (1.0 - at / limit);
}

/// Geometrically distributed around target(): inverse of the cumulative distribution.
int geometric(const parameters& p, int depth, std::uint32_t value) {
  const double chance = 1.0 / (1.0 + target(p, depth));
  const double u = value / two_to_31;
  const double count = std::floor(std::log(1.0 - u) / std::log(1.0 - chance));
  return static_cast<int>(std::min(count, static_cast<double>(max_children)));
}

int binomial(const parameters& p, std::uint32_t value) {
  return value / two_to_31 < p.nonleaf_probability ? std::min(p.nonleaf_children, max_children) : 0;
}

bool geometric_at(const parameters& p, int depth) {
  return p.type == tree_type::geometric || (p.type == tree_type::hybrid && depth < p.shift * p.depth);
}

}  // namespace

int children_by_formula(const parameters& p, int depth, std::uint32_t value) {
  switch (p.type) {
    case tree_type::balanced:
      return depth < p.depth ? static_cast<int>(p.branching) : 0;
    case tree_type::binomial:
      return depth == 0 ? static_cast<int>(std::floor(p.branching)) : binomial(p, value);
    default:
      return geometric_at(p, depth) ? geometric(p, depth, value) : binomial(p, value);
  }
}

tree::level tree::make_level(int depth) const {
  const parameters& p = parameters_;
  level l;
  if (p.type == tree_type::balanced || (p.type == tree_type::binomial && depth == 0)) {
    l.how = rule::always;
    l.count = children_by_formula(p, depth, 0);
  } else if (!geometric_at(p, depth)) {
    l.how = rule::chance;
    l.count = std::min(p.nonleaf_children, max_children);
    l.limit = static_cast<std::uint32_t>(std::ceil(std::clamp(p.nonleaf_probability, 0.0, 1.0) * two_to_31));
  } else {
    l.how = rule::steps;
    std::uint32_t from = 0;
    for (int k = 0; k < max_children; ++k) {  // the smallest value that gives more than k children
      std::uint32_t low = from, high = no_value;
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (geometric(p, depth, middle) > k)
          high = middle;
        else
          low = middle + 1;
      }
      l.step[k] = from = low;
    }
    l.step[max_children] = no_value;
    for (std::uint32_t top = 0; top < 256; ++top)
      l.first[top] = static_cast<std::uint8_t>(geometric(p, depth, top << 23));
  }
  return l;
}

tree::tree(const parameters& p) : parameters_(p) {
  // Beyond the last table all nodes are alike, except in geometric trees, where the formula takes over.
  int deepest = 0;
  switch (p.type) {
    case tree_type::binomial:
      deepest = 1;
      break;
    case tree_type::balanced:
      deepest = p.depth;
      break;
    case tree_type::hybrid:
      deepest = static_cast<int>(std::ceil(p.shift * p.depth));
      break;
    case tree_type::geometric:
      deepest =
          p.shape == shape_function::linear || p.shape == shape_function::fixed ? p.depth : 5 * p.depth + 1;
      break;
  }
  constexpr int most_levels = 1024;
  const bool all = deepest <= most_levels;
  for (int depth = 0; depth <= std::min(deepest, most_levels); ++depth) levels_.push_back(make_level(depth));
  const bool open_ended = p.type == tree_type::geometric && p.shape == shape_function::expdec;
  if (!all || open_ended) levels_.push_back(level{});  // rule::formula
  last_ = levels_.size() - 1;
}

node tree::root() const {
  node n;
  sha1_portable::root(static_cast<std::uint32_t>(parameters_.seed), n);
  return n;
}

std::string parameters::flags() const {
  char text[200];
  const char* const format[] = {"-t 0 -b %g -q %.10g -m %d -r %d", "-t 1 -a %d -d %d -b %g -r %d",
                                "-t 2 -a %d -d %d -b %g -r %d -q %.10g -m %d -f %g",
                                "-t 3 -d %d -b %g -r %d"};
  const char* const f = format[static_cast<int>(type)];
  switch (type) {
    case tree_type::binomial:
      std::snprintf(text, sizeof text, f, branching, nonleaf_probability, nonleaf_children, seed);
      break;
    case tree_type::geometric:
      std::snprintf(text, sizeof text, f, static_cast<int>(shape), depth, branching, seed);
      break;
    case tree_type::hybrid:
      std::snprintf(text, sizeof text, f, static_cast<int>(shape), depth, branching, seed,
                    nonleaf_probability, nonleaf_children, shift);
      break;
    case tree_type::balanced:
      std::snprintf(text, sizeof text, f, depth, branching, seed);
      break;
  }
  return granularity == 1 ? text : std::string(text) + " -g " + std::to_string(granularity);
}

std::string parameters::describe() const {
  static constexpr const char* shapes[] = {"linear", "exponential decrease", "cyclic", "fixed"};
  const std::string with_shape = std::string(", ") + shapes[static_cast<int>(shape)];
  switch (type) {
    case tree_type::binomial:
      return "binomial";
    case tree_type::geometric:
      return "geometric" + with_shape;
    case tree_type::hybrid:
      return "hybrid" + with_shape;
    case tree_type::balanced:
      return "balanced";
  }
  return {};
}

const std::vector<named_tree>& named_trees() {
  using enum tree_type;
  using enum shape_function;
  const auto geo = [](shape_function a, int d, double b, int r) {
    parameters p;
    p.type = geometric, p.shape = a, p.depth = d, p.branching = b, p.seed = r;
    return p;
  };
  const auto bin = [](double q, int m, int r) {
    parameters p;
    p.type = binomial, p.branching = 2000, p.nonleaf_probability = q, p.nonleaf_children = m, p.seed = r;
    return p;
  };
  parameters t4 = geo(linear, 16, 6, 1);
  t4.type = hybrid;
  static const std::vector<named_tree> all = {
      {"T1", geo(fixed, 10, 4, 19), {4130071, 3305118, 10}},
      {"T2", geo(cyclic, 16, 6, 502), {4117769, 2342762, 81}},
      {"T3", bin(0.124875, 8, 42), {4112897, 3599034, 1572}},
      {"T4", t4, {4132453, 3108986, 134}},
      {"T5", geo(linear, 20, 4, 34), {4147582, 2181318, 20}},
      {"T1L", geo(fixed, 13, 4, 29), {102181082, 81746377, 13}},
      {"T2L", geo(cyclic, 23, 7, 220), {96793510, 53791152, 67}},
      {"T3L", bin(0.200014, 5, 7), {111345631, 89076904, 17844}},
      {"T1XL", geo(fixed, 15, 4, 29), {1635119272, 1308100063, 15}},
      {"T1XXL", geo(fixed, 15, 4, 19), {4230646601, 3384495738, 15}},
      {"T2XXL", bin(0.499999995, 2, 0), {10612052303, 5306027151, 216370}},
      {"T3XXL", bin(0.499995, 2, 316), {2793220501, 0, 0}},
      {"T1WL", geo(fixed, 18, 4, 19), {270751679750, 216601257283, 18}},
      {"T2WL", bin(0.4999999995, 2, 559), {295393891003, 147696946501, 1021239}},
      {"T3WL", bin(0.4999995, 2, 559), {157063495159, 78531748579, 758577}},
  };
  return all;
}

const named_tree* find_named(std::string_view name) {
  for (const auto& t : named_trees())
    if (name == t.name) return &t;
  return nullptr;
}

const named_tree* find_named(const parameters& p) {
  parameters plain = p;
  plain.granularity = 1;  // changes the work, not the tree
  for (const auto& t : named_trees())
    if (plain.flags() == t.p.flags()) return &t;
  return nullptr;
}

bool matches(const named_tree& named, const totals& t) {
  const auto agrees = [](std::uint64_t published, std::uint64_t got) {
    return published == 0 || published == got;
  };
  return agrees(named.published.nodes, t.nodes) && agrees(named.published.leaves, t.leaves) &&
         agrees(named.published.depth, t.depth);
}

}  // namespace uts
