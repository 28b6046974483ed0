// partition, remove_if, copy_if, unique against std's; the predicate is called once per element.
// Test of include/godwit/algorithm/partition.hpp.
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

TEST(Partition, AgreesWithStd) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes())
      for (const unsigned percent : {0u, 30u, 100u}) {
        const long m = static_cast<long>(n);
        auto p = gw::allocate<int>(n, d);
        auto q = gw::allocate<int>(n, d);
        const auto value = [](std::uint64_t i) { return static_cast<int>(scrambled(i) % 1000); };
        const auto pred = [percent](int x) { return static_cast<unsigned>(x % 100) < percent; };
        set(p, n, value);
        set(q, n, value);
        const long kept = gw::count_if(q, q + m, pred);
        const auto check = [&](auto change) {
          std::vector<int> v = load(q, n);
          change(v);
          return load(p, v.size()) == v;
        };
        if (gw::stable_partition(p, p + m, pred) != p + kept ||
            !check([=](auto& v) { std::stable_partition(v.begin(), v.end(), pred); }))
          return wrong("stable_partition", n);
        set(p, n, value);
        if (gw::partition(gw::global_span<int>(p, n), gw::never_spawns(pred), gw::grain{11}) != p + kept ||
            !check([=](auto& v) { std::stable_partition(v.begin(), v.end(), pred); }))
          return wrong("partition", n);
        set(p, n, value);
        if (gw::remove_if(p, p + m, pred) != p + (m - kept) ||
            !check([=](auto& v) { std::erase_if(v, pred); }))
          return wrong("remove_if", n);
        set(p, n, [](std::uint64_t) { return -1; });
        if (gw::copy_if(gw::global_span<const int>(q, n), p, pred) != p + kept ||
            !check([=](auto& v) { std::erase_if(v, [=](int x) { return !pred(x); }); }))
          return wrong("copy_if", n);
        gw::deallocate(q, n);
        gw::deallocate(p, n);
      }
    return std::string();
  });
}

TEST(Unique, AgreesWithStd) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes())
      for (const unsigned run : {1u, 3u, 700u}) {
        auto p = gw::allocate<int>(n, d);
        auto q = gw::allocate<int>(n, d);
        const auto value = [run](std::uint64_t i) { return static_cast<int>(i / run); };
        set(p, n, value);
        set(q, n, value);
        const auto check = [&](long kept) {
          std::vector<int> v = load(q, n);
          v.erase(std::unique(v.begin(), v.end()), v.end());
          return kept == static_cast<long>(v.size()) && load(p, v.size()) == v;
        };
        if (!check(gw::unique(p, p + static_cast<long>(n)) - p)) return wrong("operator", n);
        set(p, n, value);
        if (!check(gw::unique(gw::global_span<int>(p, n), [](int a, int b) { return a == b; }) - p))
          return wrong("function", n);
        gw::deallocate(q, n);
        gw::deallocate(p, n);
      }
    return std::string();
  });
}

TEST(Partition, PredicatesMaySpawnAreCalledOnceAndMayThrow) {
  for_each_place([](auto d) {
    constexpr int n = 500;
    auto p = gw::allocate<int>(n, d);
    auto calls = gw::global_new<long>(0);
    gw::iota(p, p + n, 0);
    const auto middle = gw::partition(p, p + n, [=](int x) {
      gw::atomic_fetch_add(calls, 1);
      return gw::transform_reduce(gw::indices(x % 10), 0, std::plus<>(), [](int i) { return i; }) % 2 == 0;
    });
    if (gw::get(calls) != n) return std::string("calls");
    gw::global_delete(calls);
    int x = 0;  // sums of 0 ... k - 1 that are even
    for (long i = 0; i < middle - p; ++i, ++x) {
      while (x % 10 * (x % 10 - 1) / 2 % 2 != 0) ++x;
      if (p[i] != x) return "nested: " + std::to_string(i);
    }
    try {
      gw::remove_if(p, p + n, [](int y) -> bool { throw std::underflow_error(std::to_string(y)); });
      return std::string("no exception");
    } catch (const std::underflow_error& e) {
      if (e.what() != std::to_string(gw::get(p))) return std::string("not the leftmost");
    }
    gw::deallocate(p, n);
    return std::string();
  });
}

}  // namespace
