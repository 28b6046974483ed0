// Work and span: lower bounds that hold however busy the machine is, the chain through locks, results.
// test: timeout=120
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

namespace {

namespace gw = godwit;

long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

long chain(int n) {
  return n == 0 ? 0 : 1 + gw::spawn([n] { return chain(n - 1); }).join();
}

void spin_for(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// Work, and the longest chain, of the run before.
std::pair<std::uint64_t, std::uint64_t> work_and_span() {
  std::uint64_t work = 0, span = 0;
  for (const auto& w : gw::last_run_stats()) {
    work += w.work_ns;
    span = std::max(span, w.span_ns);
  }
  return {work, span};
}

TEST(span, work_and_longest_chain) {
  gw::options o;
  o.workers = 2;
  o.span = true;
  constexpr int leaves = 16;
  gw::run<void>(
      [] {
        std::array<gw::future<void>, leaves> all;
        for (auto& f : all) f = gw::spawn([] { spin_for(std::chrono::microseconds(2000)); });
        for (auto& f : all) f.join();
        spin_for(std::chrono::microseconds(3000));
      },
      o);
  const auto [work, span] = work_and_span();
  // Lower bounds hold however busy the machine is; and what lies on other chains is never part of the
  // longest.
  EXPECT_GE(work, 2'000'000u * leaves + 3'000'000u);
  EXPECT_GE(span, 2'000'000u + 3'000'000u);
  EXPECT_LE(span, work - 2'000'000u * (leaves - 1));
}

/// Longest chain of a run on one worker that is a thread: mutexes and gw::thread are for those.
template <class Program>
std::uint64_t span_on_threads(Program program) {
  const char* const asked = std::getenv("GODWIT_SUBSTRATE");
  const std::string substrate = asked != nullptr ? asked : "";
  unsetenv("GODWIT_SUBSTRATE");
  gw::options o;
  o.workers = 1;
  o.substrate = gw::choice::substrate::threads;
  o.span = true;
  gw::run<void>(program, o);
  if (!substrate.empty()) setenv("GODWIT_SUBSTRATE", substrate.c_str(), 1);
  return work_and_span().second;
}

TEST(span, goes_through_locks) {
  constexpr int threads = 8;
  const std::uint64_t span = span_on_threads([] {
    gw::mutex m;
    std::array<gw::future<void>, threads> all;
    for (auto& f : all)
      f = gw::spawn([&m] {  // all of them wait for the first: there is one worker
        const std::lock_guard hold(m);
        gw::yield();
        spin_for(std::chrono::microseconds(2000));
      });
    for (auto& f : all) f.join();
  });
  EXPECT_GE(span, 1'950'000u * threads);  // two clocks
}

TEST(span, goes_through_the_creation_of_a_thread_that_begins_later) {
  const std::uint64_t span = span_on_threads([] {
    spin_for(std::chrono::microseconds(3000));
    gw::thread t([] { spin_for(std::chrono::microseconds(2000)); });
    t.join();
  });
  EXPECT_GE(span, 4'900'000u);  // two clocks
}

TEST(span, a_chain_has_no_parallelism) {
  gw::options o;
  o.workers = 2;
  o.span = true;
  EXPECT_EQ(gw::run<long>([] { return chain(200); }, o), 200);
  const auto [work, span] = work_and_span();
  EXPECT_GT(span, 0u);
  EXPECT_LE(span, work);
}

TEST(span, results_on_every_schedule) {
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    gw::options o = support::schedule(workers, "none", 3);
    o.span = true;
    EXPECT_EQ(gw::run<long>([] { return fib(16); }, o), 987);
  }
}

TEST(span, goes_through_the_wait_for_a_group) {
  support::for_each_schedule([](gw::options o) {
    o.span = true;
    gw::run<void>(
        [] {
          const gw::task_group g;
          g.run([] { spin_for(std::chrono::microseconds(2000)); });
          g.run([] {});
          g.wait();
          spin_for(std::chrono::microseconds(3000));
        },
        o);
    EXPECT_GE(work_and_span().second, 4'900'000u);  // two clocks
  });
}

TEST(span, a_group_throws_what_its_first_member_threw) {
  support::for_each_schedule([](gw::options o) {
    o.span = true;
    EXPECT_EQ(gw::run<int>(
                  [] {
                    int bad = 0;
                    for (int round = 0; round < 10; ++round) {
                      const gw::task_group g;
                      for (int i = 0; i < 8; ++i)
                        g.run([i] {
                          static_cast<void>(fib(8 - i));  // the first one takes longest
                          gw::yield();
                          throw i;
                        });
                      try {
                        g.wait();
                        ++bad;
                      } catch (int i) {
                        bad += i != 0;
                      }
                    }
                    return bad;
                  },
                  o),
              0);
    // Such numbers are no chains.
    const auto [work, span] = work_and_span();
    EXPECT_LE(span, work);
  });
}

}  // namespace
