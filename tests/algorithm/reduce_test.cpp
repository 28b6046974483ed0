// reduce and transform_reduce against plain loops: any grouping gives the same, floating-point results are
// the same on every schedule, values that own memory are results. Test of
// include/godwit/algorithm/reduce.hpp.
// test: timeout=300 skip-qemu
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "algorithm/places.hpp"

#include <cstring>
#include <set>
#include <stdexcept>

namespace gw = godwit;
using support::for_each_place;
using support::set;
using support::sizes;
using support::wrong;

namespace {

/// op over init, value(0) ... value(n - 1).
template <class T, class F, class Op>
T looped(std::uint64_t n, T init, F value, Op op) {
  for (std::uint64_t i = 0; i < n; ++i) init = static_cast<T>(op(init, value(i)));
  return init;
}

TEST(Reduce, SumsAndOtherOperators) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      const long m = static_cast<long>(n);
      auto p = gw::allocate<int>(n, d);
      const auto value = [](std::uint64_t i) { return static_cast<int>((i * 2654435761u) >> 8 & 0x7fff); };
      set(p, n, value);
      const std::plus<> plus;
      const gw::global_span<const int> s(p, n);
      if (gw::reduce(p, p + m) != looped(n, 0, value, plus)) return wrong("default", n);
      if (gw::reduce(p, p + m, 7L) != looped(n, 7L, value, plus)) return wrong("long", n);
      if (gw::reduce(s, 1u, std::bit_xor<>()) != looped(n, 1u, value, std::bit_xor<>()))
        return wrong("xor", n);
      if (gw::reduce(s, ~0u, std::bit_and<>(), gw::grain{5}) != looped(n, ~0u, value, std::bit_and<>()))
        return wrong("and", n);
      const auto larger = [](int a, int b) { return a < b ? b : a; };
      if (gw::reduce(s, -1, larger) != looped(n, -1, value, larger)) return wrong("own operator", n);
      // Wraps around, like the loop.
      const auto odd = [](int x) { return 2u * static_cast<unsigned>(x) + 1; };
      if (gw::transform_reduce(p, p + m, 1u, std::multiplies<>(), odd) !=
          looped(
              n, 1u, [=](std::uint64_t i) { return odd(value(i)); }, std::multiplies<>()))
        return wrong("product", n);
      const auto square = [=](std::uint64_t i) { return static_cast<long long>(value(i)) * value(i); };
      if (gw::transform_reduce(p, p + m, p, 3LL, std::plus<>(), [](int a, int b) {
            return static_cast<long long>(a) * b;
          }) != looped(n, 3LL, square, plus))
        return wrong("inner product", n);
      if (gw::transform_reduce(p, p + m, p, 1u) != looped(
                                                       n, 1u,
                                                       [=](std::uint64_t i) {
                                                         return static_cast<unsigned>(value(i)) *
                                                                static_cast<unsigned>(value(i));
                                                       },
                                                       plus))
        return wrong("inner product by default", n);
      if (gw::transform_reduce(gw::indices(n), s, 0LL, std::plus<>(),
                               [](std::uint64_t i, int x) { return static_cast<long long>(i) * x; }) !=
          looped(
              n, 0LL, [=](std::uint64_t i) { return static_cast<long long>(i) * value(i); }, plus))
        return wrong("with indices", n);
      gw::deallocate(p, n);
    }
    return std::string();
  });
}

/// Associative, not commutative: 2x2 matrices.
struct matrix {
  std::uint64_t a, b, c, d;
  bool operator==(const matrix&) const = default;
};
matrix times(const matrix& x, const matrix& y) {
  return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c, x.c * y.b + x.d * y.d};
}

TEST(Reduce, OrderIsKept) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : sizes()) {
      auto p = gw::allocate<matrix>(n, d);
      const auto value = [](std::uint64_t i) { return matrix{i + 1, i * i, 3, 2 * i + 1}; };
      set(p, n, value);
      const matrix expected = looped(n, matrix{1, 2, 3, 4}, value, times);
      if (gw::reduce(p, p + static_cast<long>(n), matrix{1, 2, 3, 4}, times) != expected)
        return wrong("order", n);
      if (gw::reduce(p, p + static_cast<long>(n), matrix{1, 2, 3, 4}, gw::never_spawns(times)) != expected)
        return wrong("never spawns", n);
      gw::deallocate(p, n);
    }
    return std::string();
  });
}

TEST(Reduce, StringsAreResults) {
  for_each_place([](auto d) {
    for (const std::uint64_t n : {0u, 1u, 2u, 9u, 300u}) {
      auto p = gw::allocate<int>(n, d);
      gw::iota(p, p + static_cast<long>(n), 1000);
      const auto text = [](int i) { return ' ' + std::to_string(i); };
      const std::string all =
          gw::transform_reduce(p, p + static_cast<long>(n),
                               std::string("a beginning that is not short any more:"), std::plus<>(), text);
      std::string expected = "a beginning that is not short any more:";
      for (std::uint64_t i = 0; i < n; ++i) expected += text(static_cast<int>(1000 + i));
      if (all != expected) return wrong("string", n);
      gw::deallocate(p, n);
    }
    return std::string();
  });
}

/// Bits of sums whose value depends on the order of additions.
std::string sums_of_doubles() {
  constexpr std::uint64_t n = 100'003;
  auto p = gw::allocate<double>(n, gw::distribution::cyclic(4096));
  gw::generate(p, p + n, [](std::uint64_t i) { return 1.0 / static_cast<double>(3 * i + 1); });
  const double sums[] = {gw::reduce(p, p + n),
                         gw::reduce(p, p + n, 0.0, [](double a, double b) { return a + b; }),
                         gw::transform_reduce(p, p + n, 0.0, std::plus<>(), [](double x) { return x * 1.1; }),
                         static_cast<double>(gw::reduce(p, p + n, 0.0f))};
  gw::deallocate(p, n);
  std::string bits(sizeof sums, '\0');
  std::memcpy(bits.data(), sums, sizeof sums);
  return bits;
}

TEST(Reduce, FloatingPointIsTheSameOnEverySchedule) {
  std::set<std::string> seen;
  for (const char* check : {"off", "on"})
    for (const char* force : {"none", "random"})
      for (const std::uint32_t workers : {1u, 2u, 3u, 5u}) {
        gw::options o = support::schedule(workers, force);
        o.check_global = gw::choice::named{check};
        seen.insert(gw::run<std::string>([] { return sums_of_doubles(); }, o));
      }
  EXPECT_EQ(seen.size(), 1u);
  double first;
  std::memcpy(&first, seen.begin()->data(), sizeof first);
  double expected = 0;
  for (int i = 0; i < 100'003; ++i) expected += 1.0 / (3.0 * i + 1);
  EXPECT_NEAR(first, expected, 1e-10);
}

// As between hosts, where elements that are large come in pieces of fewer than 8.
TEST(Reduce, PiecesOfALeafMakeNoDifference) {
  double x[1000];
  for (int i = 0; i < 1000; ++i) x[i] = 1.0 / (3 * i + 1);
  const auto in_pieces = [&x](std::uint64_t piece) {
    gw::detail::lane_accumulator<double, std::plus<>, std::identity> sum({}, {});
    for (std::uint64_t i = 0; i < 1000; i += piece) sum(i, std::min<std::uint64_t>(piece, 1000 - i), x + i);
    return sum.result();
  };
  for (const std::uint64_t piece : {1u, 2u, 3u, 5u, 7u, 8u, 13u, 40u})
    EXPECT_EQ(in_pieces(piece), in_pieces(1000)) << piece;
}

TEST(Reduce, NestedAndThrowing) {
  for_each_place([](auto d) {
    constexpr int n = 600;
    auto p = gw::allocate<int>(n, d);
    gw::iota(p, p + n, 0);
    const long sum = gw::transform_reduce(p, p + n, 0L, std::plus<>(),
                                          [p](int x) { return gw::reduce(p, p + x % 50, 0L) + x; });
    long expected = 0;
    for (int x = 0; x < n; ++x) expected += x + (x % 50) * (x % 50 - 1) / 2;
    if (sum != expected) return "nested: " + std::to_string(sum);
    try {
      gw::transform_reduce(p, p + n, 0, std::plus<>(), [](int x) {
        if (x % 100 == 99) throw std::domain_error(std::to_string(x));
        return x;
      });
      return std::string("no exception");
    } catch (const std::domain_error& e) {
      if (std::string(e.what()) != "99") return std::string("not the leftmost: ") + e.what();
    }
    gw::deallocate(p, n);
    return std::string();
  });
}

}  // namespace
