// for_each, transform, fill, generate, iota, copy against plain loops: sizes around the borders of leaves and
// blocks, forced steals, checked memory, nested parallelism, exceptions. Test of
// include/godwit/algorithm/for_each.hpp.
// test: timeout=300 skip-qemu
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "algorithm/places.hpp"

#include <stdexcept>

namespace gw = godwit;
using support::for_each_place;
using support::same;
using support::set;
using support::sizes;
using support::wrong;

namespace {

TEST(ForEach, ChangesEveryElementOnce) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      auto p = gw::allocate<std::uint64_t>(n, d);
      set(p, n, [](std::uint64_t i) { return i + 5; });
      gw::for_each(p, p + static_cast<long>(n), [](std::uint64_t& x) { x = 3 * x + 1; });
      if (!same(p, n, [](std::uint64_t i) { return 3 * i + 16; })) return wrong("pairs of pointers", n);
      gw::for_each(gw::global_span<std::uint64_t>(p, n), gw::never_spawns([](std::uint64_t& x) { x -= 2; }),
                   gw::grain{3});
      if (!same(p, n, [](std::uint64_t i) { return 3 * i + 14; }))
        return wrong("span, grain, never_spawns", n);
      gw::deallocate(p, n);
    }
    return std::string();
  });
}

TEST(ForEach, IndicesAreCalledOnce) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      auto p = gw::allocate<int>(n + 1, d);
      set(p, n + 1, [](std::uint64_t) { return 0; });
      gw::for_each(n, [p](std::uint64_t i) {
        gw::atomic_fetch_add(p + static_cast<long>(i), static_cast<int>(i) + 1);
      });
      gw::for_each(gw::indices(1, static_cast<int>(n) + 1), [p](int i) { gw::atomic_fetch_add(p + i, -i); });
      if (!same(p, n + 1,
                [n](std::uint64_t i) { return (i < n ? static_cast<int>(i) + 1 : 0) - static_cast<int>(i); }))
        return wrong("indices", n);
      gw::deallocate(p, n + 1);
    }
    gw::for_each(-3, [](int) { throw std::logic_error("called"); });
    return std::string();
  });
}

TEST(Transform, UnaryBinaryInPlaceAndToOtherTypes) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      const long m = static_cast<long>(n);
      auto a = gw::allocate<int>(n, d);
      auto b = gw::allocate<double>(n, d);
      const auto value = [](std::uint64_t i) { return static_cast<int>(i * 7919 % 1000); };
      set(a, n, value);
      if (gw::transform(a, a + m, b, [](int x) { return x * 0.5; }) != b + m) return wrong("end", n);
      if (!same(b, n, [=](std::uint64_t i) { return value(i) * 0.5; })) return wrong("unary", n);
      // With its own memory, both for functions that may spawn and for operators.
      gw::transform(gw::global_span<int>(a, n), a, std::negate<>());
      if (!same(a, n, [=](std::uint64_t i) { return -value(i); })) return wrong("in place, operator", n);
      gw::transform(gw::global_span<const int>(a, n), a, [](int x) { return x + 3; });
      if (!same(a, n, [=](std::uint64_t i) { return 3 - value(i); })) return wrong("in place", n);
      gw::transform(a, a + m, b, b, std::plus<>());
      if (!same(b, n, [=](std::uint64_t i) { return 3 - value(i) * 0.5; })) return wrong("binary", n);
      gw::transform(gw::indices(n), gw::global_span<double>(b, n), b,
                    [](std::uint64_t i, double y) { return static_cast<double>(i) - y; });
      if (!same(b, n, [=](std::uint64_t i) { return static_cast<double>(i) - 3 + value(i) * 0.5; }))
        return wrong("binary of indices", n);
      gw::deallocate(a, n);
      gw::deallocate(b, n);
    }
    return std::string();
  });
}

struct point {
  int x, y, z;
  int shifted() const { return x + 1; }
  bool operator==(const point&) const = default;
};

TEST(Transform, ElementsThatDoNotDivideBlocksAndMembersAsFunctions) {
  for_each_place([](auto d) {
    constexpr int n = 3000;
    auto p = gw::allocate<point>(n, d);
    gw::generate(p, p + n, [](std::uint64_t i) {
      const int k = static_cast<int>(i);
      return point{k, 2 * k, 3 * k};
    });
    for (int i = 0; i < n; ++i)
      if (gw::get(p + i) != point{i, 2 * i, 3 * i}) return std::string("generate");
    auto q = gw::allocate<int>(n, d);
    gw::transform(p, p + n, q, &point::y);
    for (int i = 0; i < n; ++i)
      if (q[i] != 2 * i) return std::string("member");
    gw::transform(p, p + n, q, [calls = 0](const point& at) mutable { return ++calls > 0 ? at.x : -1; });
    for (int i = 0; i < n; ++i)
      if (q[i] != i) return std::string("a function that changes itself");
    gw::transform(p, p + n, q, &point::shifted);
    for (int i = 0; i < n; ++i)
      if (q[i] != i + 1) return std::string("member function");
    gw::deallocate(q, n);
    gw::deallocate(p, n);
    return std::string();
  });
}

TEST(FillCopyIota, AgreeWithStd) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      auto p = gw::allocate<long>(n, d);
      auto q = gw::allocate<long>(n, d);
      auto small = gw::allocate<short>(n, d);
      gw::fill(p, p + static_cast<long>(n), 42);
      if (!same(p, n, [](std::uint64_t) { return 42; })) return wrong("fill", n);
      gw::iota(gw::global_span<long>(p, n), -4);
      const auto counted = [](std::uint64_t i) { return static_cast<long>(i) - 4; };
      if (!same(p, n, counted)) return wrong("iota", n);
      if (gw::copy(p, p + static_cast<long>(n), q) != q + static_cast<long>(n)) return wrong("end", n);
      if (!same(q, n, counted)) return wrong("copy", n);
      gw::copy(gw::global_span<const long>(q, n), small);
      if (!same(small, n, counted)) return wrong("copy to another type", n);
      gw::generate(gw::global_span<long>(p, n), [] { return 7L; });
      if (!same(p, n, [](std::uint64_t) { return 7; })) return wrong("generate without argument", n);
      gw::deallocate(small, n);
      gw::deallocate(q, n);
      gw::deallocate(p, n);
    }
    return std::string();
  });
}

long fib(int n) {
  if (n < 2) return n;
  auto [a, b] = gw::invoke([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return a + b;
}

TEST(Nested, FunctionsMaySpawnAndRunAlgorithms) {
  for_each_place([](auto d) {
    constexpr int rows = 20, columns = 100;
    auto p = gw::allocate<long>(rows * columns, d);
    auto sums = gw::allocate<long>(rows, d);
    gw::for_each(rows, [p](int r) {
      gw::generate(p + r * columns, p + (r + 1) * columns,
                   [r](std::uint64_t c) { return static_cast<long>(c) * r + fib(5); });
    });
    // The element is used again after the spawns inside: it must still be the same place then.
    gw::for_each(p, p + rows * columns, [](long& x) {
      const long before = x;
      x += fib(6);
      x = x == before + 8 ? before : -1;
    });
    gw::transform(gw::indices(rows), sums,
                  [p](int r) { return gw::reduce(p + r * columns, p + (r + 1) * columns, 0L); });
    for (int r = 0; r < rows; ++r)
      if (sums[r] != r * (columns * (columns - 1) / 2) + 5 * columns) return "row " + std::to_string(r);
    gw::deallocate(sums, rows);
    gw::deallocate(p, rows * columns);
    return std::string();
  });
}

TEST(Exceptions, TheLeftmostComesOutAndElementsBeforeItWereChanged) {
  for_each_place([](auto d) {
    constexpr int n = 2000;
    auto p = gw::allocate<int>(n, d);
    gw::iota(p, p + n, 0);
    int caught = -1;
    try {
      gw::for_each(p, p + n, [](int& x) {
        if (x == 1234 || x == 777 || x == 1999) throw std::out_of_range(std::to_string(x));
        x = -x;
      });
    } catch (const std::out_of_range& e) {
      caught = std::stoi(e.what());
    }
    if (caught != 777) return "caught: " + std::to_string(caught);
    for (int i = 0; i < 777; ++i)
      if (p[i] != -i) return "not changed: " + std::to_string(i);
    if (p[777] != 777) return std::string("changed: the failing one");
    gw::deallocate(p, n);
    return std::string();
  });
}

TEST(Grain, FewHeavyElementsAreDividedAndGrainIsObeyed) {
  gw::options o;
  o.workers = 2;
  const bool apart = gw::run<bool>(
      [] {
        // With a grain of 1 and two workers, two elements that wait for each other must meet.
        auto p = gw::allocate<int>(1);
        gw::put(p, 0);
        gw::for_each(2, [p](int) {
          gw::atomic_fetch_add(p, 1);
          while (gw::atomic_load(p) < 2) gw::yield();
        });
        gw::deallocate(p, 1);
        // One leaf only: all indices are called in order by one thread, without a spawn between them.
        auto q = gw::allocate<int>(100);
        gw::put(q, 0);
        gw::for_each(
            100,
            [q](int i) {
              if (*q == i) *q = i + 1;
            },
            gw::grain{1000});
        const bool in_order = *q == 100;
        gw::deallocate(q, 100);
        return in_order;
      },
      o);
  EXPECT_TRUE(apart);
}

}  // namespace
