// The algorithms on ordinary memory: every one of them on a std::vector of a thread, whose results are std's;
// other containers, arrays and views; memory that not all workers see. Test of algorithm/ordinary.hpp,
// parallel_for.hpp and src/runtime/ordinary.cpp.
// test: timeout=180 skip-qemu skip-asan
#include "support/child.hpp"
#include "support/schedule.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace gw = godwit;
using support::for_each_schedule;

constexpr gw::grain few{16};

/// What is wrong, if anything is: threads give back text.
using verdict = std::string;
void expect(verdict& v, bool right, const char* what) {
  if (!right) v += std::string(what) + ' ';
}
void right_everywhere(verdict (*body)()) {
  for_each_schedule(
      [body](const gw::options& o) { EXPECT_EQ(gw::run<verdict>([body] { return body(); }, o), ""); });
}

std::vector<int> numbers(int n) {
  std::vector<int> v(static_cast<std::size_t>(n));
  unsigned x = 12345;
  for (int& i : v) i = static_cast<int>((x = x * 1664525u + 1013904223u) >> 20);
  return v;
}

TEST(ordinary, elements_of_a_vector) {
  right_everywhere([] {
    verdict bad;
    std::vector<int> v = numbers(300), w(300), expected = v;
    gw::for_each(
        v, [](int& x) { ++x; }, few);
    gw::for_each(
        v.begin() + 100, v.end(), [](int& x) { ++x; }, few);
    for (std::size_t i = 0; i < 300; ++i) expected[i] += i < 100 ? 1 : 2;
    expect(bad, v == expected, "for_each");
    expect(bad,
           gw::transform(
               v, w, [](int x) { return x - 1; }, few) == w.end(),
           "end of transform");
    expect(bad, gw::transform(v.begin(), v.end(), w.begin(), w.begin(), std::plus<>(), few) == w.end(),
           "end of transform of two");
    expect(bad, w[299] == 2 * v[299] - 1, "transform");
    gw::generate(
        w, [](std::uint64_t i) { return static_cast<int>(3 * i); }, few);
    expect(bad, w[299] == 897, "generate");
    gw::iota(w, 5, few);
    expect(bad, w[299] == 304, "iota");
    gw::fill(w, 7, few);
    expect(bad, std::ranges::count(w, 7) == 300, "fill");
    expect(bad, gw::copy(v.begin(), v.end(), w.begin(), few) == w.end() && v == w, "copy");
    return bad;
  });
}

TEST(ordinary, values_and_places) {
  right_everywhere([] {
    verdict bad;
    std::vector<int> v = numbers(500);
    const std::vector<int>& c = v;
    const long sum = std::accumulate(v.begin(), v.end(), 0L);
    expect(bad, gw::reduce(c, 0L, few) == sum, "reduce");
    expect(bad, gw::reduce(c.begin(), c.end(), 0L, std::plus<>(), few) == sum, "reduce of iterators");
    expect(bad,
           gw::transform_reduce(
               c, 0L, std::plus<>(), [](int x) { return 2L * x; }, few) == 2 * sum,
           "transform_reduce");
    expect(bad, gw::transform_reduce(c, v, 0L, few) == std::inner_product(v.begin(), v.end(), v.begin(), 0L),
           "inner product");
    const int x = v[333];
    expect(bad, gw::find(v, x, few) == std::ranges::find(v, x), "find");
    expect(bad, gw::find(c.begin(), c.end(), -1, few) == c.end(), "find nothing");
    expect(bad,
           gw::find_if(
               v, [x](int y) { return y == x; }, few) == std::ranges::find(v, x),
           "find_if");
    expect(bad, gw::count(v, x, few) == static_cast<std::uint64_t>(std::ranges::count(v, x)), "count");
    expect(bad,
           gw::count_if(
               v, [](int y) { return y % 2 == 0; }, few) ==
               static_cast<std::uint64_t>(std::ranges::count_if(v, [](int y) { return y % 2 == 0; })),
           "count_if");
    expect(bad, gw::max_element(v, std::less<>(), few) == std::ranges::max_element(v), "max_element");
    expect(bad, gw::minmax_element(v, std::less<>(), few).first == std::ranges::min_element(v),
           "minmax_element");
    expect(bad,
           gw::any_of(
               v, [x](int y) { return y == x; }, few),
           "any_of");
    expect(bad,
           gw::all_of(
               v, [](int y) { return y >= 0; }, few),
           "all_of");
    expect(bad,
           gw::none_of(
               v, [](int y) { return y < 0; }, few),
           "none_of");
    expect(bad, gw::equal(v, c, std::equal_to<>(), few) && gw::equal(v.begin(), v.end(), c.begin()), "equal");
    expect(bad, !gw::is_sorted(v, std::less<>(), few), "is_sorted");
    return bad;
  });
}

TEST(ordinary, orders) {
  right_everywhere([] {
    verdict bad;
    const std::vector<int> v = numbers(700);
    std::vector<int> a = v, b = v, c(1400), d(1400);
    std::ranges::sort(b);
    gw::sort(a, std::less<>(), std::identity(), few);
    expect(bad, a == b, "sort");
    a = v;
    gw::stable_sort(a.begin(), a.end(), std::greater<>(), std::identity(), few);
    expect(bad, std::ranges::is_sorted(a, std::greater<>()), "stable_sort");
    gw::reverse(a, few);
    expect(bad, a == b, "reverse");
    expect(bad, gw::merge(a, b, c, std::less<>(), few) == c.end(), "end of merge");
    gw::merge(a.begin(), a.end(), b.begin(), b.end(), d.begin(), std::less<>(), few);
    expect(bad, std::ranges::is_sorted(c) && c == d, "merge");
    gw::shuffle(a, 1);
    expect(bad, a != b && std::ranges::is_permutation(a, b), "shuffle");
    const auto odd = [](int x) { return x % 2 != 0; };
    const auto middle = gw::stable_partition(a, odd, few);
    expect(bad, std::all_of(a.begin(), middle, odd) && std::none_of(middle, a.end(), odd), "partition");
    a.erase(gw::remove_if(a, odd, few), a.end());
    expect(bad, a.size() == static_cast<std::size_t>(700 - std::ranges::count_if(v, odd)), "remove_if");
    c.erase(gw::unique(c, std::equal_to<>(), few), c.end());
    d.erase(std::unique(d.begin(), d.end()), d.end());
    expect(bad, c == d, "unique");
    b = v;
    std::vector<int> e(700), f(700);
    expect(bad, gw::inclusive_scan(b, e, std::plus<>(), few) == e.end(), "end of scan");
    std::inclusive_scan(v.begin(), v.end(), f.begin());
    expect(bad, e == f, "inclusive_scan");
    gw::exclusive_scan(b.begin(), b.end(), b.begin(), 3, std::plus<>(), few);
    std::exclusive_scan(v.begin(), v.end(), f.begin(), 3);
    expect(bad, b == f, "exclusive_scan in place");
    e.erase(gw::copy_if(v, e, odd, few), e.end());
    expect(bad, std::ranges::count_if(v, odd) == static_cast<long>(e.size()), "copy_if");
    return bad;
  });
}

TEST(ordinary, other_ranges) {
  right_everywhere([] {
    verdict bad;
    std::deque<int> d(300, 3);
    gw::for_each(
        d, [](int& x) { x *= 2; }, few);
    expect(bad, gw::reduce(d, 0, std::plus<>(), few) == 1800, "deque");
    expect(bad,
           gw::find_if(
               d.begin(), d.end(), [](int x) { return x != 6; }, few) == d.end(),
           "find in deque");
    std::vector<std::string> s(100, "a text that is long enough to be on the heap");
    gw::for_each(
        s, [](std::string& x) { x += '!'; }, few);
    expect(bad,
           gw::all_of(
               s, [](const std::string& x) { return x.back() == '!'; }, few),
           "strings");
#if !defined(__clang__) || __clang_major__ >= 16  // clang 14 has no views
    expect(bad, gw::reduce(std::views::iota(0L, 1000L), 0L, few) == 499500, "view");
#endif
    std::vector<int> v(100, 1);
    expect(bad, gw::reduce(std::span(v).subspan(50), few) == 50, "span");
    auto a = std::make_unique<std::array<int, 100>>();
    gw::fill(*a, 2, few);
    expect(bad, gw::reduce(*a, few) == 200, "array");
    gw::parallel_for(
        0, 100, [p = v.data()](int i) { p[i] = i; }, few);
    gw::parallel_for(
        v, [](int& x) { ++x; }, few);
    expect(bad, v[99] == 100, "parallel_for");
    std::vector<int> none;
    gw::sort(none);
    expect(bad, gw::reduce(none) == 0 && gw::find(none, 1) == none.end(), "an empty one");
    return bad;
  });
}

TEST(ordinary, to_and_from_global_memory) {
  right_everywhere([] {
    verdict bad;
    std::vector<int> v = numbers(200), w(200);
    gw::global_array<int> g(200);
    gw::copy(v, g, few);
    gw::copy(g, w.begin(), few);
    expect(bad, v == w, "to and from a global_array");
    gw::transform(
        g.data(), g.data() + 200, w, [](int x) { return x + 1; }, few);
    expect(bad, w[199] == v[199] + 1, "transform");
    expect(bad, !gw::equal(g, w, std::equal_to<>(), few), "equal");
    return bad;
  });
}

TEST(ordinary, spawn_n_is_n_threads_and_one_future) {
  right_everywhere([] {
    verdict bad;
    std::vector<int> v(100);
    auto all = gw::spawn_n(100, [p = v.data()](int i) { p[i] = i; });
    all.join();
    for (int i = 0; i < 100; ++i) expect(bad, v[static_cast<std::size_t>(i)] == i, "spawn_n");
    gw::spawn_n(0, [](int) {}).join();
    try {
      gw::spawn_n(100, [](int i) {
        if (i % 30 == 29) throw std::out_of_range(std::to_string(i));
      }).join();
      expect(bad, false, "no exception");
    } catch (const std::out_of_range& e) {
      expect(bad, e.what() == std::string("29"), "the exception of the first");
    }
    return bad;
  });
}

std::vector<int> of_main(1000, 1);  // NOLINT

TEST(ordinary, what_main_made_is_read) {
  right_everywhere([] {
    verdict bad;
    expect(bad, gw::reduce(of_main, few) == 1000, "reduce");
    std::vector<int> sums(1000);
    gw::inclusive_scan(of_main, sums, std::plus<>(), few);
    expect(bad, sums.back() == 1000, "scan to a thread's vector");
    return bad;
  });
}

TEST(ordinary, what_main_shares_is_written) {
  const support::outcome o = support::run_child([] {  // which shares it from then on
    const gw::shared_global<std::vector<int>> common(300u, 1);
    std::vector<int>* const v = &*common;
    gw::options options;
    options.workers = 2;
    return gw::run(options, [v] {
      gw::fill(*v, 2, few);
      return gw::reduce(*v, few) == 600 ? 0 : 1;
    });
  });
  EXPECT_EQ(o.status, 0) << support::show(o);
}

// What not all workers see.

std::string refusal(const std::function<void()>& root, gw::options options = {}) {
  const support::outcome o = support::run_child([&] {
    options.workers = 2;
    return gw::run(options, [&root] { root(); });
  });
  EXPECT_EQ(o.status, 70) << support::show(o);
  EXPECT_EQ(o.err_lines(), 1) << o.err;
  return o.err;
}
#define EXPECT_HAS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

TEST(ordinary, what_main_made_is_not_written) {
  GODWIT_NEEDS_PROCESSES("one process has one memory");
  if (gw::resolve_options().substrate == gw::choice::substrate::sim) GTEST_SKIP() << "likewise";
  const std::string said = refusal([] { gw::sort(of_main); });
  EXPECT_HAS(said, "every worker has a copy");
  EXPECT_HAS(said, "what_main_made_is_not_written");  // the place: without debug information the function
}

TEST(ordinary, what_lies_in_a_frame_is_refused) {
  GODWIT_NEEDS_PROCESSES("stacks stay where they are");
  EXPECT_HAS(refusal([] {
               int here[100] = {};
               static_cast<void>(gw::reduce(here));
             }),
             "in the frame of a thread");
}

TEST(ordinary, on_several_hosts_only_what_main_made_is_read) {
  GODWIT_NEEDS_PROCESSES("one process is no host");
  gw::options two;
  two.substrate = gw::choice::substrate::sim;
  two.sim_hosts = 2;
  EXPECT_HAS(refusal(
                 [] {
                   if (gw::reduce(of_main, few) != 1000) return;
                   std::vector<int> v(100);
                   gw::sort(v);
                 },
                 two),
             "the run has others");
}

TEST(ordinary, outside_a_run) {
  const support::outcome o = support::run_child([] {
    std::vector<int> v(10);
    gw::sort(v);
    return 0;
  });
  EXPECT_HAS(o.err, "outside godwit::run");
}

}  // namespace
