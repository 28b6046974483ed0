// Elements of global arrays and vectors that own something: include/godwit/detail/global_elements.hpp. Runs
// under MPI as well (tests/mpi).
#include <gtest/gtest.h>
#include <godwit/algorithm.hpp>
#include <godwit/godwit.hpp>

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "container_runs.hpp"
#include "support/child.hpp"

using namespace container_runs;

namespace {

using numbers = gw::global_vector<std::int64_t>;

numbers upto(std::uint64_t n) {
  numbers v;
  for (std::uint64_t i = 0; i < n; ++i) v.push_back(static_cast<std::int64_t>(i));
  return v;
}

std::int64_t sum_of(gw::global_span<const std::int64_t> s) {
  std::int64_t sum = 0;
  for (std::int64_t x : s.checkout(gw::access::read)) sum += x;
  return sum;
}

struct particles {
  numbers x;
  gw::global_bytes name;
  int id = 0;
};

}  // namespace

template <>
inline constexpr bool godwit::relocatable<particles> = true;

namespace {

static_assert(gw::detail::owning_element<numbers> && gw::detail::owning_element<gw::global_vector<numbers>>);
static_assert(gw::detail::owning_element<gw::global_map<int, int>> &&
              gw::detail::owning_element<gw::global_bytes>);
static_assert(gw::detail::global_value<int> && !gw::detail::owning_element<int>);
static_assert(!gw::detail::owning_element<std::string> && !gw::detail::owning_element<gw::future<int>>);

/// Element i is made by its home, so its memory lies there.
TEST(Nested, IsMadeByTheHomes) {
  in_all_runs([] {
    constexpr std::uint64_t n = 300;
    gw::global_vector<numbers> v(n, gw::distribution::cyclic(4096),
                                 [](std::uint64_t i) { return upto(i % 7 + 1); });
    WANT(v.size() == n);
    for (std::uint64_t i = 0; i < n; ++i) {
      const auto inner = v.span().subspan(i, 1).checkout(gw::access::read)[0].span();
      WANT(inner.size() == i % 7 + 1);
      WANT(sum_of(inner) == static_cast<std::int64_t>(i % 7 * (i % 7 + 1) / 2));
      WANT(gw::home_of(inner.data()) == gw::home_of(v.data() + static_cast<std::ptrdiff_t>(i)));
    }
  });
}

TEST(Nested, GrowsShrinksAndGivesOut) {
  in_all_runs([] {
    gw::global_vector<numbers> v(gw::distribution::blocked());
    for (std::uint64_t i = 0; i < 100; ++i) v.push_back(upto(i));
    v.emplace_back();
    WANT(v.size() == 101);
    numbers last = gw::take(&v[99]);
    WANT(last.size() == 99 && sum_of(last.span()) == 99 * 98 / 2);
    WANT(v.span().subspan(99, 1).checkout(gw::access::read)[0].empty());
    gw::replace(&v[5], std::move(last));
    WANT(last.empty());
    v.span().subspan(6, 1).checkout(gw::access::read_write)[0].push_back(1000);
    v.resize(7);
    v.shrink_to_fit();
    WANT(v.size() == 7 && v.capacity() == 7);
    WANT(sum_of(v.span().subspan(5, 1).checkout(gw::access::read)[0].span()) == 99 * 98 / 2);
    WANT(sum_of(v.span().subspan(6, 1).checkout(gw::access::read)[0].span()) == 1000 + 15);
    v.resize(50);
    WANT(v.span().subspan(49, 1).checkout(gw::access::read)[0].empty());
    gw::global_array<numbers> a = std::move(v).into_array();
    WANT(v.empty() && a.size() == 50);
    auto b = gw::spawn([a = std::move(a)]() mutable {
               gw::take(&a[6]);
               return std::move(a);
             }).join();
    WANT(b.checkout(gw::access::read)[6].empty());
    WANT(b.checkout(gw::access::read)[4].size() == 4);
  });
}

TEST(Nested, AlgorithmsReachElements) {
  in_all_runs([] {
    gw::global_vector<numbers> v(200, gw::distribution::cyclic(4096));
    gw::for_each(v.span(), [](numbers& x) { x.push_back(7); });
    const auto sum = gw::transform_reduce(
        v.span(), std::int64_t{0}, [](std::int64_t a, std::int64_t b) { return a + b; },
        [](const numbers& x) { return static_cast<std::int64_t>(x.size()) * x[0]; });
    WANT(sum == 200 * 7);
  });
}

TEST(Nested, ClassesAndThreeLevels) {
  in_all_runs([] {
    gw::global_array<particles> a(40, gw::distribution::blocked(), [](std::uint64_t i) {
      particles p;
      p.x = upto(i);
      p.name.append("p").append(std::to_string(i));
      p.id = static_cast<int>(i);
      return p;
    });
    const auto s = a.checkout(gw::access::read);
    for (int i = 0; i < 40; ++i) {
      const particles& p = s[static_cast<std::size_t>(i)];
      WANT(p.id == i && p.x.size() == static_cast<std::uint64_t>(i) && p.name == "p" + std::to_string(i));
    }
  });
  in_all_runs([] {
    gw::global_vector<gw::global_vector<numbers>> v(30, gw::distribution::cyclic(4096), [](std::uint64_t i) {
      gw::global_vector<numbers> w;
      for (std::uint64_t k = 0; k < i; ++k) w.push_back(upto(k));
      return w;
    });
    const auto s = v.checkout(gw::access::read);
    WANT(s[29].checkout(gw::access::read)[20].size() == 20);
  });
}

TEST(Nested, WhatMakeThrowsComesOut) {
  in_all_runs([] {
    const auto make = [](std::uint64_t i) {
      if (i == 70) throw std::invalid_argument("the seventieth");
      return upto(3);
    };
    WANT_THROW((gw::global_vector<numbers>(100, gw::distribution::blocked(), make)), std::runtime_error,
               "the seventieth");
    const auto too_much = [](std::uint64_t) {
      numbers v;
      v.reserve(std::uint64_t{1} << 50);
      return v;
    };
    WANT_THROW((gw::global_array<numbers>(100, gw::distribution::blocked(), too_much)), gw::global_bad_alloc,
               "godwit");
  });
}

TEST(Nested, ElementsAreUnwoundWithTheirOwner) {
  in_all_runs([] {
    bool caught = false;
    try {
      gw::global_vector<numbers> v(100, gw::distribution::cyclic(4096),
                                   [](std::uint64_t) { return upto(2); });
      throw std::runtime_error("on the way");
    } catch (const std::runtime_error&) {
      caught = true;
    }
    WANT(caught);
  });
}

TEST(Nested, FreesAllItHad) {
  const auto o = support::run_child([] {
    return run_checked([] {
      gw::global_vector<numbers> v(500, gw::distribution::cyclic(4096),
                                   [](std::uint64_t i) { return upto(i % 5); });
      v.push_back(upto(10));
      v.pop_back();
      v.resize(100);
      const auto never = [] {
        gw::cancel_scope scope;
        scope.cancel();
        gw::global_array<numbers> a(1'000'000, gw::distribution::blocked());
      };
      WANT_THROW(never(), gw::cancelled, "cancelled");
      gw::replace(&v[3], upto(100));
      static_cast<void>(gw::take(&v[4]));
      gw::global_vector<gw::global_map<int, int>> maps(20, gw::distribution::blocked());
      gw::replace(&maps[3], gw::global_map<int, int>(100));
      gw::global_vector<gw::global_vector<numbers>> deep(30, gw::distribution::cyclic(4096),
                                                         [](std::uint64_t i) {
                                                           gw::global_vector<numbers> w;
                                                           for (std::uint64_t k = 0; k < i; ++k)
                                                             w.push_back(upto(k));
                                                           return w;
                                                         });
      try {
        gw::global_array<numbers>(100, gw::distribution::blocked(), [](std::uint64_t i) {
          if (i == 50) throw std::runtime_error("half");
          return upto(3);
        });
      } catch (const std::runtime_error&) {
      }
    });
  });
  EXPECT_EQ(o.status, 0) << support::show(o);
  EXPECT_FALSE(o.err_has("not freed")) << support::show(o);
}

TEST(Nested, AJoinWhileAnElementIsMadeIsFoundOut) {
  const auto o = support::run_child([] {
    return run_checked([] {
      gw::global_array<numbers> a(100, gw::distribution::cyclic(4096), [](std::uint64_t) {
        gw::spawn([] {}).join();
        return numbers();
      });
    });
  });
  EXPECT_NE(o.status, 0) << support::show(o);
  EXPECT_TRUE(o.err_has("is held across a spawn")) << support::show(o);
}

}  // namespace
