// MG: the discrete Poisson problem on a periodic cube by V-cycles of multigrid. Twenty points have a
// charge, +1 or -1: where the greatest and the least of the first random numbers fall.
//
// A grid of side n is n planes of n + 2 lines of n + 2 points: within a plane the edges are copies of the
// opposite sides, written by whoever writes the plane; from the last plane to the first one goes by index.
// So an operator is one loop over planes.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "npb.hpp"
#include "random.hpp"
#include "verify.hpp"
#include "worlds.hpp"

namespace npb {

namespace {

constexpr std::uint64_t seed = 314159265;
constexpr int most_levels = 9;
/// Lines have at most this many points with the edges; a multiple of what vectors want.
constexpr std::size_t most_points = 264;

/// Of NPB's operators: the point, and those that differ from it in one, two, three coordinates.
struct weights {
  double point, face, edge, corner;
};
constexpr weights laplace{-8.0 / 3, 0, 1.0 / 6, 1.0 / 12}, smoother{-3.0 / 8, 1.0 / 32, -1.0 / 64, 0};

struct charge {
  std::uint64_t plane, point;  ///< point: within the plane, with the edges
  double value;
};
std::vector<charge> charges;

/// The places of the ten greatest and the ten least of side^3 random numbers.
std::vector<charge> find_charges(std::uint64_t side) {
  constexpr std::size_t each = 10;
  using drawn = std::pair<std::uint64_t, std::uint64_t>;  // number, place
  std::vector<drawn> least, greatest;                     // heaps: the one to be replaced in front
  random_numbers numbers(seed);
  const auto offer = [](std::vector<drawn>& to, drawn d, auto better) {
    if (to.size() == each && !better(d, to.front())) return;
    if (to.size() == each) {
      std::pop_heap(to.begin(), to.end(), better);
      to.pop_back();
    }
    to.push_back(d);
    std::push_heap(to.begin(), to.end(), better);
  };
  for (std::uint64_t i = 0; i < side * side * side; ++i) {
    const drawn d{numbers(), i};
    offer(least, d, std::less<>());
    offer(greatest, d, std::greater<>());
  }
  std::vector<charge> all;
  const auto put = [&](const std::vector<drawn>& places, double value) {
    for (const auto& [number, i] : places)
      all.push_back({i / side / side, (i / side % side + 1) * (side + 2) + i % side + 1, value});
  };
  put(least, -1);
  put(greatest, 1);
  return all;
}

/// The edges of a plane.
void close(double* plane, std::uint64_t side) noexcept {
  const std::uint64_t line = side + 2;
  for (std::uint64_t j = 1; j <= side; ++j) {
    plane[j * line] = plane[j * line + side];
    plane[j * line + side + 1] = plane[j * line + 1];
  }
  std::copy_n(plane + side * line, line, plane);
  std::copy_n(plane + line, line, plane + (side + 1) * line);
}

/// A plane and its neighbours, or one line in each and in the lines beside.
struct three {
  const double *below, *here, *above;
};

/// Sums over the neighbours of each point of a line that do not differ from it along the line: four beside
/// it and four across.
struct line_sums {
  double beside[most_points], across[most_points];
  void add_up(const three& at, std::uint64_t line) noexcept {
    const double *b = at.below, *h = at.here, *a = at.above;
    const auto n = static_cast<std::ptrdiff_t>(line);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
      beside[i] = h[i - n] + h[i + n] + b[i] + a[i];
      across[i] = b[i - n] + b[i + n] + a[i - n] + a[i + n];
    }
  }
};

/// r = v - A u in a plane; r may be v.
void residual(const three& u, const double* v, double* r, std::uint64_t side) noexcept {
  const std::uint64_t line = side + 2;
  line_sums s;
  for (std::uint64_t j = 1; j <= side; ++j) {
    const std::uint64_t at = j * line;
    s.add_up({u.below + at, u.here + at, u.above + at}, line);
    const double *const from = v + at, *const mid = u.here + at;
    double* const to = r + at;
#pragma GCC ivdep
    for (std::uint64_t i = 1; i <= side; ++i)
      to[i] = from[i] - laplace.point * mid[i] -
              laplace.edge * (s.across[i] + s.beside[i - 1] + s.beside[i + 1]) -
              laplace.corner * (s.across[i - 1] + s.across[i + 1]);
  }
  close(r, side);
}

/// u = S r, or u += S r, in a plane.
template <bool Add>
void smooth(const three& r, double* u, std::uint64_t side) noexcept {
  const std::uint64_t line = side + 2;
  line_sums s;
  for (std::uint64_t j = 1; j <= side; ++j) {
    const std::uint64_t at = j * line;
    s.add_up({r.below + at, r.here + at, r.above + at}, line);
    const double* const mid = r.here + at;
    double* const to = u + at;
#pragma GCC ivdep
    for (std::uint64_t i = 1; i <= side; ++i)
      to[i] = (Add ? to[i] : 0) + smoother.point * mid[i] +
              smoother.face * (mid[i - 1] + mid[i + 1] + s.beside[i]) +
              smoother.edge * (s.across[i] + s.beside[i - 1] + s.beside[i + 1]);
  }
  close(u, side);
}

/// A plane of the next coarser grid, of side @p side, from three of the finer one: weights of full
/// weighting.
void restrict_to(const three& fine, double* coarse, std::uint64_t side) noexcept {
  const std::uint64_t line = side + 2, fine_line = 2 * side + 2;
  line_sums s;
  for (std::uint64_t j = 1; j <= side; ++j) {
    const std::uint64_t at = 2 * j * fine_line;
    s.add_up({fine.below + at, fine.here + at, fine.above + at}, fine_line);
    const double* const mid = fine.here + at;
    double* const to = coarse + j * line;
    for (std::uint64_t i = 1; i <= side; ++i) {
      const std::uint64_t k = 2 * i;
      to[i] = 0.5 * mid[k] + 0.25 * (mid[k - 1] + mid[k + 1] + s.beside[k]) +
              0.125 * (s.beside[k - 1] + s.beside[k + 1] + s.across[k]) +
              0.0625 * (s.across[k - 1] + s.across[k + 1]);
    }
  }
  close(coarse, side);
}

/// fine = or += what trilinear interpolation makes of two coarse planes of side @p side; for a plane that
/// lies in a coarse one, both are that. Edges included.
template <bool Add>
void interpolate(const double* one, const double* other, double* fine, std::uint64_t side) noexcept {
  const std::uint64_t line = side + 2, fine_line = 2 * side + 2;
  double here[most_points], next[most_points];
  const auto average = [&](double* to, std::uint64_t j) {
    for (std::uint64_t i = 0; i < line; ++i) to[i] = 0.5 * (one[j * line + i] + other[j * line + i]);
  };
  const auto stretch = [side](const double* from, double* to) {
    for (std::uint64_t i = 0; i <= side; ++i) {
      to[2 * i] = (Add ? to[2 * i] : 0) + from[i];
      to[2 * i + 1] = (Add ? to[2 * i + 1] : 0) + 0.5 * (from[i] + from[i + 1]);
    }
  };
  average(here, 0);
  for (std::uint64_t j = 0; j <= side; ++j) {
    average(next, j + 1);
    stretch(here, fine + 2 * j * fine_line);
    for (std::uint64_t i = 0; i < line; ++i) here[i] = 0.5 * (here[i] + next[i]);
    stretch(here, fine + (2 * j + 1) * fine_line);
    std::copy_n(next, line, here);
  }
}

double sum_of_squares(const double* plane, std::uint64_t side) noexcept {
  double all[4] = {};
  for (std::uint64_t j = 1; j <= side; ++j)
    for (std::uint64_t i = 1; i <= side; ++i) {
      const double x = plane[j * (side + 2) + i];
      all[i % 4] += x * x;
    }
  return (all[0] + all[1]) + (all[2] + all[3]);
}

/// A grid's memory, as loops see it.
template <class Span>
struct grid {
  Span points;
  std::uint64_t side;

  std::uint64_t plane_points() const noexcept { return (side + 2) * (side + 2); }
  /// Plane @p k, of a periodic grid: -1 is the last one.
  template <class Mode>
  auto plane(std::uint64_t k, Mode mode) const {
    return points.subspan((k + side) % side * plane_points(), plane_points()).checkout(mode);
  }
};

template <class World>
class multigrid {
  using array = typename World::template array<double>;
  using cube = grid<typename World::template span<double>>;

 public:
  multigrid(World& world, const mg_problem& p) : world_(world), finest_(p.log_side) {
    const auto make = [&](int level) {
      const std::uint64_t side = std::uint64_t{1} << level;
      return world.template make<double>(side, (side + 2) * (side + 2));
    };
    for (int l = 1; l <= finest_; ++l) {
      u_[static_cast<std::size_t>(l)] = make(l);
      r_[static_cast<std::size_t>(l)] = make(l);
    }
    v_ = make(finest_);
  }

  /// The charges; and no solution.
  void begin() {
    const cube u = solution(finest_), v = right_side();
    planes(u, [=](std::uint64_t k) {
      const auto zero = u.plane(k, gw::access::write);
      std::fill(zero.begin(), zero.end(), 0.0);
      const auto to = v.plane(k, gw::access::write);
      std::fill(to.begin(), to.end(), 0.0);
      for (const charge& c : charges)
        if (c.plane == k) to[c.point] = c.value;
      close(to.data(), v.side);
    });
  }

  /// r = v - A u on the finest grid.
  void find_residual() { subtract(solution(finest_), right_side(), rest(finest_)); }

  /// One V-cycle. Begins with the residual, ends without.
  void cycle() {
    for (int l = finest_; l > 1; --l) restrict_from(rest(l), rest(l - 1));
    smoothen<false>(rest(1), solution(1));
    for (int l = 2; l < finest_; ++l) {
      refine<false>(solution(l - 1), solution(l));
      subtract(solution(l), rest(l), rest(l));
      smoothen<true>(rest(l), solution(l));
    }
    refine<true>(solution(finest_ - 1), solution(finest_));
    find_residual();
    smoothen<true>(rest(finest_), solution(finest_));
  }

  double norm() {
    const cube r = rest(finest_);
    const double sum = world_.template sum<double>(
        r.points, r.side, grain(r.side), [r](std::uint64_t low, std::uint64_t high) {
          double all = 0;
          for (std::uint64_t k = low; k < high; ++k)
            all += sum_of_squares(r.plane(k, gw::access::read).data(), r.side);
          return all;
        });
    return std::sqrt(sum / std::pow(static_cast<double>(r.side), 3));
  }

 private:
  cube of(array& a, int level) { return {a.span(), std::uint64_t{1} << level}; }
  cube solution(int level) { return of(u_[static_cast<std::size_t>(level)], level); }
  cube rest(int level) { return of(r_[static_cast<std::size_t>(level)], level); }
  cube right_side() { return of(v_, finest_); }

  /// Planes in a piece: some 16 K points, microseconds.
  static std::uint64_t grain(std::uint64_t side) { return (std::uint64_t{1} << 14) / (side * side) + 1; }
  /// f(plane) for all of a cube.
  template <class F>
  void planes(const cube& of, const F& f) {
    each(world_, of.points, of.side, grain(of.side), [f](std::uint64_t low, std::uint64_t high) {
      for (std::uint64_t k = low; k < high; ++k) f(k);
    });
  }
  /// f(planes k - 1, k, k + 1 of g).
  template <class F>
  static void with_three(const cube& g, std::uint64_t k, const F& f) {
    const auto below = g.plane(k + g.side - 1, gw::access::read), here = g.plane(k, gw::access::read),
               above = g.plane(k + 1, gw::access::read);
    f(three{below.data(), here.data(), above.data()});
  }

  /// r = v - A u; r may be v.
  void subtract(const cube& u, const cube& v, const cube& r) {
    planes(u, [=](std::uint64_t k) {
      with_three(u, k, [&](const three& us) {
        if (v.points.data() == r.points.data()) {
          const auto both = r.plane(k, gw::access::read_write);
          residual(us, both.data(), both.data(), u.side);
        } else {
          const auto from = v.plane(k, gw::access::read);
          residual(us, from.data(), r.plane(k, gw::access::write).data(), u.side);
        }
      });
    });
  }
  template <bool Add>
  void smoothen(const cube& r, const cube& u) {
    planes(u, [=](std::uint64_t k) {
      with_three(r, k, [&](const three& rs) { smooth<Add>(rs, u.plane(k, mode<Add>()).data(), u.side); });
    });
  }
  void restrict_from(const cube& fine, const cube& coarse) {
    planes(coarse, [=](std::uint64_t k) {
      with_three(fine, 2 * k + 1, [&](const three& planes) {
        restrict_to(planes, coarse.plane(k, gw::access::write).data(), coarse.side);
      });
    });
  }
  template <bool Add>
  void refine(const cube& coarse, const cube& fine) {
    planes(fine, [=](std::uint64_t k) {
      const auto one = coarse.plane((k + 2 * coarse.side - 1) / 2, gw::access::read),
                 other = coarse.plane(k / 2, gw::access::read);
      interpolate<Add>(one.data(), other.data(), fine.plane(k, mode<Add>()).data(), coarse.side);
    });
  }
  template <bool Add>
  static auto mode() {
    if constexpr (Add)
      return gw::access::read_write;
    else
      return gw::access::write;
  }

  World& world_;
  int finest_;
  std::array<array, most_levels> u_, r_;  ///< from level 1, of side 2
  array v_;
};

template <class World>
outcome solve(World&& world, char size_class) {
  const mg_problem p(size_class);
  multigrid<std::remove_cvref_t<World>> all(world, p);
  const auto cycles = [&](int n) {
    for (int i = 0; i < n; ++i) {
      all.cycle();
      all.find_residual();
    }
  };
  all.begin();
  all.find_residual();
  cycles(1);  // NPB: an iteration that touches everything first
  all.begin();
  double norm = 0;
  outcome out;
  out.timed = world.measured([&] {
    all.find_residual();
    all.norm();  // NPB: the norm at the beginning is timed
    cycles(mg_problem::iterations);
    norm = all.norm();
  });
  out.verified = p.verified(norm);
  return out;
}

}  // namespace

const benchmark mg{"MG", [](char c) { charges = find_charges(std::uint64_t{1} << mg_problem(c).log_side); },
                   [](char c, unsigned threads) { return solve(plain(threads), c); },
                   [](char c) { return solve(in_godwit(), c); }};

}  // namespace npb
