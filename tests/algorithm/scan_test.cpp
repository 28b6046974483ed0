// Scans against std's: in place, to other types, operators that do not commute, nested, the same
// floating-point results on every schedule. Test of include/godwit/algorithm/scan.hpp.
// test: timeout=300 skip-qemu
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "algorithm/places.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

namespace gw = godwit;
using support::for_each_place;
using support::load;
using support::scrambled;
using support::set;
using support::sizes;
using support::wrong;

namespace {

/// Does p hold what f makes of the n elements of a vector like q's?
template <class T, class U, class F>
bool agrees(gw::global_ptr<T> p, gw::global_ptr<U> q, std::uint64_t n, F f) {
  const std::vector<U> in = load(q, n);
  std::vector<T> out(n);
  f(in, out);
  return load(p, n) == out;
}

TEST(Scan, AgreesWithStd) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      const long m = static_cast<long>(n);
      auto q = gw::allocate<int>(n, d);
      auto p = gw::allocate<long>(n, d);
      set(q, n, [](std::uint64_t i) { return static_cast<int>(scrambled(i) % 1000) - 300; });
      if (gw::inclusive_scan(q, q + m, p) != p + m) return wrong("end", n);
      if (!agrees(p, q, n,
                  [](auto& in, auto& out) { std::inclusive_scan(in.begin(), in.end(), out.begin()); }))
        return wrong("inclusive", n);
      gw::inclusive_scan(gw::global_span<const int>(q, n), p, std::plus<>(), 1L << 40);
      if (!agrees(p, q, n, [](auto& in, auto& out) {
            std::inclusive_scan(in.begin(), in.end(), out.begin(), std::plus<>(), 1L << 40);
          }))
        return wrong("inclusive with init", n);
      const auto larger = [](int a, int b) { return a < b ? b : a; };
      gw::inclusive_scan(q, q + m, p, larger, gw::grain{3});
      if (!agrees(p, q, n, [=](auto& in, auto& out) {
            std::inclusive_scan(in.begin(), in.end(), out.begin(), larger);
          }))
        return wrong("maxima", n);
      gw::exclusive_scan(q, q + m, p, 5L);
      if (!agrees(p, q, n,
                  [](auto& in, auto& out) { std::exclusive_scan(in.begin(), in.end(), out.begin(), 5L); }))
        return wrong("exclusive", n);
      const auto twice = [](int x) { return 2L * x; };
      gw::transform_inclusive_scan(q, q + m, p, std::plus<>(), twice);
      if (!agrees(p, q, n, [=](auto& in, auto& out) {
            std::transform_inclusive_scan(in.begin(), in.end(), out.begin(), std::plus<>(), twice);
          }))
        return wrong("transform_inclusive", n);
      gw::transform_exclusive_scan(q, q + m, p, -7L, std::plus<>(), twice);
      if (!agrees(p, q, n, [=](auto& in, auto& out) {
            std::transform_exclusive_scan(in.begin(), in.end(), out.begin(), -7L, std::plus<>(), twice);
          }))
        return wrong("transform_exclusive", n);
      gw::transform_inclusive_scan(
          gw::indices(n), p, std::plus<>(), [](std::uint64_t i) { return static_cast<long>(i); }, 1L);
      if (!support::same(p, n, [](std::uint64_t i) { return static_cast<long>(i * (i + 1) / 2) + 1; }))
        return wrong("of indices", n);
      // In place, forwards twice and then back to what it was.
      set(p, n, [](std::uint64_t i) { return static_cast<long>(i) - 3; });
      gw::exclusive_scan(gw::global_span<long>(p, n), p, 0L);
      if (!support::same(p, n, [](std::uint64_t i) {
            return static_cast<long>(i * (i - 1) / 2) - 3 * static_cast<long>(i);
          }))
        return wrong("exclusive in place", n);
      set(p, n, [](std::uint64_t) { return 1; });
      gw::inclusive_scan(p, p + m, p, [](long a, long b) { return a + b; });
      if (!support::same(p, n, [](std::uint64_t i) { return static_cast<long>(i) + 1; }))
        return wrong("inclusive in place", n);
      gw::deallocate(p, n);
      gw::deallocate(q, n);
    }
    return std::string();
  });
}

/// x -> a x + b: composition is associative but does not commute.
struct affine {
  std::uint64_t a, b;
  bool operator==(const affine&) const = default;
};
affine then(const affine& f, const affine& g) { return {f.a * g.a, f.b * g.a + g.b}; }

TEST(Scan, OrderIsKept) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      auto p = gw::allocate<affine>(n, d);
      auto q = gw::allocate<affine>(n, d);
      set(q, n, [](std::uint64_t i) { return affine{scrambled(i), i}; });
      gw::inclusive_scan(q, q + static_cast<long>(n), p, then);
      if (!agrees(p, q, n,
                  [](auto& in, auto& out) { std::inclusive_scan(in.begin(), in.end(), out.begin(), then); }))
        return wrong("inclusive", n);
      gw::exclusive_scan(q, q + static_cast<long>(n), p, affine{3, 4}, gw::never_spawns(then));
      if (!agrees(p, q, n, [](auto& in, auto& out) {
            std::exclusive_scan(in.begin(), in.end(), out.begin(), affine{3, 4}, then);
          }))
        return wrong("exclusive", n);
      gw::deallocate(p, n);
      gw::deallocate(q, n);
    }
    return std::string();
  });
}

TEST(Scan, NestedAndThrowing) {
  for_each_place([](auto d) {
    constexpr int n = 700;
    auto p = gw::allocate<long>(n, d);
    gw::iota(p, p + n, 0);
    auto q = gw::allocate<long>(n, d);
    gw::transform_inclusive_scan(p, p + n, q, std::plus<>(),
                                 [p](long x) { return gw::reduce(p, p + x % 8) + 1; });
    long expected = 0;
    for (int i = 0; i < n; ++i) {
      expected += (i % 8) * (i % 8 - 1) / 2 + 1;
      if (q[i] != expected) return "nested: " + std::to_string(i);
    }
    int caught = 0;
    try {
      gw::inclusive_scan(p, p + n, q, [](long a, long b) -> long {
        if (b == 650) throw std::runtime_error("650");
        return a + b;
      });
    } catch (const std::runtime_error&) {
      caught = 1;
    }
    gw::deallocate(q, n);
    gw::deallocate(p, n);
    return caught == 1 ? std::string() : std::string("no exception");
  });
}

TEST(Scan, FloatingPointIsTheSameOnEverySchedule) {
  std::set<std::uint64_t> seen;
  for (const char* check : {"off", "on"})
    for (const char* force : {"none", "random"})
      for (const std::uint32_t workers : {1u, 2u, 4u}) {
        gw::options o = support::schedule(workers, force);
        o.check_global = gw::choice::named{check};
        seen.insert(gw::run<std::uint64_t>(
            [] {
              constexpr std::uint64_t n = 20'011;
              auto p = gw::allocate<double>(n, gw::distribution::cyclic(4096));
              gw::generate(p, p + n, [](std::uint64_t i) {
                return 1.0 / static_cast<double>(scrambled(i) % 1000 + 1);
              });
              gw::inclusive_scan(p, p + n, p);
              const std::uint64_t bits =
                  gw::transform_reduce(p, p + n, std::uint64_t{0}, std::bit_xor<>(),
                                       [](double x) { return std::bit_cast<std::uint64_t>(x) * 3; });
              gw::deallocate(p, n);
              return bits;
            },
            o));
      }
  EXPECT_EQ(seen.size(), 1u);
}

}  // namespace
