// Tests of invoke: any number of callables, the order of results, void and mixed results, nesting -- under
// every schedule.
// test: timeout=120
#include "support/schedule.hpp"
#include "support/shared.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

namespace {

namespace gw = godwit;
using support::for_each_schedule;

[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto [x, y] = gw::invoke([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return x + y;
}

TEST(invoke, fib) {
  for_each_schedule([](const gw::options& o) { EXPECT_EQ(gw::run<long>([] { return fib(11); }, o), 89); });
}

TEST(invoke, one_callable) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    auto [x] = gw::invoke([] { return 5; });
                    return x;
                  },
                  o),
              5);
  });
}

TEST(invoke, ten_callables_in_order) {
  for_each_schedule([](const gw::options& o) {
    const auto digits = gw::run<std::string>(
        [] {
          const auto t = gw::invoke([] { return 0; }, [] { return 1; }, [] { return 2; }, [] { return 3; },
                                    [] { return 4; }, [] { return 5; }, [] { return 6; }, [] { return 7; },
                                    [] { return 8; }, [] { return 9; });
          return std::apply([](auto... d) { return (std::to_string(d) + ...); }, t);
        },
        o);
    EXPECT_EQ(digits, "0123456789");
  });
}

TEST(invoke, results_of_mixed_types) {
  using result = std::tuple<std::string, std::monostate, double, std::vector<std::string>>;
  for_each_schedule([](const gw::options& o) {
    const auto r = gw::run<result>(
        [] {
          return gw::invoke([] { return std::string(300, 'a'); }, [] {}, [] { return 1.5; },
                            [] {
                              return std::vector<std::string>{"one", std::string(100, 'b')};
                            });
        },
        o);
    EXPECT_EQ(std::get<0>(r), std::string(300, 'a'));
    EXPECT_EQ(std::get<2>(r), 1.5);
    EXPECT_EQ(std::get<3>(r), (std::vector<std::string>{"one", std::string(100, 'b')}));
  });
}

TEST(invoke, all_void_gives_nothing) {
  static_assert(std::is_void_v<decltype(gw::invoke([] {}, [] {}))>);
  static_assert(
      std::is_same_v<decltype(gw::invoke([] { return 1; }, [] {})), std::tuple<int, std::monostate>>);
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> count;
    gw::run<int>(
        [c = count.get()] {
          gw::invoke([c] { c->fetch_add(1); }, [c] { c->fetch_add(10); }, [c] { c->fetch_add(100); });
          c->fetch_add(c->load() == 111 ? 1000 : 0);  // all of them are over when invoke comes back
          return 0;
        },
        o);
    EXPECT_EQ(count->load(), 1111);
  });
}

/// Sort a range of a shared page by merging: parents use what children wrote there.
struct page {
  std::atomic<int> value[256];
  std::atomic<int> other[256];
};
[[gnu::noinline]] void merge_sort(page* p, int from, int to) {
  if (to - from < 2) return;
  const int middle = (from + to) / 2;
  gw::invoke([=] { merge_sort(p, from, middle); }, [=] { merge_sort(p, middle, to); });
  for (int i = from, a = from, b = middle; i < to; ++i) {
    const bool left = b == to || (a < middle && p->value[a].load() <= p->value[b].load());
    p->other[i].store(p->value[left ? a++ : b++].load());
  }
  for (int i = from; i < to; ++i) p->value[i].store(p->other[i].load());
}

TEST(invoke, what_children_wrote_is_seen_after_it) {
  for_each_schedule([](const gw::options& o) {
    support::shared<page> shared;
    for (int i = 0; i < 256; ++i) shared->value[i] = i * 167 % 256;
    gw::run<int>(
        [p = shared.get()] {
          merge_sort(p, 0, 256);
          return 0;
        },
        o);
    int wrong = 0;
    for (int i = 0; i < 256; ++i) wrong += shared->value[i].load() != i;
    EXPECT_EQ(wrong, 0);
  });
}

TEST(invoke, coded_results_while_the_last_callable_spawns) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(
                  [] {
                    auto [a, n, b] = gw::invoke([] { return std::string(100, 'x'); }, [] { return fib(6); },
                                                [] {
                                                  auto f = gw::spawn([] { return fib(5); });
                                                  return std::string(static_cast<std::size_t>(f.join()), 'y');
                                                });
                    return a + std::to_string(n) + b;
                  },
                  o),
              std::string(100, 'x') + "8" + "yyyyy");
  });
}

TEST(invoke, lvalue_callables_stay_usable) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    const auto f = [k = 3] { return k; };
                    auto [a, b] = gw::invoke(f, f);
                    auto [c, d] = gw::invoke(f, f);
                    return a + b + c + d;
                  },
                  o),
              12);
  });
}

}  // namespace
