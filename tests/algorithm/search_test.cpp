// find, count, any_of, equal, is_sorted, min_element and their like against std's; that a search stops.
// Test of include/godwit/algorithm/search.hpp.
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

TEST(Find, FirstOfSeveral) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      const long m = static_cast<long>(n);
      auto p = gw::allocate<int>(n, d);
      set(p, n, [](std::uint64_t) { return 0; });
      if (gw::find(p, p + m, 1) != p + m) return wrong("nothing to find", n);
      const gw::global_span<const int> s(p, n);
      for (const long at : {0L, 1L, m / 3, m / 2, m - 2, m - 1}) {
        if (at < 0 || at >= m) continue;
        p[at] = 1;
        p[m - 1] = 1;
        if (gw::find(p, p + m, 1) != p + at) return wrong("find", n);
        if (gw::find_if(
                s, [](int x) { return x == 1; }, gw::grain{7}) != p + at)
          return wrong("find_if", n);
        if (gw::find_if_not(s, std::logical_not<>()) != p + at) return wrong("find_if_not", n);
        if (gw::find_if(gw::indices(n), [p](std::uint64_t i) { return p[static_cast<long>(i)] == 1; }) !=
            static_cast<std::uint64_t>(at))
          return wrong("find_if of indices", n);
        if (!gw::any_of(s, std::identity()) || gw::none_of(p, p + m, [](int x) { return x == 1; }) ||
            gw::all_of(s, [](int x) { return x == 0; }))
          return wrong("some", n);
        if (gw::count(s, 1) != (at == m - 1 ? 1u : 2u) ||
            gw::count_if(p, p + m, [](int x) { return x == 0; }) != n - (at == m - 1 ? 1u : 2u))
          return wrong("count", n);
        p[at] = 0;
      }
      if (n > 0) p[m - 1] = 0;
      if (gw::any_of(p, p + m, std::identity()) || !gw::none_of(s, std::identity()) ||
          !gw::all_of(p, p + m, [](int x) { return x == 0; }))
        return wrong("none", n);
      gw::deallocate(p, n);
    }
    return std::string();
  });
}

TEST(Find, StopsSoonAndDoesNotLookBehind) {
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    const auto [calls, at] = gw::run<std::pair<long, long>>(
        [] {
          constexpr long n = 1 << 20;
          auto p = gw::allocate<int>(n);
          auto calls = gw::global_new<long>(0);
          gw::iota(p, p + n, 0);
          const long at = gw::find_if(p, p + n,
                                      [calls](int x) {
                                        gw::atomic_fetch_add(calls, 1, std::memory_order_relaxed);
                                        return x >= 50'000;
                                      }) -
                          p;
          const long made = *calls;
          gw::global_delete(calls);
          gw::deallocate(p, n);
          return std::pair(made, at);
        },
        support::schedule(workers));
    EXPECT_EQ(at, 50'000);
    EXPECT_GE(calls, 50'001);
    EXPECT_LE(calls, 200'000) << workers;
  }
}

TEST(Equal, AndSorted) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      const long m = static_cast<long>(n);
      auto p = gw::allocate<int>(n, d);
      auto q = gw::allocate<long>(n, d);
      set(p, n, [](std::uint64_t i) { return i / 3; });
      set(q, n, [](std::uint64_t i) { return i / 3; });
      if (!gw::equal(p, p + m, q) || !gw::equal(gw::global_span<int>(p, n), gw::global_span<long>(q, n)) ||
          (n != 0 && gw::equal(gw::global_span<int>(p, n - 1), gw::global_span<long>(q, n))))
        return wrong("equal", n);
      if (!gw::equal(p, p + m, q, [](int a, long b) { return a == b; }))
        return wrong("equal with a function", n);
      if (!gw::is_sorted(p, p + m) || gw::is_sorted(p, p + m, std::greater<>()) != (n <= 3))
        return wrong("sorted", n);
      for (const long at : {0L, 1L, m / 2, m - 1}) {
        if (at < 0 || at >= m) continue;
        const int was = p[at];
        p[at] = was + 1000000;
        if (gw::equal(p, p + m, q)) return wrong("not equal", n);
        if (gw::is_sorted(gw::global_span<const int>(p, n), [](int a, int b) { return a < b; }) !=
            (at == m - 1))
          return wrong("not sorted", n);
        p[at] = was;
      }
      gw::deallocate(q, n);
      gw::deallocate(p, n);
    }
    return std::string();
  });
}

struct item {
  int key, number;
};

TEST(Extremes, FirstAndLastOfEquals) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      const long m = static_cast<long>(n);
      auto p = gw::allocate<item>(n, d);
      set(p, n, [](std::uint64_t i) {
        return item{static_cast<int>(scrambled(i) % 50), static_cast<int>(i)};
      });
      const auto less = [](const item& a, const item& b) { return a.key < b.key; };
      const auto [low, high, first, last] = [&] {
        const auto v = load(p, n);
        const auto both = std::minmax_element(v.begin(), v.end(), less);
        return std::array{std::min_element(v.begin(), v.end(), less) - v.begin(),
                          std::max_element(v.begin(), v.end(), less) - v.begin(), both.first - v.begin(),
                          both.second - v.begin()};
      }();
      if (gw::min_element(p, p + m, less) != p + low) return wrong("min_element", n);
      if (gw::max_element(p, p + m, gw::never_spawns(less)) != p + high) return wrong("max_element", n);
      if (gw::minmax_element(gw::global_span<item>(p, n), less, gw::grain{5}) !=
          std::pair(p + first, p + last))
        return wrong("minmax_element", n);
      if (n != 0) {
        const auto [a, b] = gw::minmax(gw::global_span<const item>(p, n), less);
        if (a.number != first || b.number != last) return wrong("minmax", n);
      }
      gw::deallocate(p, n);
    }
    return std::string();
  });
}

TEST(Search, NestedAndThrowing) {
  for_each_place([](auto d) {
    constexpr int n = 400;
    auto p = gw::allocate<int>(n, d);
    gw::iota(p, p + n, 0);
    // 2 + 4 + ... : the first x with x(x - 1) / 2 >= 5000.
    if (gw::find_if(p, p + n, [p](int x) { return gw::reduce(p, p + x) >= 5000; }) != p + 101)
      return std::string("nested find");
    if (gw::count_if(p, p + n,
                     [p](int x) { return gw::any_of(p, p + n, [x](int y) { return y * y == x; }); }) != 20)
      return std::string("nested count");
    try {
      gw::count_if(p, p + n, [](int x) -> bool {
        if (x == 300) throw std::length_error("300");
        return true;
      });
      return std::string("no exception");
    } catch (const std::length_error&) {
    }
    gw::deallocate(p, n);
    return std::string();
  });
}

}  // namespace
