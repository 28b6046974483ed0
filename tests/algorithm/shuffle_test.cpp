// reverse against std's; shuffle: a permutation, one for each seed on every schedule, of which none is
// favoured. Test of include/godwit/algorithm/shuffle.hpp.
// test: timeout=300 skip-qemu
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "algorithm/places.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace gw = godwit;
using support::for_each_place;
using support::load;
using support::scrambled;
using support::set;
using support::sizes;
using support::wrong;

namespace {

TEST(Reverse, AgreesWithStd) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      auto p = gw::allocate<int>(n, d);
      set(p, n, [](std::uint64_t i) { return i; });
      gw::reverse(p, p + static_cast<long>(n));
      if (!support::same(p, n, [n](std::uint64_t i) { return n - 1 - i; })) return wrong("reverse", n);
      gw::reverse(gw::global_span<int>(p, n), gw::grain{3});
      if (!support::same(p, n, [](std::uint64_t i) { return i; })) return wrong("and back", n);
      gw::deallocate(p, n);
    }
    return std::string();
  });
}

/// Shuffled numbers 0 ... n - 1, folded to a number; 0 if they are no permutation, or left in order.
std::uint64_t shuffled(std::uint64_t n, std::uint64_t seed, const gw::distribution& d) {
  auto p = gw::allocate<std::uint32_t>(n, d);
  gw::iota(p, p + static_cast<long>(n), 0);
  gw::shuffle(p, p + static_cast<long>(n), seed);
  std::uint64_t result = 0xcbf29ce484222325u;
  {
    auto v = load(p, n);
    for (const std::uint32_t x : v) result = (result ^ x) * 0x100000001b3u;
    if (n > 10 && std::is_sorted(v.begin(), v.end())) result = 0;
    std::sort(v.begin(), v.end());
    for (std::uint64_t i = 0; i < n; ++i)
      if (v[i] != i) result = 0;
  }
  gw::deallocate(p, n);
  return result;
}

TEST(Shuffle, OneOrderPerSeedOnEverySchedule) {
  for (const std::uint64_t n : {0u, 1u, 2u, 100u, 32768u, 32769u, 100'003u}) {
    std::vector<std::uint64_t> seen, other;
    for (const char* check : {"off", "on"})
      for (const char* force : {"none", "random"})
        for (const std::uint32_t workers : {1u, 2u, 4u}) {
          gw::options o = support::schedule(workers, force);
          o.check_global = gw::choice::named{check};
          seen.push_back(
              gw::run<std::uint64_t>([n] { return shuffled(n, 42, gw::distribution::cyclic(48000)); }, o));
          other.push_back(
              gw::run<std::uint64_t>([n] { return shuffled(n, 43, gw::distribution::blocked()); }, o));
          EXPECT_NE(seen.back(), 0u) << n;
          EXPECT_EQ(seen.back(), seen.front()) << n;
          EXPECT_NE(other.back(), 0u) << n;
          EXPECT_EQ(other.back(), other.front()) << n;
        }
    if (n > 10) {
      EXPECT_NE(seen.front(), other.front());
    }
  }
}

TEST(Shuffle, NoOrderIsFavoured) {
  // Few elements: all 24 orders of 4. Many: where element 0 and the one in the middle end up, in tenths of
  // the range.
  using counts = std::array<long, 44>;
  const counts c = gw::run<counts>(
      [] {
        counts count{};
        auto p = gw::allocate<int>(4);
        for (std::uint64_t seed = 0; seed < 24'000; ++seed) {
          gw::iota(p, p + 4, 0);
          gw::shuffle(p, p + 4, seed);
          int order[4], rank = 0;
          gw::get(p, order, 4);
          for (int i = 0; i < 4; ++i) {
            int smaller = 0;
            for (int j = i + 1; j < 4; ++j) smaller += order[j] < order[i];
            rank = rank * (4 - i) + smaller;
          }
          ++count[static_cast<std::size_t>(rank)];
        }
        gw::deallocate(p, 4);
        constexpr long n = 40'000;
        auto q = gw::allocate<int>(n);
        for (std::uint64_t seed = 0; seed < 500; ++seed) {
          gw::iota(q, q + n, 0);
          gw::shuffle(q, q + n, seed);
          ++count[static_cast<std::size_t>(24 + (gw::find(q, q + n, 0) - q) * 10 / n)];
          ++count[static_cast<std::size_t>(34 + (gw::find(q, q + n, n / 2) - q) * 10 / n)];
        }
        gw::deallocate(q, n);
        return count;
      },
      support::schedule(2));
  // Six standard deviations.
  for (std::size_t i = 0; i < 24; ++i) EXPECT_NEAR(static_cast<double>(c[i]), 1000, 190) << i;
  for (std::size_t i = 24; i < 44; ++i) EXPECT_NEAR(static_cast<double>(c[i]), 50, 41) << i;
}

}  // namespace
