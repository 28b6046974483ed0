// Whole runs of the real scheduler in virtual time: right, the same again with the same seed, and as fast as
// virtual time says that they must be.
// test: skip-qemu
#include "sim/simulated_runs.hpp"
#include "support/child.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace simulated_runs;

TEST(simulation, charges_do_nothing_elsewhere) {
  gw::options o = support::schedule(2);
  o.substrate = gw::choice::substrate::processes;
  EXPECT_EQ(gw::run<int>([] { return fib(10) + static_cast<int>(gw::sim::now_ns()); }, o), 55);
}

TEST(simulation, one_worker_takes_what_is_charged) {
  const outcome one = timed_fib(15, simulated(1));
  EXPECT_EQ(one.value, 610);
  constexpr std::uint64_t work = 987 * leaf_ns;
  EXPECT_GE(one.ns, work);
  EXPECT_LE(one.ns, work + work / 100);
}

TEST(simulation, more_workers_take_less_virtual_time) {
  constexpr std::uint64_t work = 2584 * leaf_ns;
  std::uint64_t before = ~std::uint64_t{0};
  for (const std::uint32_t workers : {1u, 2u, 4u, 16u, 64u}) {
    const outcome o = timed_fib(17, simulated(workers));
    EXPECT_EQ(o.value, 1597);
    EXPECT_GE(o.ns * workers, work) << "no worker is faster than one";
    EXPECT_LT(o.ns, before) << workers << " workers";
    before = o.ns;
  }
  EXPECT_LT(before, work / 16) << "64 workers";
}

TEST(simulation, the_same_seed_gives_the_same_run) {
  const outcome first = timed_fib(14, simulated(8, 3, "random"));
  const auto stats = gw::last_run_stats();
  const outcome again = timed_fib(14, simulated(8, 3, "random"));
  EXPECT_EQ(first.ns, again.ns);
  ASSERT_EQ(stats.size(), gw::last_run_stats().size());
  for (std::size_t i = 0; i < stats.size(); ++i) {
    EXPECT_EQ(stats[i].steals, gw::last_run_stats()[i].steals);
    EXPECT_EQ(stats[i].steals_failed, gw::last_run_stats()[i].steals_failed);
  }
  EXPECT_NE(first.ns, timed_fib(14, simulated(8, 4, "random")).ns);
}

/// The line about a run of fib(12) on 4 workers, from the hash on.
std::string line_of(std::uint64_t seed, std::uint64_t lead_ns) {
  gw::options o = simulated(4, seed);
  o.quiet = false;
  o.sim_lead_ns = lead_ns;
  testing::internal::CaptureStderr();
  timed_fib(12, o);
  const std::string text = testing::internal::GetCapturedStderr();
  const auto at = text.find("hash ");
  return at == text.npos ? "no hash: " + text : text.substr(at);
}

TEST(simulation, the_hash_is_that_of_the_schedule) {
  const std::string first = line_of(1, 0);
  EXPECT_EQ(first, line_of(1, 0));
  EXPECT_NE(first, line_of(2, 0));
  EXPECT_NE(first.find("late: 0 times"), std::string::npos) << first;
  EXPECT_EQ(line_of(1, 200'000).find("late: 0 times"), std::string::npos) << "who is ahead notices late";
}

TEST(simulation, measured_time_is_that_of_this_machine) {
  gw::options o = simulated(1);
  o.sim_clock = gw::choice::sim_clock::measured;
  const std::uint64_t ns = gw::run<std::uint64_t>(
      [] {
        const std::uint64_t from = gw::sim::now_ns();
        gw::sim::charge(1'000'000'000'000);  // does not count
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
        while (std::chrono::steady_clock::now() < until) {
        }
        return gw::sim::now_ns() - from;
      },
      o);
  EXPECT_GE(ns, 3'000'000u);
  EXPECT_LT(ns, 1'000'000'000'000u);
}

// What is done before the first turn is nobody's time: else the first worker began hours after the others.
TEST(simulation, measured_time_begins_with_the_first_turn) {
  for (const std::uint32_t hosts : {1u, 2u}) {
    gw::options o = simulated(4);
    o.sim_hosts = hosts;
    o.sim_clock = gw::choice::sim_clock::measured;
    const std::uint64_t began = gw::run<std::uint64_t>(
        [] {
          const std::uint64_t at = gw::sim::now_ns();
          fib(10);
          return at;
        },
        o);
    EXPECT_LT(began, 60'000'000'000u) << hosts << " hosts";
  }
}

// Another schedule for each seed, in little time.
TEST(simulation, right_under_every_seed) {
  const std::uint64_t seeds = support::number_from_environment("STRESS_SEEDS", 200);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    gw::options o = simulated(2 + seed % 7, seed,
                              seed % 3 == 0   ? "random"
                              : seed % 3 == 1 ? "parents"
                                              : "none");
    o.sim_jitter_ns = seed % 4 * 500;
    o.sim_lead_ns = seed % 5 * 3'000;
    o.policy = seed % 2 == 0 ? gw::choice::policy::greedy : gw::choice::policy::stalling;
    ASSERT_EQ(timed_fib(10, o).value, 55) << "seed " << seed;
  }
}

TEST(simulation, who_computes_is_interrupted_for_its_parent) {
  const std::uint64_t ns = gw::run<std::uint64_t>(
      [] {
        auto a = gw::spawn([] { gw::sim::charge(10'000'000); });
        gw::sim::charge(10'000'000);
        a.join();
        return gw::sim::now_ns();
      },
      simulated(2));
  EXPECT_LT(ns, 11'000'000u) << "both at the same time";
}

TEST(simulation, results_and_exceptions_travel_as_between_processes) {
  const std::string text = gw::run<std::string>(
      [] {
        auto f = gw::spawn([] {
          gw::sim::charge(50'000);
          return std::string(100, 'x');
        });
        gw::sim::charge(10'000);
        return f.join() + "y";
      },
      simulated(3, 1, "random"));
  EXPECT_EQ(text, std::string(100, 'x') + "y");
  EXPECT_THROW(gw::run<void>(
                   [] {
                     auto f = gw::spawn([] {
                       gw::sim::charge(50'000);
                       throw std::runtime_error("thrown in a thread");
                     });
                     gw::sim::charge(10'000);
                     f.join();
                   },
                   simulated(3)),
               std::runtime_error);
}

std::size_t resident_pages() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

/// Computes for a while, @p bytes deep in its stack.
[[gnu::noinline]] void compute_deep_down(std::size_t bytes) {
  auto* const below = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; i += 512) below[i] = 1;
  gw::sim::charge(1'000'000);
  below[0] = 2;
}

TEST(simulation, stacks_of_idle_workers_take_no_memory) {
  constexpr std::uint32_t workers = 64;
  constexpr std::size_t deep = 200 << 10;
  gw::run<void>(
      [] {
        const std::size_t before = resident_pages();
        std::vector<gw::future<void>> all;
        for (std::uint32_t i = 0; i < 4 * workers; ++i)
          all.push_back(gw::spawn([] { compute_deep_down(deep); }));
        for (gw::future<void>& f : all) f.join();
        gw::sim::charge(1'000'000);  // the others become idle
        // The stacks are the whole of it; other memory 0.6 at most with AddressSanitizer, 0.1 without.
        EXPECT_LT(resident_pages() * 4096, before * 4096 + workers * deep * 3 / 4);
      },
      simulated(workers));
  std::uint64_t steals = 0;
  for (const gw::worker_stats& s : gw::last_run_stats()) steals += s.steals;
  EXPECT_GE(steals, workers - 1) << "all had something to compute";
}

TEST(simulation, who_never_gets_a_thread_is_idle_from_the_beginning_of_virtual_time) {
  constexpr std::uint64_t ns = 3'000'000;
  gw::run<void>([] { gw::sim::charge(ns); }, simulated(3));
  const auto& stats = gw::last_run_stats();
  ASSERT_EQ(stats.size(), 3u);
  EXPECT_LT(stats[0].idle_no_work_ns, ns);
  for (const std::size_t w : {1, 2}) {
    EXPECT_GE(stats[w].idle_no_work_ns, ns) << "worker " << w;
    EXPECT_EQ(stats[w].idle_no_work_ns, stats[w].life_ns) << "worker " << w;
  }
}

TEST(simulation, a_run_that_is_not_over_by_the_limit_fails) {
  const auto out = support::run_child([] {
    gw::options o = simulated(2);
    o.sim_limit_ms = 2;
    return gw::run<int>([] { return fib(18); }, o);  // 4 ms at least
  });
  EXPECT_NE(out.status, 0) << support::show(out);
  EXPECT_TRUE(out.err_has("not over after 2 ms of virtual time")) << support::show(out);
}

TEST(simulation, more_than_virtual_time_has_is_past_every_limit) {
  const auto none = ~std::uint64_t{0};
  for (const std::uint64_t ns : {none, none / 2 + 1})
    for (const std::uint64_t limit_ms : {0, 1000}) {
      const auto out = support::run_child([=] {
        gw::options o = simulated(1);
        o.sim_limit_ms = limit_ms;
        return gw::run<int>(
            [ns] {
              for (int i = 0; i < 3; ++i) gw::sim::charge(ns);
              return 0;
            },
            o);
      });
      EXPECT_NE(out.status, 0) << support::show(out);
      EXPECT_TRUE(out.err_has("of virtual time (--godwit-sim-limit-ms)")) << support::show(out);
    }
}

TEST(simulation, refuses_what_it_cannot) {
  gw::options o = on_hosts(2, 2, gw::choice::way::server);
  o.policy = gw::choice::policy::iso;
  EXPECT_THROW(gw::run<void>([] {}, o), std::invalid_argument);
  o = on_hosts(2, 2, gw::choice::way::server);
  o.directory = gw::choice::directory::relay;
  EXPECT_THROW(gw::run<void>([] {}, o), std::invalid_argument);
  o = simulated(2);
  o.sim_machine = "nowhere";
  EXPECT_THROW(gw::run<void>([] {}, o), std::invalid_argument);
}

}  // namespace
