// FT: a heat equation in a periodic box, solved by its Fourier transform: one transform of random numbers,
// then for every time step a factor and a transform back, of which 1,024 points are summed.
//
// The box is nz planes of ny lines of nx complex numbers. Transforms along x and y stay within a plane: one
// loop over planes. Those along z take a line of every plane: a loop over lines, in which memory of all
// workers is read or written. The spectrum is used there only, and lies in the order of that loop. The
// transform of several columns at a time is Stockham's with radix 4.

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "npb.hpp"
#include "random.hpp"
#include "verify.hpp"
#include "worlds.hpp"

namespace npb {

namespace {

constexpr std::uint64_t seed = 314159265;
constexpr double alpha = 1e-6;
constexpr std::size_t longest = 256;  ///< of a transform; a power of two
constexpr std::size_t columns = 8;    ///< transformed at a time: two lines of a cache beside each other

struct complex {
  double re, im;
  friend complex operator+(complex a, complex b) noexcept { return {a.re + b.re, a.im + b.im}; }
};

/// exp(2 pi i k / longest); made before the run.
std::array<complex, longest> roots;

/// Columns of numbers, real and imaginary parts apart.
struct block {
  alignas(64) double re[longest * columns], im[longest * columns];
};

/// One step of radix 4: in @p from 4 parts of @p quarter groups of @p stride numbers each.
template <int Sign>
void radix_4(const block& from, block& to, std::size_t quarter, std::size_t stride) noexcept {
  const std::size_t part = quarter * stride;
  for (std::size_t g = 0; g < quarter; ++g) {
    const std::size_t step = longest / (4 * quarter);
    const complex w1 = roots[g * step], w2 = roots[2 * g * step], w3 = roots[3 * g * step];
    const double s1 = Sign * w1.im, s2 = Sign * w2.im, s3 = Sign * w3.im;
    const double *const r = from.re + g * stride, *const i = from.im + g * stride;
    double* const __restrict tr = to.re + 4 * g * stride, * const __restrict ti = to.im + 4 * g * stride;
    for (std::size_t q = 0; q < stride; ++q) {
      const double r02 = r[q] + r[q + 2 * part], i02 = i[q] + i[q + 2 * part];
      const double r0m2 = r[q] - r[q + 2 * part], i0m2 = i[q] - i[q + 2 * part];
      const double r13 = r[q + part] + r[q + 3 * part], i13 = i[q + part] + i[q + 3 * part];
      // Sign * i * (1 - 3)
      const double jr = Sign * (i[q + 3 * part] - i[q + part]), ji = Sign * (r[q + part] - r[q + 3 * part]);
      tr[q] = r02 + r13;
      ti[q] = i02 + i13;
      const double ar = r0m2 + jr, ai = i0m2 + ji, br = r02 - r13, bi = i02 - i13, cr = r0m2 - jr,
                   ci = i0m2 - ji;
      tr[q + stride] = ar * w1.re - ai * s1;
      ti[q + stride] = ai * w1.re + ar * s1;
      tr[q + 2 * stride] = br * w2.re - bi * s2;
      ti[q + 2 * stride] = bi * w2.re + br * s2;
      tr[q + 3 * stride] = cr * w3.re - ci * s3;
      ti[q + 3 * stride] = ci * w3.re + cr * s3;
    }
  }
}

void radix_2(const block& from, block& to, std::size_t stride) noexcept {
  const auto one = [stride](const double* __restrict f, double* __restrict t) {
    for (std::size_t q = 0; q < stride; ++q) {
      t[q] = f[q] + f[q + stride];
      t[q + stride] = f[q] - f[q + stride];
    }
  };
  one(from.re, to.re);
  one(from.im, to.im);
}

/// The transform, times exp(Sign 2 pi i j k / n), of columns of @p n numbers. Gives back the block that has
/// it.
template <int Sign>
block& transform(block& from, block& other, std::size_t n) noexcept {
  block *a = &from, *b = &other;
  std::size_t stride = columns;
  for (; n >= 4; n /= 4, stride *= 4) {
    radix_4<Sign>(*a, *b, n / 4, stride);
    std::swap(a, b);
  }
  if (n == 2) {
    radix_2(*a, *b, stride);
    std::swap(a, b);
  }
  return *a;
}

/// Numbers that lie beside each other in row k go to row k of the block, and back.
void take(const complex* from, block& to, std::size_t k) noexcept {
  for (std::size_t c = 0; c < columns; ++c) {
    to.re[k * columns + c] = from[c].re;
    to.im[k * columns + c] = from[c].im;
  }
}
void give(const block& from, std::size_t k, complex* to) noexcept {
  for (std::size_t c = 0; c < columns; ++c) to[c] = {from.re[k * columns + c], from.im[k * columns + c]};
}

/// A plane of @p ny lines, along x, in place.
template <int Sign>
void transform_lines(complex* plane, std::size_t nx, std::size_t ny, block& a, block& b) noexcept {
  for (std::size_t j = 0; j < ny; j += columns) {
    complex* const lines = plane + j * nx;
    for (std::size_t i = 0; i < nx; ++i)
      for (std::size_t c = 0; c < columns; ++c) {
        a.re[i * columns + c] = lines[c * nx + i].re;
        a.im[i * columns + c] = lines[c * nx + i].im;
      }
    const block& done = transform<Sign>(a, b, nx);
    for (std::size_t c = 0; c < columns; ++c)
      for (std::size_t i = 0; i < nx; ++i)
        lines[c * nx + i] = {done.re[i * columns + c], done.im[i * columns + c]};
  }
}
/// Along y.
template <int Sign>
void transform_across(complex* plane, std::size_t nx, std::size_t ny, block& a, block& b) noexcept {
  for (std::size_t i = 0; i < nx; i += columns) {
    for (std::size_t j = 0; j < ny; ++j) take(plane + j * nx + i, a, j);
    const block& done = transform<Sign>(a, b, ny);
    for (std::size_t j = 0; j < ny; ++j) give(done, j, plane + j * nx + i);
  }
}

/// exp(-4 alpha pi^2 k^2) for the frequencies of an axis of @p n points; in a box their product decays in a
/// time step.
using decay = std::array<double, longest>;
decay decay_along(std::size_t n) noexcept {
  decay of{};
  for (std::size_t i = 0; i < n; ++i) {
    const double k = static_cast<double>(i) - (i < n / 2 ? 0 : static_cast<double>(n));
    of[i] = std::exp(-4 * alpha * std::numbers::pi * std::numbers::pi * k * k);
  }
  return of;
}
struct decays {
  decay x, y, z;
};

/// Room for one leaf: too large for the stack of a thread.
struct room {
  block a, b;
};

template <class World>
class heat_equation {
  using span = typename World::template span<complex>;

 public:
  heat_equation(World& world, const ft_problem& p)
      : world_(world),
        nx_(static_cast<std::size_t>(p.nx)),
        ny_(static_cast<std::size_t>(p.ny)),
        nz_(static_cast<std::size_t>(p.nz)),
        spectrum_(world.template make<complex>(ny_, nx_ * nz_)),
        field_(world.template make<complex>(nz_, nx_ * ny_)),
        decays_(world.template make<decays>(1, 1)) {}

  /// The spectrum of random numbers.
  void begin() {
    decays_.span()[0] = decays{decay_along(nx_), decay_along(ny_), decay_along(nz_)};
    const auto f = field_.span();
    each(world_, f, nz_, 1, [f, nx = nx_, ny = ny_](std::uint64_t low, std::uint64_t high) {
      const auto r = std::make_unique_for_overwrite<room>();
      for (std::uint64_t k = low; k < high; ++k) {
        const auto plane = f.subspan(k * nx * ny, nx * ny).checkout(gw::access::write);
        random_numbers numbers(seed, 2 * k * nx * ny);
        for (complex& c : plane) {
          c.re = numbers.real();
          c.im = numbers.real();
        }
        transform_lines<1>(plane.data(), nx, ny, r->a, r->b);
        transform_across<1>(plane.data(), nx, ny, r->a, r->b);
      }
    });
    along_z([f, s = spectrum_.span()](const lines& at) {
      const auto from = at.of(f, gw::access::read);
      const auto to = at.of_spectrum(s, gw::access::write);
      at.each_block([&](std::size_t j, std::size_t i, block& a, block& b) {
        for (std::size_t k = 0; k < at.nz; ++k) take(from[k].data() + j * at.nx + i, a, k);
        const block& done = transform<1>(a, b, at.nz);
        for (std::size_t k = 0; k < at.nz; ++k) give(done, k, to.data() + (j * at.nz + k) * at.nx + i);
      });
    });
  }

  /// One step of time. Gives back NPB's sum of points.
  std::complex<double> step() {
    const auto f = field_.span();
    along_z([f, s = spectrum_.span(), d = decays_.span()](const lines& at) {
      const auto spectrum = at.of_spectrum(s, gw::access::read_write);
      const auto field = at.of(f, gw::access::write);
      const auto decay = d.checkout(gw::access::read);
      at.each_block([&](std::size_t j, std::size_t i, block& a, block& b) {
        for (std::size_t k = 0; k < at.nz; ++k) {
          complex* const from = spectrum.data() + (j * at.nz + k) * at.nx + i;
          const double factor = decay[0].z[k] * decay[0].y[at.first + j];
          for (std::size_t c = 0; c < columns; ++c) {
            const double all = factor * decay[0].x[i + c];
            from[c] = {from[c].re * all, from[c].im * all};
          }
          take(from, a, k);
        }
        const block& done = transform<-1>(a, b, at.nz);
        for (std::size_t k = 0; k < at.nz; ++k) give(done, k, field[k].data() + j * at.nx + i);
      });
    });
    const complex sum = world_.template sum<complex>(
        f, nz_, 1, [f, nx = nx_, ny = ny_, nz = nz_](std::uint64_t low, std::uint64_t high) {
          const auto r = std::make_unique_for_overwrite<room>();
          complex all{0, 0};
          for (std::uint64_t k = low; k < high; ++k) {
            const auto plane = f.subspan(k * nx * ny, nx * ny).checkout(gw::access::read_write);
            transform_across<-1>(plane.data(), nx, ny, r->a, r->b);
            transform_lines<-1>(plane.data(), nx, ny, r->a, r->b);
            for (std::size_t j = 1; j <= 1024; ++j)
              if (5 * j % nz == k) all = all + plane[3 * j % ny * nx + j % nx];
          }
          return all;
        });
    return std::complex<double>(sum.re, sum.im) / static_cast<double>(nx_ * ny_ * nz_);
  }

 private:
  /// Some lines, the same of every plane: what a leaf of a transform along z works on. It does not spawn.
  struct lines {
    std::size_t nx, ny, nz, first, count;

    /// checkouts[k]: them in plane k.
    template <class Mode>
    auto of(const span& field, Mode mode) const {
      std::vector<decltype(field.checkout(mode))> planes;
      planes.reserve(nz);
      for (std::size_t k = 0; k < nz; ++k)
        planes.push_back(field.subspan((k * ny + first) * nx, count * nx).checkout(mode));
      return planes;
    }
    template <class Mode>
    auto of_spectrum(const span& spectrum, Mode mode) const {
      return spectrum.subspan(first * nz * nx, count * nz * nx).checkout(mode);
    }
    /// f(line, column, room) for all columns of all lines, some at a time.
    template <class F>
    void each_block(const F& f) const {
      const auto r = std::make_unique_for_overwrite<room>();
      for (std::size_t j = 0; j < count; ++j)
        for (std::size_t i = 0; i < nx; i += columns) f(j, i, r->a, r->b);
    }
  };

  /// f(lines) in parallel for all. Some at a time: they are one piece of each plane.
  template <class F>
  void along_z(const F& f) {
    each(world_, spectrum_.span(), ny_, 4,
         [f, nx = nx_, ny = ny_, nz = nz_](std::uint64_t low, std::uint64_t high) {
           f(lines{nx, ny, nz, low, high - low});
         });
  }

  World& world_;
  std::size_t nx_, ny_, nz_;
  typename World::template array<complex> spectrum_;  ///< line j of all planes, then line j + 1
  typename World::template array<complex> field_;     ///< plane after plane
  typename World::template array<decays> decays_;
};

template <class World>
outcome solve(World&& world, char size_class) {
  const ft_problem p(size_class);
  heat_equation<std::remove_cvref_t<World>> all(world, p);
  all.begin();  // NPB: everything is touched first; then setting up is timed, too
  ft_problem::sums sums;
  outcome out;
  out.timed = world.measured([&] {
    all.begin();
    for (auto& s : sums) s = all.step();
  });
  out.verified = p.verified(sums);
  return out;
}

void make_roots(char) {
  for (std::size_t k = 0; k < longest; ++k) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(k) / longest;
    roots[k] = {std::cos(angle), std::sin(angle)};
  }
}

}  // namespace

const benchmark ft{"FT", make_roots, [](char c, unsigned threads) { return solve(plain(threads), c); },
                   [](char c) { return solve(in_godwit(), c); }};

}  // namespace npb
