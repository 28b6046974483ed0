// sort, stable_sort, merge against std's: sizes, patterns, orders, elements of several sizes, a grain of few
// elements. Test of include/godwit/algorithm/sort.hpp.
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

/// Is p what std makes of q's elements?
template <class T, class F>
bool agrees(gw::global_ptr<T> p, gw::global_ptr<T> q, std::uint64_t n, F f) {
  std::vector<T> v = load(q, n);
  f(v);
  return load(p, n) == v;
}

/// Inputs that sorting algorithms are bad at.
std::uint64_t pattern(int which, std::uint64_t i, std::uint64_t n) {
  switch (which) {
    case 0:
      return scrambled(i);
    case 1:
      return i;
    case 2:
      return n - i;
    case 3:
      return scrambled(i) % 4;
    case 4:
      return 7;
    default:
      return i < n / 2 ? i * 2 : (n - i) * 2 + 1;  // up and down
  }
}

constexpr std::array<std::uint64_t, 10> sort_sizes = {0, 1, 2, 3, 100, 1023, 1025, 2049, 5003, 20011};

TEST(Sort, AgreesWithStd) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sort_sizes)
      for (int which = 0; which < 6; ++which) {
        auto q = gw::allocate<std::uint64_t>(n, d);
        auto p = gw::allocate<std::uint64_t>(n, d);
        set(q, n, [=](std::uint64_t i) { return pattern(which, i, n); });
        gw::copy(q, q + static_cast<long>(n), p);
        gw::sort(p, p + static_cast<long>(n));
        if (!agrees(p, q, n, [](auto& v) { std::sort(v.begin(), v.end()); })) return wrong("up", n);
        gw::sort(gw::global_span<std::uint64_t>(p, n),
                 [](std::uint64_t a, std::uint64_t b) { return a > b; });
        if (!agrees(p, q, n, [](auto& v) { std::sort(v.begin(), v.end(), std::greater<>()); }))
          return wrong("down", n);
        if (n <= 1025) {
          gw::sort(p, p + static_cast<long>(n), gw::grain{5});
          if (!agrees(p, q, n, [](auto& v) { std::sort(v.begin(), v.end()); })) return wrong("grain", n);
        }
        gw::deallocate(p, n);
        gw::deallocate(q, n);
      }
    return std::string();
  });
}

struct record {
  int key;
  int number;
  std::array<char, 12> more;
  bool operator==(const record&) const = default;
};

TEST(StableSort, KeepsTheOrderOfEquals) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sort_sizes) {
      auto q = gw::allocate<record>(n, d);
      auto p = gw::allocate<record>(n, d);
      set(q, n, [](std::uint64_t i) {
        return record{
            static_cast<int>(scrambled(i) % 37), static_cast<int>(i), {'a', static_cast<char>(i % 128)}};
      });
      gw::copy(gw::global_span<record>(q, n), p);
      const auto less = [](const record& a, const record& b) { return a.key < b.key; };
      gw::stable_sort(p, p + static_cast<long>(n), less);
      if (!agrees(p, q, n, [=](auto& v) { std::stable_sort(v.begin(), v.end(), less); }))
        return wrong("by function", n);
      gw::stable_sort(gw::global_span<record>(p, n), std::greater<>(), &record::number,
                      n < 2000 ? gw::grain{2} : gw::grain{});
      if (!agrees(p, q, n, [](auto& v) { std::reverse(v.begin(), v.end()); }))
        return wrong("by projection", n);
      gw::stable_sort(gw::global_span<record>(p, n), std::less<>(), &record::key);
      if (!agrees(p, q, n, [=](auto& v) {
            std::reverse(v.begin(), v.end());
            std::stable_sort(v.begin(), v.end(), less);
          }))
        return wrong("again", n);
      gw::deallocate(p, n);
      gw::deallocate(q, n);
    }
    return std::string();
  });
}

TEST(Sort, EqualElementsHaveOneOrderOnEverySchedule) {
  std::vector<std::vector<int>> seen;
  for (const std::uint32_t workers : {1u, 2u, 3u}) {
    seen.push_back(gw::run<std::vector<int>>(
        [] {
          constexpr std::uint64_t n = 30'000;
          auto p = gw::allocate<record>(n);
          set(p, n, [](std::uint64_t i) {
            return record{static_cast<int>(scrambled(i) % 5), static_cast<int>(i), {}};
          });
          gw::sort(p, p + n, std::less<>(), &record::key);
          std::vector<int> order;
          for (const record& r : load(p, n)) order.push_back(r.number);
          gw::deallocate(p, n);
          return order;
        },
        support::schedule(workers, workers == 3 ? "random" : "none")));
    EXPECT_TRUE(seen.back() == seen.front());
  }
}

TEST(Merge, StableAndOfAnyLengths) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : {0u, 1u, 5u, 1000u, 6000u})
      for (const std::uint64_t m : {0u, 1u, 7u, 900u, 5000u}) {
        auto a = gw::allocate<record>(n, d);
        auto b = gw::allocate<record>(m, d);
        auto c = gw::allocate<record>(n + m, d);
        set(a, n, [](std::uint64_t i) {
          return record{static_cast<int>(i / 3), static_cast<int>(i), {'a'}};
        });
        set(b, m, [](std::uint64_t i) {
          return record{static_cast<int>(i / 2) + 100, static_cast<int>(i), {'b'}};
        });
        const auto less = [](const record& x, const record& y) { return x.key < y.key; };
        const auto end = gw::merge(a, a + static_cast<long>(n), b, b + static_cast<long>(m), c, less,
                                   n + m < 2000 ? gw::grain{3} : gw::grain{});
        if (end != c + static_cast<long>(n + m)) return wrong("end", n + m);
        const bool right = [&] {
          const auto va = load(a, n), vb = load(b, m);
          std::vector<record> vc(n + m);
          std::merge(va.begin(), va.end(), vb.begin(), vb.end(), vc.begin(), less);
          return load(c, n + m) == vc;
        }();
        if (!right) return wrong("merge", n + m);
        gw::deallocate(c, n + m);
        gw::deallocate(b, m);
        gw::deallocate(a, n);
      }
    auto s = gw::allocate<short>(300, d);
    auto t = gw::allocate<int>(200, d);
    auto u = gw::allocate<double>(500, d);
    set(s, 300, [](std::uint64_t i) { return i * 2; });
    set(t, 200, [](std::uint64_t i) { return i * 3; });
    gw::merge(gw::global_span<short>(s, 300), gw::global_span<int>(t, 200), gw::global_span<double>(u, 500));
    if (!gw::is_sorted(u, u + 500) || gw::reduce(u, u + 500) != 299 * 300 + 199 * 300)
      return std::string("several types");
    gw::deallocate(u, 500);
    gw::deallocate(t, 200);
    gw::deallocate(s, 300);
    return std::string();
  });
}

TEST(Sort, InsideForEachAndExceptions) {
  for_each_place([](auto d) {
    constexpr int rows = 12, columns = 1500;
    auto p = gw::allocate<unsigned>(rows * columns, d);
    gw::generate(p, p + rows * columns, [](std::uint64_t i) { return static_cast<unsigned>(scrambled(i)); });
    const unsigned all = gw::reduce(p, p + rows * columns);
    gw::for_each(rows, [p](int r) { gw::sort(p + r * columns, p + (r + 1) * columns, gw::grain{100}); });
    for (int r = 0; r < rows; ++r)
      if (!gw::is_sorted(p + r * columns, p + (r + 1) * columns)) return std::string("nested");
    if (gw::reduce(p, p + rows * columns) != all) return std::string("lost");
    int caught = 0;
    try {
      gw::sort(p, p + rows * columns, [](unsigned a, unsigned b) {
        if (a % 1000 == 999) throw std::invalid_argument("999");
        return a > b;
      });
    } catch (const std::invalid_argument&) {
      caught = 1;
    }
    gw::deallocate(p, rows * columns);
    return caught == 1 ? std::string() : std::string("no exception");
  });
}

}  // namespace
