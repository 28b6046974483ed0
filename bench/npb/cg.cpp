// CG: the smallest eigenvalue of a large sparse matrix by inverse iteration, each solve 25 steps of
// conjugate gradients. The matrix is the sum of x xT over random sparse vectors x of falling weight; it is
// made before the run. All vectors and the matrix lie in global memory; a row of everything belongs to one
// worker.

#include <algorithm>
#include <cmath>
#include <vector>

#include "npb.hpp"
#include "random.hpp"
#include "verify.hpp"
#include "worlds.hpp"

namespace npb {

namespace {

constexpr std::uint64_t seed = 314159265;
constexpr double condition = 0.1;

struct matrix {
  std::vector<std::int32_t> begin, column;  ///< entries of row i: begin[i] ... begin[i + 1]
  std::vector<double> value;
};

/// A sparse vector: entries at different random places, and 0.5 at a given one.
struct sparse {
  std::vector<std::int32_t> place;
  std::vector<double> value;
};

sparse draw(random_numbers& numbers, const cg_problem& p, std::int32_t given) {
  std::uint64_t range = 2;
  while (range < static_cast<std::uint64_t>(p.rows)) range *= 2;
  sparse v;
  const auto find = [&](std::int32_t i) { return std::find(v.place.begin(), v.place.end(), i); };
  while (v.place.size() < static_cast<std::size_t>(p.nonzeros)) {
    const double value = numbers.real();
    const auto i = static_cast<std::int32_t>(static_cast<double>(range) * numbers.real());
    if (i >= p.rows || find(i) != v.place.end()) continue;
    v.place.push_back(i);
    v.value.push_back(value);
  }
  if (const auto at = find(given); at != v.place.end()) {
    v.value[static_cast<std::size_t>(at - v.place.begin())] = 0.5;
  } else {
    v.place.push_back(given);
    v.value.push_back(0.5);
  }
  return v;
}

matrix make_matrix(const cg_problem& p) {
  const auto n = static_cast<std::size_t>(p.rows);
  random_numbers numbers(seed, 1);
  std::vector<sparse> vectors;
  std::vector<std::vector<std::pair<std::size_t, double>>> in_row(
      n);  // vectors with an entry there, weighted
  double weight = 1;
  const double ratio = std::pow(condition, 1.0 / p.rows);
  for (std::size_t i = 0; i < n; ++i, weight *= ratio) {
    vectors.push_back(draw(numbers, p, static_cast<std::int32_t>(i)));
    for (std::size_t k = 0; k < vectors[i].place.size(); ++k)
      in_row[static_cast<std::size_t>(vectors[i].place[k])].emplace_back(i, weight * vectors[i].value[k]);
  }
  matrix a;
  std::vector<double> sum(n);
  std::vector<std::int32_t> columns;
  for (std::size_t row = 0; row < n; ++row) {
    columns = {static_cast<std::int32_t>(row)};
    for (const auto& [i, factor] : in_row[row])
      for (std::size_t k = 0; k < vectors[i].place.size(); ++k) {
        columns.push_back(vectors[i].place[k]);
        sum[static_cast<std::size_t>(vectors[i].place[k])] += vectors[i].value[k] * factor;
      }
    sum[row] += condition - p.shift;
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    a.begin.push_back(static_cast<std::int32_t>(a.column.size()));
    for (const std::int32_t c : columns) {
      a.column.push_back(c);
      a.value.push_back(std::exchange(sum[static_cast<std::size_t>(c)], 0));
    }
  }
  a.begin.push_back(static_cast<std::int32_t>(a.column.size()));
  return a;
}

matrix made;

/// to[i] = row i times x, for @p n rows that begin at begin[0]. Four sums, because one would wait for
/// itself.
void multiply(const std::int32_t* begin, const std::int32_t* column, const double* value, const double* x,
              double* to, std::uint64_t n) noexcept {
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::int32_t first = begin[i] - begin[0], last = begin[i + 1] - begin[0];
    double a = 0, b = 0, c = 0, d = 0;
    std::int32_t k = first;
    for (; k + 4 <= last; k += 4) {
      a += value[k] * x[column[k]];
      b += value[k + 1] * x[column[k + 1]];
      c += value[k + 2] * x[column[k + 2]];
      d += value[k + 3] * x[column[k + 3]];
    }
    for (; k < last; ++k) a += value[k] * x[column[k]];
    to[i] = (a + b) + (c + d);
  }
}

double dot(const double* a, const double* b, std::uint64_t n) noexcept {
  double even = 0, odd = 0;
  for (std::uint64_t i = 0; i + 1 < n; i += 2) {
    even += a[i] * b[i];
    odd += a[i + 1] * b[i + 1];
  }
  if (n % 2 != 0) even += a[n - 1] * b[n - 1];
  return even + odd;
}

struct two_sums {
  double xz = 0, zz = 0;
  friend two_sums operator+(two_sums a, two_sums b) noexcept { return {a.xz + b.xz, a.zz + b.zz}; }
};

template <class World>
class inverse_iteration {
  template <class T>
  using array = typename World::template array<T>;
  template <class T>
  using span = typename World::template span<T>;

 public:
  inverse_iteration(World& world, const cg_problem& p)
      : world_(world),
        p_(p),
        n_(static_cast<std::uint64_t>(p.rows)),
        begin_(copy(&matrix::begin)),
        column_(copy(&matrix::column)),
        value_(copy(&matrix::value)),
        x_(vector()),
        z_(vector()),
        direction_(vector()),
        q_(vector()),
        r_(vector()) {}

  void begin() {
    each(world_, x_.span(), n_, in_loop, [x = x_.span()](std::uint64_t low, std::uint64_t high) {
      const auto to = x.subspan(low, high - low).checkout(gw::access::write);
      std::fill(to.begin(), to.end(), 1.0);
    });
  }

  /// x becomes the normalised solution of A z = x; gives back the estimate of the eigenvalue.
  double iterate() {
    solve();
    const auto [xz, zz] = world_.template sum<two_sums>(
        x_.span(), n_, in_loop, [x = x_.span(), z = z_.span()](std::uint64_t low, std::uint64_t high) {
          const auto a = x.subspan(low, high - low).checkout(gw::access::read);
          const auto b = z.subspan(low, high - low).checkout(gw::access::read);
          return two_sums{dot(a.data(), b.data(), high - low), dot(b.data(), b.data(), high - low)};
        });
    each(world_, x_.span(), n_, in_loop,
         [x = x_.span(), z = z_.span(), factor = 1 / std::sqrt(zz)](std::uint64_t low, std::uint64_t high) {
           const auto from = z.subspan(low, high - low).checkout(gw::access::read);
           const auto to = x.subspan(low, high - low).checkout(gw::access::write);
           for (std::uint64_t i = 0; i < high - low; ++i) to[i] = factor * from[i];
         });
    return p_.shift + 1 / xz;
  }
  /// Of the last solution: |x - A z|.
  double residual() const { return residual_; }

 private:
  array<double> vector() { return world_.template make<double>(n_, 1); }
  /// Rows in a piece of a product, and of a loop over vectors: both take some microseconds.
  std::uint64_t in_product() const { return n_ / 64; }
  static constexpr std::uint64_t in_loop = 4096;

  /// A part of `made` to an array of this world. By the name of the variable: on another host its memory has
  /// another address.
  template <class T>
  array<T> copy(std::vector<T> matrix::*part) {
    const std::uint64_t n = (made.*part).size();
    array<T> all = world_.template make<T>(n, 1);
    each(world_, all.span(), n, n / 64, [part, to = all.span()](std::uint64_t low, std::uint64_t high) {
      const T* const from = (made.*part).data();
      std::copy(from + low, from + high, to.subspan(low, high - low).checkout(gw::access::write).begin());
    });
    freeze(all);
    return all;
  }
  template <class T>
  static void freeze(plain_array<T>&) {}
  template <class T>
  static void freeze(gw::global_array<T>& a) {
    gw::freeze(a.span());
  }

  /// to = A from. Gives back from . to.
  double product(span<double> from, span<double> to) {
    return world_.template sum<double>(
        x_.span(), n_, in_product(),
        [=, begin = begin_.span(), column = column_.span(), value = value_.span()](std::uint64_t low,
                                                                                   std::uint64_t high) {
          const auto rows = begin.subspan(low, high - low + 1).checkout(gw::access::read);
          const auto at = static_cast<std::uint64_t>(rows[0]),
                     n = static_cast<std::uint64_t>(rows[high - low]) - at;
          const auto columns = column.subspan(at, n).checkout(gw::access::read);
          const auto values = value.subspan(at, n).checkout(gw::access::read);
          const auto x = from.checkout(gw::access::read);
          const auto y = to.subspan(low, high - low).checkout(gw::access::write);
          multiply(rows.data(), columns.data(), values.data(), x.data(), y.data(), high - low);
          return dot(x.data() + low, y.data(), high - low);
        });
  }

  /// z = 0, r = p = x. Gives back r . r.
  double start() {
    return world_.template sum<double>(
        x_.span(), n_, in_loop,
        [x = x_.span(), z = z_.span(), p = direction_.span(), r = r_.span()](std::uint64_t low,
                                                                             std::uint64_t high) {
          const auto from = x.subspan(low, high - low).checkout(gw::access::read);
          const auto zero = z.subspan(low, high - low).checkout(gw::access::write);
          std::fill(zero.begin(), zero.end(), 0.0);
          std::copy(from.begin(), from.end(), p.subspan(low, high - low).checkout(gw::access::write).begin());
          std::copy(from.begin(), from.end(), r.subspan(low, high - low).checkout(gw::access::write).begin());
          return dot(from.data(), from.data(), high - low);
        });
  }

  /// z += alpha p, r -= alpha q. Gives back r . r.
  double step(double alpha) {
    return world_.template sum<double>(
        x_.span(), n_, in_loop,
        [alpha, z = z_.span(), p = direction_.span(), q = q_.span(), r = r_.span()](std::uint64_t low,
                                                                                    std::uint64_t high) {
          const auto ps = p.subspan(low, high - low).checkout(gw::access::read);
          const auto qs = q.subspan(low, high - low).checkout(gw::access::read);
          const auto zs = z.subspan(low, high - low).checkout(gw::access::read_write);
          const auto rs = r.subspan(low, high - low).checkout(gw::access::read_write);
          for (std::uint64_t i = 0; i < high - low; ++i) {
            zs[i] += alpha * ps[i];
            rs[i] -= alpha * qs[i];
          }
          return dot(rs.data(), rs.data(), high - low);
        });
  }

  /// p = r + beta p
  void turn(double beta) {
    each(world_, x_.span(), n_, in_loop,
         [beta, p = direction_.span(), r = r_.span()](std::uint64_t low, std::uint64_t high) {
           const auto rs = r.subspan(low, high - low).checkout(gw::access::read);
           const auto ps = p.subspan(low, high - low).checkout(gw::access::read_write);
           for (std::uint64_t i = 0; i < high - low; ++i) ps[i] = rs[i] + beta * ps[i];
         });
  }

  void solve() {
    double rho = start();
    for (int i = 0; i < cg_problem::steps; ++i) {
      const double before = rho;
      rho = step(rho / product(direction_.span(), q_.span()));
      turn(rho / before);
    }
    product(z_.span(), r_.span());
    residual_ = std::sqrt(world_.template sum<double>(
        x_.span(), n_, in_loop, [x = x_.span(), az = r_.span()](std::uint64_t low, std::uint64_t high) {
          const auto a = x.subspan(low, high - low).checkout(gw::access::read);
          const auto b = az.subspan(low, high - low).checkout(gw::access::read);
          double sum = 0;
          for (std::uint64_t i = 0; i < high - low; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
          return sum;
        }));
  }

  World& world_;
  const cg_problem p_;
  std::uint64_t n_;
  array<std::int32_t> begin_, column_;
  array<double> value_, x_, z_, direction_, q_, r_;
  double residual_ = 0;
};

template <class World>
outcome solve(World&& world, char size_class) {
  const cg_problem p(size_class);
  inverse_iteration<std::remove_cvref_t<World>> all(world, p);
  all.begin();
  all.iterate();  // NPB: an iteration that touches everything first
  all.begin();
  double zeta = 0;
  outcome out;
  out.timed = world.measured([&] {
    for (int i = 0; i < cg_problem::iterations; ++i) zeta = all.iterate();
  });
  out.verified = p.verified(zeta) && all.residual() < 1e-10;
  return out;
}

}  // namespace

const benchmark cg{"CG", [](char c) { made = make_matrix(cg_problem(c)); },
                   [](char c, unsigned threads) { return solve(plain(threads), c); },
                   [](char c) { return solve(in_godwit(), c); }};

}  // namespace npb
