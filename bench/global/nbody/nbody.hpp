// N-body in three dimensions by the method of Barnes and Hut: far groups of bodies pull like one body at
// their centre.
//
// Each step builds an octree over all bodies, computes every body's acceleration by a traversal, and moves
// the bodies. The tree depends on the positions alone, and everything is added up in the order of the tree,
// so the parallel program's bodies are the serial one's bit by bit, on every schedule. (The sources are
// compiled without contraction of a * b + c: the same formula must give the same bits wherever it stands.)
// What the tree gives is compared with direct sums for some bodies. Document: docs/performance.md. Tests:
// bench.global_nbody, mpi.global_nbody (bench/CMakeLists.txt, tests/bench).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace nbody {

struct problem {
  std::uint64_t bodies = 0;
  unsigned steps = 3;
  double theta = 0.5;  ///< a cell whose side is less than theta times its distance pulls as one
  double dt = 0.01;
  std::uint64_t seed = 1;
};

struct vec {
  double x = 0, y = 0, z = 0;
  vec& operator+=(const vec& o) {
    x += o.x, y += o.y, z += o.z;
    return *this;
  }
  friend vec operator-(const vec& a, const vec& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend vec operator*(double s, const vec& a) { return {s * a.x, s * a.y, s * a.z}; }
  friend bool operator==(const vec&, const vec&) = default;
  double squared() const { return x * x + y * y + z * z; }
};

struct body {
  vec at, speed;
  double mass = 0;
  friend bool operator==(const body&, const body&) = default;
};

/// Body @p i at the beginning: a dense ball with a thin outside, turning slowly.
body first_body(const problem& p, std::uint64_t i);

inline constexpr unsigned leaf_bodies = 8;
inline constexpr unsigned most_levels = 48;  ///< bodies closer than that share a leaf

struct cube {
  vec middle;
  double half = 0;

  unsigned octant(const vec& v) const {
    return static_cast<unsigned>(v.x >= middle.x) | static_cast<unsigned>(v.y >= middle.y) << 1 |
           static_cast<unsigned>(v.z >= middle.z) << 2;
  }
  cube child(unsigned octant) const {
    const double h = half / 2;
    return {{middle.x + (octant & 1 ? h : -h), middle.y + (octant & 2 ? h : -h),
             middle.z + (octant & 4 ? h : -h)},
            h};
  }
};

/// A cell of the tree, its bodies [first, first + count) in the array of bodies, which is sorted by cells.
/// Link: how children are reached, an array of `children` cells; a leaf has none.
template <template <class> class Link>
struct cell_of {
  vec centre;
  double mass = 0;
  double side = 0;
  std::uint64_t first = 0;
  std::uint32_t count = 0, children = 0;
  Link<cell_of> child{};
};

/// Mass and centre from parts, which are bodies or cells.
class summary {
 public:
  void add(const vec& at, double mass) {
    mass_ += mass;
    moment_ += mass * at;
  }
  template <class Cell>
  void store(Cell& c) const {
    c.mass = mass_;
    c.centre = mass_ == 0 ? vec() : 1 / mass_ * moment_;
  }

 private:
  double mass_ = 0;
  vec moment_;
};

/// How far the bodies of [from, to) are from the origin at most, by coordinates.
inline double extent(const body* from, const body* to) {
  double most = 0;
  for (; from != to; ++from)
    most = std::max({most, std::abs(from->at.x), std::abs(from->at.y), std::abs(from->at.z)});
  return most;
}
inline cube root_cube(double extent) { return {{}, extent * 1.0001}; }

/// Sort bodies by octant, stably. @p ends: where each octant ends.
inline void divide(body* from, std::uint64_t n, const cube& where, std::uint64_t (&ends)[8]) {
  std::uint64_t at[8] = {};
  for (std::uint64_t i = 0; i < n; ++i) ++at[where.octant(from[i].at)];
  std::uint64_t sum = 0;
  for (unsigned o = 0; o < 8; ++o) {
    const std::uint64_t count = at[o];
    at[o] = sum;
    ends[o] = sum += count;
  }
  const std::vector<body> old(from, from + n);
  for (const body& b : old) from[at[where.octant(b.at)]++] = b;
}

/// What a mass does to a body at @p at. Softened: no two bodies are nearer than some distance.
inline void pull(vec& acceleration, const vec& at, const vec& source, double mass) {
  const vec way = source - at;
  const double d2 = way.squared() + 1e-6;
  acceleration += mass / (d2 * std::sqrt(d2)) * way;
}
template <class Cell>
bool is_far(const Cell& c, const vec& at, double theta) {
  return c.side * c.side < theta * theta * (c.centre - at).squared();
}
inline body moved(body b, const vec& acceleration, double dt) {
  b.speed += dt * acceleration;
  b.at += dt * b.speed;
  return b;
}

/// Direct sum over all bodies.
vec direct(const body* bodies, std::uint64_t n, const vec& at);

template <class T>
using plain_link = T*;
using plain_cell = cell_of<plain_link>;

/// Sorts the bodies. Give the cell to destroy_serial.
plain_cell build_serial(std::vector<body>& bodies);
void destroy_serial(const plain_cell& root);
vec acceleration_serial(const plain_cell& root, const std::vector<body>& bodies, const vec& at, double theta);
void step_serial(const plain_cell& root, const std::vector<body>& bodies, std::vector<body>& to,
                 const problem& p);

/// Which bodies are compared with direct sums, and how far off the tree may be: root mean square over that of
/// the forces.
inline constexpr std::uint64_t sample = 64;
inline double allowed_error(double theta) { return 0.02 * theta * theta + 1e-12; }

}  // namespace nbody
