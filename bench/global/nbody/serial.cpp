// The serial code. See nbody.hpp.

#include "nbody.hpp"

namespace nbody {

namespace {

double random(std::uint64_t x) {  // [0, 1)
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

plain_cell build(body* bodies, std::uint64_t first, std::uint64_t n, const cube& where, unsigned level) {
  plain_cell c;
  c.side = 2 * where.half;
  c.first = first;
  c.count = static_cast<std::uint32_t>(n);
  summary sum;
  if (n <= leaf_bodies || level == most_levels) {
    for (std::uint64_t i = first; i < first + n; ++i) sum.add(bodies[i].at, bodies[i].mass);
    sum.store(c);
    return c;
  }
  std::uint64_t ends[8];
  divide(bodies + first, n, where, ends);
  for (unsigned o = 0; o < 8; ++o) c.children += ends[o] != (o == 0 ? 0 : ends[o - 1]);
  c.child = new plain_cell[c.children];
  std::uint32_t k = 0;
  for (unsigned o = 0; o < 8; ++o) {
    const std::uint64_t from = o == 0 ? 0 : ends[o - 1];
    if (from == ends[o]) continue;
    plain_cell& child = c.child[k++];
    child = build(bodies, first + from, ends[o] - from, where.child(o), level + 1);
    sum.add(child.centre, child.mass);
  }
  sum.store(c);
  return c;
}

void add(vec& a, const plain_cell& c, const body* bodies, const vec& at, double theta) {
  if (c.children == 0)
    for (std::uint64_t i = c.first; i < c.first + c.count; ++i) pull(a, at, bodies[i].at, bodies[i].mass);
  else if (is_far(c, at, theta))
    pull(a, at, c.centre, c.mass);
  else
    for (std::uint32_t k = 0; k < c.children; ++k) add(a, c.child[k], bodies, at, theta);
}

}  // namespace

body first_body(const problem& p, std::uint64_t i) {
  const std::uint64_t key = (p.seed << 40) + 4 * i;
  // Plummer's model: how much of the mass is inside a radius, turned round.
  const double inside = 0.001 + 0.98 * random(key), radius = 1 / std::sqrt(std::pow(inside, -2.0 / 3) - 1);
  const double z = 2 * random(key + 1) - 1, turn = 6.283185307179586 * random(key + 2),
               flat = std::sqrt(1 - z * z);
  body b;
  b.at = radius * vec{flat * std::cos(turn), flat * std::sin(turn), z};
  b.speed = 0.3 / (1 + radius) * vec{-b.at.y, b.at.x, 0};
  b.mass = 1 / static_cast<double>(p.bodies);
  return b;
}

vec direct(const body* bodies, std::uint64_t n, const vec& at) {
  vec a;
  for (std::uint64_t i = 0; i < n; ++i) pull(a, at, bodies[i].at, bodies[i].mass);
  return a;
}

plain_cell build_serial(std::vector<body>& bodies) {
  const cube all = root_cube(extent(bodies.data(), bodies.data() + bodies.size()));
  return build(bodies.data(), 0, bodies.size(), all, 0);
}

void destroy_serial(const plain_cell& root) {
  for (std::uint32_t k = 0; k < root.children; ++k) destroy_serial(root.child[k]);
  delete[] root.child;
}

vec acceleration_serial(const plain_cell& root, const std::vector<body>& bodies, const vec& at,
                        double theta) {
  vec a;
  add(a, root, bodies.data(), at, theta);
  return a;
}

void step_serial(const plain_cell& root, const std::vector<body>& bodies, std::vector<body>& to,
                 const problem& p) {
  for (std::uint64_t i = 0; i < bodies.size(); ++i)
    to[i] = moved(bodies[i], acceleration_serial(root, bodies, bodies[i].at, p.theta), p.dt);
}

}  // namespace nbody
