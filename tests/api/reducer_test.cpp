// Tests of reducers: what they say is what a serial execution would have made, on every schedule and
// policy; floating-point sums to the last bit.
// test: timeout=300 skip-asan
#include "api/reducer_programs.hpp"
#include "support/child.hpp"
#include "support/schedule.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using support::for_each_schedule;
using namespace reducer_programs;

TEST(reducer, these_are_programs_where_the_order_matters) {
  EXPECT_EQ(serial_brackets().substr(0, 12), "(((((0|1)|((");
  EXPECT_EQ(serial_loop().substr(0, 16), "0a0b;0c.1a1b;1c.");
  double forwards = 0, backwards = 0;
  for (int i = 0; i < 2'000; ++i) forwards += term(i), backwards += term(1'999 - i);
  EXPECT_NE(forwards, backwards);
}

TEST(reducer, under_every_policy) {
  expect_serial_results_everywhere([](gw::options&) {});
}

TEST(reducer, in_the_frame_of_the_thread_by_reference) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(
                  [] {
                    text r;
                    const int high = 6;
                    gw::invoke([&] { *r += "a"; }, [&] { r->append(high, 'b'); }, [&] { *r += "c"; });
                    auto d = gw::spawn([&r] { gw::spawn([&r] { *r += 'd'; }).join(); });
                    *r += 'e';
                    d.join();
                    const std::string first = r.get();
                    *r += '!';
                    return first + r.get();
                  },
                  o),
              "abbbbbbcdeabbbbbbcde!");
  });
}

TEST(reducer, what_threw_has_been_written) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(
                  [] {
                    text r;
                    for (int i = 0; i < 5; ++i) {
                      auto f = gw::spawn([&r, i] {
                        *r += static_cast<char>('a' + i);
                        if (i % 2 == 0) throw std::runtime_error("odd");
                      });
                      *r += '-';
                      try {
                        f.join();
                        *r += '.';
                      } catch (const std::exception&) {
                        *r += '!';
                      }
                    }
                    return r.take();
                  },
                  o),
              "a-!b-.c-!d-.e-!");
  });
}

// Reducers that threads make for themselves, while others live.
long squares(gw::reducer<long>& all, int n) {
  gw::reducer<long> own;
  if (n == 0) return 0;
  auto f = gw::spawn([&, n] { return squares(all, n - 1); });
  *own += n;
  gw::invoke([&, n] { *own += n * n; }, [&, n] { *all += n; });
  *own -= n;
  return own.take() + f.join();
}

TEST(reducer, nested) {
  for_each_schedule([](const gw::options& o) {
    const auto [sum, all] = gw::run<std::pair<long, long>>(
        [] {
          gw::reducer<long> all;
          long sum = 0;
          for (int i = 0; i < 5; ++i) sum += squares(all, 20);
          return std::pair(sum, all.take());
        },
        o);
    EXPECT_EQ(sum, 5 * 20 * 21 * 41 / 6);
    EXPECT_EQ(all, 5 * 210);
  });
}

TEST(reducer, of_threads_that_nobody_joins) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const auto sum = std::make_unique<gw::reducer<long>>();
                    const gw::owned<gw::global_latch> done(8);
                    for (int i = 1; i <= 8; ++i)
                      static_cast<void>(gw::spawn([r = sum.get(), i, done = done.get()] {
                        **r += i;
                        done.count_down();
                      }));
                    done->wait();
                    return sum->get();
                  },
                  o),
              36);
  });
}

gw::reducer<std::vector<int>, gw::op::append> of_main;  // its bytes do not change: all workers have it

void write_below(int n) {
  if (n == 0) return;
  auto f = gw::spawn([n] { write_below(n - 1); });
  of_main->push_back(n);
  f.join();
}

TEST(reducer, that_main_has_made) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_TRUE(gw::run<bool>(
        [] {
          write_below(200);
          const std::vector<int> all = of_main.take();
          return all.size() == 200 && std::ranges::is_sorted(all);
        },
        o));
  });
}

struct longest {  // one of the program's own
  static std::string identity() { return ""; }
  static void reduce(std::string& left, std::string&& right) {
    if (right.size() > left.size()) left = std::move(right);
  }
};

TEST(reducer, all_operations) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    gw::reducer<int, gw::op::min> least;
                    gw::reducer<double, gw::op::max> most;
                    gw::reducer<unsigned, gw::op::bit_and> and_of;
                    gw::reducer<unsigned, gw::op::bit_or> or_of;
                    gw::reducer<bool, gw::op::logical_and> every;
                    gw::reducer<bool, gw::op::logical_or> any;
                    gw::reducer<std::array<long, 4>, gw::op::histogram> counts;
                    gw::reducer<std::map<int, long>, gw::op::merge<gw::op::sum>> by_key;
                    gw::reducer<std::optional<int>, gw::op::first> first;
                    gw::reducer<std::string, longest> name;
                    gw::reducer<float> sum, rounded_once;
                    const auto one = [&](int i) {
                      *least = std::min(*least, i);
                      *most = std::max(*most, i * 0.5);
                      *and_of &= 0xF0u | static_cast<unsigned>(i);
                      *or_of |= static_cast<unsigned>(i);
                      *every = *every && i < 100;
                      *any = *any || i == 7;
                      ++(*counts)[static_cast<std::size_t>(i % 4)];
                      ++(*by_key)[i % 3];
                      if (!*first && i % 5 == 4) *first = i;
                      longest::reduce(*name, std::string(static_cast<std::size_t>(i == 9 ? 50 : 3), 'x'));
                      *sum += 0.5F;
                      if (i < 3) *rounded_once += i == 0 ? 1 : i == 1 ? 0x1p-24 : 0x1p-60;
                    };
                    for (int i = 0; i < 20; i += 4)
                      gw::invoke([&, i] { one(i); }, [&, i] { one(i + 1); }, [&, i] { one(i + 2); },
                                 [&, i] { one(i + 3); });
                    int right = least.get() == 0;
                    right += most.get() == 9.5;
                    right += and_of.get() == 0xF0u;
                    right += or_of.get() == 31u;
                    right += every.get();
                    right += any.get();
                    right += counts.get() == std::array<long, 4>{5, 5, 5, 5};
                    right += by_key.get() == std::map<int, long>{{0, 7}, {1, 7}, {2, 6}};
                    right += first.get() == 4;
                    right += name.get().size() == 50;
                    right += sum.get() == 10.0F;
                    right += rounded_once.get() == 1 + 0x1p-23F;
                    return right;
                  },
                  o),
              12);
  });
}

/// Members of a group that add members, of which several fail: in serial order 11 is the first, though 1,
/// which added it, was added before it.
void fail_below(const gw::task_group& g, gw::reducer<std::optional<int>, gw::op::first>& first, int n) {
  g.run([&g, &first, n] {
    if (n < 10)
      for (int i = 1; i <= 3; ++i) fail_below(g, first, 10 * n + i);
    work(100 * (40 - n));  // those that come later end sooner
    if (n != 0 && !*first) *first = n;
  });
}

TEST(reducer, the_first_failure_of_members_that_add_members) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    gw::reducer<std::optional<int>, gw::op::first> first;
                    const gw::task_group g;
                    fail_below(g, first, 0);
                    g.wait();
                    return first.get().value_or(-1);
                  },
                  o),
              11);
  });
}

struct slow_append : gw::op::append {  // others steal meanwhile
  template <class T>
  static void reduce(T& left, T&& right) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    append::reduce(left, std::move(right));
  }
};
using slow_numbers = gw::reducer<std::vector<int>, slow_append>;

void update_and_create(slow_numbers& r, int n) {
  std::vector<gw::future<void>> created;
  for (int i = 0; i < n; ++i) {
    r->push_back(2 * i);
    created.push_back(gw::create([&r, i] { r->push_back(2 * i + 1); }));
    work(1000);
  }
  for (auto& f : created) f.join();
}
/// Continuations for thieves above the thread that creates.
void update_below(slow_numbers& r, int depth, int n) {
  if (depth == 0) {
    for (int i = 0; i < 8; ++i) gw::spawn([] {}).join();
    return update_and_create(r, n);
  }
  auto f = gw::spawn([&r, depth, n] { update_below(r, depth - 1, n); });
  r->push_back(2 * n + depth);
  work(3000);
  f.join();
}

// The parent's segment ends where it creates, while thieves look at its deque.
TEST(reducer, continuations_are_stolen_while_threads_are_created) {
  for (int round = 0; round < 20; ++round) {
    constexpr int depth = 100, n = 20;
    gw::options o = support::schedule(4);
    o.substrate = gw::choice::substrate::threads;
    const std::vector<int> all = gw::run<std::vector<int>>(
        [] {
          slow_numbers r;
          update_below(r, depth, n);
          return r.take();
        },
        o);
    EXPECT_EQ(all.size(), std::size_t{2 * n + depth});
    EXPECT_TRUE(std::ranges::is_sorted(all)) << testing::PrintToString(all);
  }
}

TEST(reducer, stolen_continuations_leave_few_segments) {
  constexpr int turns = 10'000;
  EXPECT_EQ(gw::run<long>(
                [] {
                  gw::reducer<long> r;
                  for (int i = 0; i < turns; ++i) gw::spawn([&r, i] { *r += i; }).join();
                  return r.get();
                },
                support::schedule(2, "parents")),
            turns / 2 * (turns - 1L));
  for (const gw::worker_stats& w : gw::last_run_stats())
    EXPECT_LT(w.heap_high_bytes, std::size_t{turns} * 16) << "a segment and a view each would be 192 bytes";
}

gw::reducer<long> of_letters;
// A worker without a thread takes letters as well, and then a thread comes.
TEST(reducer, letters_leave_few_segments) {
  if (gw::resolve_options().hosts == gw::choice::hosts::ranks || gw::resolve_options().sim_hosts > 1)
    GTEST_SKIP() << "what comes from another host and has a view stays until the reducer ends";
  constexpr int turns = 2'000;
  EXPECT_EQ(gw::run<bool>(
                [] {
                  for (int i = 0; i < turns; ++i) {
                    gw::on_each_worker([] { *of_letters += 1; });
                    for (std::uint32_t w = 0; w < gw::worker_count(); ++w)
                      gw::spawn_at(gw::worker(w), [] {}).join();
                  }
                  return of_letters.take() == turns * static_cast<long>(gw::worker_count());
                },
                support::schedule(2)),
            true);
  for (const gw::worker_stats& w : gw::last_run_stats())
    EXPECT_LT(w.heap_high_bytes, std::size_t{turns} * 64) << "a part with a view each would be 256 bytes";
}

TEST(reducer, mistakes_say_what_to_do) {
  GODWIT_NEEDS_PROCESSES("the message of another process is looked at");
  const auto outside = support::run_child([] { return static_cast<int>(of_main->size()); });
  EXPECT_TRUE(outside.err_has("updated or read outside godwit::run: use it in the threads of the run"))
      << support::show(outside);
  const auto apart = support::run_child([] {
    gw::options o = support::schedule(1);
    o.substrate = gw::choice::substrate::processes;
    o.heap = gw::choice::heap::separate;
    return gw::run(o, [] { gw::reducer<std::string, gw::op::append>()->push_back('x'); });
  });
  EXPECT_TRUE(apart.err_has("use --godwit-heap=shared")) << support::show(apart);
}

}  // namespace
