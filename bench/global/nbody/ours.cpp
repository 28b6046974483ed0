// Cells with many bodies are threads, and blocks of bodies are. The bodies of a cell are divided by one
// thread, which has them checked out; its octants are independent from there on.

#include "ours.hpp"

namespace nbody {

namespace {

constexpr std::uint64_t grain_build = 512;
constexpr std::uint64_t grain_step = 64;

struct range {
  body_ptr bodies;
  std::uint64_t first, n;
  gw::global_ptr<body> begin() const { return bodies + static_cast<std::ptrdiff_t>(first); }
};

struct division {
  std::uint64_t ends[8];
  std::uint32_t children;
  std::uint8_t octant[8];  ///< of child k

  std::uint64_t from(unsigned o) const { return o == 0 ? 0 : ends[o - 1]; }
};

[[gnu::noinline]] division divide_range(const range& r, const cube& where) {
  division d;
  divide(gw::checkout(r.begin(), r.n, gw::access::read_write).data(), r.n, where, d.ends);
  d.children = 0;
  for (unsigned o = 0; o < 8; ++o)
    if (d.from(o) != d.ends[o]) d.octant[d.children++] = static_cast<std::uint8_t>(o);
  return d;
}

global_cell build_cell(range r, cube where, unsigned level);

void build_child(const range& r, const division& d, const cube& where, unsigned level,
                 gw::global_ptr<global_cell> to, std::uint32_t k) {
  const unsigned o = d.octant[k];
  const range part = {r.bodies, r.first + d.from(o), d.ends[o] - d.from(o)};
  const global_cell built = build_cell(part, where.child(o), level + 1);
  gw::put(to + k, built);
}

void build_children(range r, division d, cube where, unsigned level, gw::global_ptr<global_cell> to,
                    std::uint32_t first, std::uint32_t last) {
  if (last - first == 1) return build_child(r, d, where, level, to, first);
  const std::uint32_t middle = first + (last - first) / 2;
  auto left = gw::spawn([=] { build_children(r, d, where, level, to, first, middle); });
  build_children(r, d, where, level, to, middle, last);
  left.join();
}

/// Mass and centre of a cell whose bodies or children are there.
void sum_up(global_cell& c, const range& r) {
  summary sum;
  if (c.children == 0)
    for (const body& b : gw::checkout(r.begin(), r.n, gw::access::read)) sum.add(b.at, b.mass);
  else
    for (const global_cell& k : gw::checkout(c.child, c.children, gw::access::read))
      sum.add(k.centre, k.mass);
  sum.store(c);
}

global_cell build_cell(range r, cube where, unsigned level) {
  global_cell c;
  c.side = 2 * where.half;
  c.first = r.first;
  c.count = static_cast<std::uint32_t>(r.n);
  if (r.n > leaf_bodies && level != most_levels) {
    const division d = divide_range(r, where);
    c.children = d.children;
    c.child = gw::allocate<global_cell>(d.children);
    if (r.n > grain_build)
      build_children(r, d, where, level, c.child, 0, d.children);
    else
      for (std::uint32_t k = 0; k < d.children; ++k) build_child(r, d, where, level, c.child, k);
  }
  sum_up(c, r);
  return c;
}

struct longest {
  double value = 0;
  longest& operator+=(const longest& o) {
    value = std::max(value, o.value);
    return *this;
  }
};

void add(vec& a, const global_cell& c, body_ptr bodies, const vec& at, double theta) {
  if (c.children == 0)
    for (const body& b :
         gw::checkout(bodies + static_cast<std::ptrdiff_t>(c.first), c.count, gw::access::read))
      pull(a, at, b.at, b.mass);
  else if (is_far(c, at, theta))
    pull(a, at, c.centre, c.mass);
  else
    for (const global_cell& k : gw::checkout(c.child, c.children, gw::access::read))
      add(a, k, bodies, at, theta);
}

void destroy_children(gw::global_ptr<global_cell> child, std::uint32_t first, std::uint32_t last) {
  if (last - first == 1) return destroy(gw::get(child + first));
  const std::uint32_t middle = first + (last - first) / 2;
  auto left = gw::spawn([=] { destroy_children(child, first, middle); });
  destroy_children(child, middle, last);
  left.join();
}

}  // namespace

global_cell build(body_ptr bodies, std::uint64_t n) {
  const longest size = bench::each_piece(n, 8192, [=](std::uint64_t from, std::uint64_t to) {
    auto part = gw::checkout(bodies + static_cast<std::ptrdiff_t>(from), to - from, gw::access::read);
    return longest{extent(part.begin(), part.end())};
  });
  return build_cell({bodies, 0, n}, root_cube(size.value), 0);
}

void destroy(const global_cell& root) {
  if (root.children == 0) return;
  const auto child = root.child;
  const std::uint32_t n = root.children;
  if (root.count > grain_build)
    destroy_children(child, 0, n);
  else
    for (std::uint32_t k = 0; k < n; ++k) destroy(gw::get(child + k));
  gw::deallocate(child, n);
}

vec acceleration(const global_cell& root, body_ptr bodies, const vec& at, double theta) {
  vec a;
  add(a, root, bodies, at, theta);
  return a;
}

void step(const global_cell& root, body_ptr bodies, body_ptr to, const problem& p) {
  const global_cell top = root;
  const double theta = p.theta, dt = p.dt;
  bench::each_piece(p.bodies, grain_step, [=](std::uint64_t low, std::uint64_t high) {
    const auto at = static_cast<std::ptrdiff_t>(low);
    auto old = gw::checkout(bodies + at, high - low, gw::access::read);
    auto out = gw::checkout(to + at, high - low, gw::access::write);
    for (std::uint64_t i = 0; i < old.size(); ++i)
      out[i] = moved(old[i], acceleration(top, bodies, old[i].at, theta), dt);
  });
}

}  // namespace nbody
