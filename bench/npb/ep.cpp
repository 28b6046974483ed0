// EP, embarrassingly parallel: pairs of random numbers become Gaussian deviates by the polar method; their
// sums, and how many lie in which square ring. A batch of 2^16 pairs begins at a known place of the random
// sequence.

#include <array>
#include <cmath>

#include "npb.hpp"
#include "random.hpp"
#include "verify.hpp"
#include "worlds.hpp"

namespace npb {

namespace {

constexpr int log_batch = 16;
constexpr std::uint64_t seed = 271828183;

struct tally {
  double sx = 0, sy = 0;
  std::array<std::uint64_t, 10> ring{};
  friend tally operator+(tally a, const tally& b) noexcept {
    a.sx += b.sx;
    a.sy += b.sy;
    for (std::size_t i = 0; i < a.ring.size(); ++i) a.ring[i] += b.ring[i];
    return a;
  }
};

/// The pairs inside the unit circle, some at a time: so square roots and sums can be vectorised.
constexpr int chunk = 512;
struct accepted {
  int n = 0;
  double x[chunk], y[chunk], t[chunk];
};

void draw(random_numbers& numbers, accepted& to) noexcept {
  to.n = 0;
  for (int i = 0; i < chunk; ++i) {
    const double x = 2 * numbers.real() - 1, y = 2 * numbers.real() - 1, t = x * x + y * y;
    to.x[to.n] = x;
    to.y[to.n] = y;
    to.t[to.n] = t;
    to.n += t <= 1 ? 1 : 0;
  }
}

void add(accepted& a, tally& to) noexcept {
  double factor[chunk], largest[chunk];
  for (int i = 0; i < a.n; ++i) factor[i] = std::log(a.t[i]);
  for (int i = 0; i < a.n; ++i) factor[i] = std::sqrt(-2 * factor[i] / a.t[i]);
  for (int i = 0; i < a.n; ++i) {
    a.x[i] *= factor[i];
    a.y[i] *= factor[i];
    const double x = std::abs(a.x[i]), y = std::abs(a.y[i]);
    largest[i] = x > y ? x : y;
  }
  for (int i = 0; i < a.n; ++i) {
    to.sx += a.x[i];
    to.sy += a.y[i];
    ++to.ring[static_cast<std::size_t>(largest[i])];
  }
}

tally batch(std::uint64_t k) noexcept {
  random_numbers numbers(seed, k << (log_batch + 1));
  tally sum;
  accepted pairs;
  for (int i = 0; i < (1 << log_batch) / chunk; ++i) {
    draw(numbers, pairs);
    add(pairs, sum);
  }
  return sum;
}

/// The loop has none.
using no_memory = gw::global_span<std::byte>;

template <class World>
outcome solve(World&& world, char size_class) {
  const ep_problem p(size_class);
  outcome out;
  tally all;
  out.timed = world.measured([&] {
    all = world.template sum<tally>(no_memory(), std::uint64_t{1} << (p.log_pairs - log_batch), 1,
                                    [](std::uint64_t low, std::uint64_t high) {
                                      tally sum;
                                      for (std::uint64_t k = low; k < high; ++k) sum = sum + batch(k);
                                      return sum;
                                    });
  });
  out.verified = p.verified(all.sx, all.sy);
  return out;
}

}  // namespace

const benchmark ep{"EP", [](char) {}, [](char c, unsigned threads) { return solve(plain(threads), c); },
                   [](char c) { return solve(in_godwit(), c); }};

}  // namespace npb
