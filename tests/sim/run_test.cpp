// Whole runs of the real scheduler in virtual time: right, the same again with the same seed, and as fast as
// virtual time says that they must be.
// test: skip-qemu
#include "support/child.hpp"
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>
#include <godwit/sim.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace gw = godwit;

gw::options simulated(std::uint32_t workers, std::uint64_t seed = 1, const char* steal = "none") {
  gw::options o = support::schedule(workers, steal, 0, seed);
  o.substrate = gw::choice::substrate::sim;
  o.sim_machine = "example";
  o.sim_seed = seed;
  o.quiet = true;
  return o;
}

constexpr std::uint64_t leaf_ns = 2'000;

int fib(int n) {
  if (n < 2) {
    gw::sim::charge(leaf_ns);
    return n;
  }
  auto a = gw::spawn([n] { return fib(n - 1); });
  const int b = fib(n - 2);
  return a.join() + b;
}

struct outcome {
  int value;
  std::uint64_t ns;
};

/// fib(n), and the virtual time that it takes.
outcome timed_fib(int n, const gw::options& o) {
  return gw::run<outcome>(
      [n] {
        const std::uint64_t from = gw::sim::now_ns();
        const int v = fib(n);
        return outcome{v, gw::sim::now_ns() - from};
      },
      o);
}

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

gw::options on_hosts(std::uint32_t workers, std::uint32_t hosts, gw::choice::way way, std::uint64_t seed = 1,
                     const char* steal = "none") {
  gw::options o = simulated(workers, seed, steal);
  o.sim_hosts = hosts;
  o.way = way;
  return o;
}
constexpr gw::choice::way all_ways[] = {gw::choice::way::server, gw::choice::way::assist, gw::choice::way::am,
                                        gw::choice::way::rma};

std::uint64_t far_steals() {
  std::uint64_t n = 0;
  for (const gw::worker_stats& s : gw::last_run_stats()) n += s.far_steals;
  return n;
}

TEST(simulation, threads_go_to_other_hosts_whatever_the_way) {
  constexpr std::uint64_t work = 2584 * leaf_ns;
  for (const auto way : all_ways)
    for (const std::uint32_t hosts : {2u, 3u, 8u}) {
      const outcome o = timed_fib(17, on_hosts(8, hosts, way));
      EXPECT_EQ(o.value, 1597);
      EXPECT_GE(o.ns * 8, work);
      EXPECT_LT(o.ns, work / 2) << hosts << " hosts, way " << static_cast<int>(way);
      EXPECT_GT(far_steals(), 0u);
    }
}

TEST(simulation, the_same_seed_gives_the_same_run_on_hosts) {
  for (const auto way : all_ways) {
    const outcome first = timed_fib(14, on_hosts(6, 3, way, 5, "random"));
    EXPECT_EQ(first.ns, timed_fib(14, on_hosts(6, 3, way, 5, "random")).ns);
    EXPECT_NE(first.ns, timed_fib(14, on_hosts(6, 3, way, 6, "random")).ns);
  }
}

int calls_of[600];  // workers of a simulation share a process

/// What a second call on every worker takes, when all are up. Each is called once each time.
std::uint64_t each_worker_ns(const gw::options& o) {
  std::fill(std::begin(calls_of), std::end(calls_of), 0);
  const auto ns = gw::run<std::uint64_t>(
      [] {
        gw::on_each_worker([] { ++calls_of[gw::worker_id()]; });
        const std::uint64_t from = gw::sim::now_ns();
        gw::on_each_worker([] { ++calls_of[gw::worker_id()]; });
        return gw::sim::now_ns() - from;
      },
      o);
  for (std::uint32_t w = 0; w < o.workers; ++w) EXPECT_EQ(calls_of[w], 2) << w << " of " << o.workers;
  return ns;
}

TEST(simulation, every_worker_is_called_once) {
  for (const auto way : all_ways)
    for (const std::uint32_t hosts : {1u, 2u, 3u, 7u, 12u})
      for (const std::uint32_t workers : {12u, 200u}) each_worker_ns(on_hosts(workers, hosts, way, hosts));
  each_worker_ns(simulated(150));  // more than a worker sends letters to
}

/// The call is handed on: eight times as many hosts take three steps more, not eight times as long.
TEST(simulation, calls_on_every_worker_go_along_a_tree_of_hosts) {
  const auto time = [](std::uint32_t hosts) {
    gw::options o = on_hosts(8 * hosts, hosts, gw::choice::way::server);
    o.sim_machine = "wisteria";
    return each_worker_ns(o);
  };
  const std::uint64_t few = time(8), many = time(64);
  EXPECT_LT(many, 4 * few) << few << " ns on 8 hosts";
}

struct allocation_times {
  std::uint64_t allocate, puts, deallocate;
};

/// Memory on all of 64 hosts, a put to each, and back: hosts are not asked one after the other, as puts are.
TEST(simulation, hosts_pay_for_an_allocation_at_once) {
  for (const auto way : all_ways) {
    const auto took = gw::run<allocation_times>(
        [] {
          const std::uint64_t n = gw::worker_count(), each = 512, begin = gw::sim::now_ns();
          const auto p = gw::allocate<std::uint64_t>(n * each, gw::distribution::blocked());
          const std::uint64_t allocated = gw::sim::now_ns();
          for (std::uint64_t w = 1; w < n; ++w) gw::put(p + w * each, w);
          const std::uint64_t put = gw::sim::now_ns();
          gw::deallocate(p, n * each);
          return allocation_times{allocated - begin, put - allocated, gw::sim::now_ns() - put};
        },
        on_hosts(64, 64, way));
    // A look at what there is, one at the limit, and the payment; to give the pages back, and the payment.
    EXPECT_LT(took.allocate, 2 * took.puts) << "way " << static_cast<int>(way);
    EXPECT_LT(took.deallocate, took.puts) << "way " << static_cast<int>(way);
  }
}

TEST(simulation, slow_networks_take_longer) {
  std::uint64_t ns[2];
  for (const bool slow : {false, true}) {
    const std::string name = testing::TempDir() + "godwit_slow_networks.ini";
    std::ofstream(name) << "latency_ns = " << (slow ? 300'000 : 1'000) << "\n";
    gw::options o = on_hosts(8, 8, gw::choice::way::server);
    o.sim_machine = name;
    ns[slow ? 1 : 0] = timed_fib(16, o).ns;
    std::remove(name.c_str());
  }
  EXPECT_GT(ns[1], ns[0] + 300'000);
}

// Messages that are late by chance, forced steals, all ways.
TEST(simulation, right_under_every_seed_on_hosts) {
  const std::uint64_t seeds = support::number_from_environment("STRESS_SEEDS", 200);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::uint32_t hosts = 2 + seed % 3;
    gw::options o = on_hosts(hosts + seed % 5, hosts, all_ways[seed % 4], seed,
                             seed % 3 == 0   ? "random"
                             : seed % 3 == 1 ? "parents"
                                             : "none");
    o.sim_jitter_ns = seed % 4 * 5'000;
    o.sim_lead_ns = seed % 5 * 3'000;
    ASSERT_EQ(timed_fib(10, o).value, 55) << "seed " << seed;
  }
}

// Faults change no result; and they do happen. (So few requests fit into small rings, too.)
TEST(simulation, companions_that_nap_change_times_alone) {
  for (const auto way : all_ways) {
    const auto took = [&](const char* name) {
      gw::options o = on_hosts(8, 4, way);
      o.sim_machine = name;
      const auto [value, ns] = gw::run<std::pair<int, std::uint64_t>>(
          [] {
            const int value = fib(16);
            return std::pair{value, gw::sim::now_ns()};
          },
          o);
      EXPECT_EQ(value, 987) << name << ", way " << static_cast<int>(way);
      return ns;
    };
    const std::uint64_t napping = took("example,nap_ns=100000");
    EXPECT_NE(napping, took("example"));
    EXPECT_EQ(napping, took("example,nap_ns=100000")) << "the same seed gives the same run";
  }
}

TEST(simulation, faults_change_times_alone) {
  for (const auto way : all_ways) {
    gw::options o = on_hosts(5, 3, way, 7, "random");
    const std::uint64_t good_day = timed_fib(12, o).ns;
    for (const char* which : {"delay", "stall", "slow", "spurious", "late", "small", "all"}) {
      o.sim_faults = which;
      const outcome first = timed_fib(12, o);
      EXPECT_EQ(first.value, 144) << which;
      if (std::string_view(which) != "small") {
        EXPECT_NE(first.ns, good_day) << which;
      }
      EXPECT_EQ(first.ns, timed_fib(12, o).ns) << which;
    }
  }
}

TEST(simulation, a_fault_that_there_is_not_is_refused) {
  gw::options o = on_hosts(2, 2, gw::choice::way::server);
  o.sim_faults = "delay,quake";
  try {
    timed_fib(3, o);
    FAIL() << "it was taken";
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("no fault 'quake'"), std::string::npos) << e.what();
  }
}

// A stack that is too large for an answer goes by itself.
int deep(int n, int leaves) {
  char room[2000];
  std::memset(room, n, sizeof room);
  asm volatile("" ::"r"(room) : "memory");
  if (n > 0) {
    const int below = deep(n - 1, leaves);
    return below + (room[7] == n ? 0 : 1'000'000);
  }
  return fib(leaves);
}

TEST(simulation, large_stacks_go_to_other_hosts) {
  for (const auto way : all_ways) {
    const int got = gw::run<int>(
        [] {
          auto a = gw::spawn([] { return deep(20, 14); });
          const int b = deep(25, 14);
          return a.join() + b;
        },
        on_hosts(4, 4, way));
    EXPECT_EQ(got, 2 * 377);
    std::uint64_t bytes = 0;
    for (const gw::worker_stats& s : gw::last_run_stats()) bytes += s.stolen_bytes;
    EXPECT_GT(bytes, 40'000u) << "way " << static_cast<int>(way);
  }
}

// Each host has global memory of its own, and bytes go from one to the other.
TEST(simulation, global_memory_lies_on_all_hosts) {
  for (const auto way : all_ways) {
    const std::string wrong = gw::run<std::string>(
        []() -> std::string {
          constexpr std::size_t n = 40'000;
          const auto p = gw::allocate<std::uint64_t>(n, gw::distribution::blocked());
          for (std::size_t i = 0; i < n; i += 500) gw::put(p + i, i);
          auto other = gw::spawn([p] {
            std::uint64_t bad = 0;
            for (std::size_t i = 0; i < n; i += 500) bad += gw::get(p + i) == i ? 0 : 1;
            return bad;
          });
          gw::sim::charge(1'000'000);
          if (other.join() != 0) return "get";
          if (gw::atomic_fetch_add(p + (n - 1), 3) != 0 || gw::get(p + (n - 1)) != 3) return "add";
          std::vector<std::uint64_t> all(n);
          gw::get(p, all.data(), n);
          for (std::size_t i = 0; i < n; i += 500)
            if (all[i] != i) return "range";
          gw::deallocate(p, n);
          return "";
        },
        on_hosts(4, 4, way));
    EXPECT_EQ(wrong, "") << "way " << static_cast<int>(way);
  }
}

/// A loop that only looks at memory of its own host lets time pass, and others do what it waits for.
TEST(simulation, who_looks_at_global_memory_sees_others_work) {
  for (const std::uint32_t hosts : {1u, 2u}) {
    gw::options o = hosts == 1 ? simulated(2) : on_hosts(2, hosts, gw::choice::way::server);
    o.sim_limit_ms = 1'000;
    const auto looks = gw::run<std::uint64_t>(
        [] {
          gw::global_array<std::uint64_t> flag(1, gw::distribution::local(), 0);
          auto other = gw::spawn_at(gw::worker(1), [at = flag.data()] {
            gw::sim::charge(100'000);
            gw::atomic_store(at, 1);
          });
          std::uint64_t n = 0;
          while (gw::atomic_load(flag.data()) == 0) ++n;
          other.join();
          return n;
        },
        o);
    EXPECT_GT(looks, 100u) << hosts << " hosts: each takes some nanoseconds of 100 us";
  }
}

/// With one worker a host: those of a node share its card, so more has to queue.
TEST(simulation, hosts_of_a_node_share_its_card) {
  const auto with = [](const char* per_node) {
    gw::options o = on_hosts(16, 16, gw::choice::way::rma);
    o.victims = gw::choice::victims::uniform;
    o.sim_machine = std::string("wisteria,gap_ns=5000,hosts_per_node=") + per_node;
    return timed_fib(14, o);
  };
  const outcome alone = with("1"), together = with("16");
  EXPECT_EQ(alone.value, 377);
  EXPECT_EQ(together.value, 377);
  EXPECT_GT(together.ns, alone.ns);
}

TEST(simulation, who_waits_for_ever_on_hosts_is_told) {
  EXPECT_THROW(gw::run<void>(
                   [] {
                     const gw::owned<gw::global_latch> never(1u);
                     never->wait();
                   },
                   on_hosts(4, 2, gw::choice::way::server)),
               gw::run_error);
}

/// More threads on the second host than one answer names, and all wait for a record of the first, which is
/// that of one that waits for them. ID5
TEST(simulation, many_who_poll_for_ever_on_hosts_are_told) {
  gw::options o = on_hosts(2, 2, gw::choice::way::server);
  o.policy = gw::choice::policy::stalling;
  std::string said;
  try {
    gw::run<void>(
        [] {
          static gw::shared_future<int> never;
          never = gw::spawn([]() -> int {
            gw::yield();  // until `never` is there
            return never.get();
          });
          std::vector<gw::future<int>> all;
          for (int i = 0; i < 700; ++i)
            all.push_back(gw::spawn_at(
                gw::worker(1), [](const gw::shared_future<int>& f) { return f.get(); }, never));
          for (auto& f : all) static_cast<void>(f.join());
        },
        o);
  } catch (const gw::run_error& e) {
    said = e.what();
  }
  EXPECT_NE(said.find("deadlock: all 2 workers are idle"), std::string::npos) << said;
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

// As between processes: the frame may be another worker's by then.
TEST(simulation, closures_that_are_sent_refer_to_no_local) {
  const auto out = support::run_child([] {
    gw::options o = on_hosts(4, 2, gw::choice::way::server);
    o.check_frames = true;
    return gw::run<int>(
        [] {
          int local = 1;
          return gw::spawn_at(gw::worker(gw::worker_count() - 1), [&local] { return local; }).join();
        },
        o);
  });
  EXPECT_NE(out.status, 0) << support::show(out);
  EXPECT_TRUE(out.err_has("capture by value")) << support::show(out);
}

TEST(simulation, refuses_what_it_cannot) {
  gw::options o = on_hosts(2, 2, gw::choice::way::server);
  o.policy = gw::choice::policy::iso;
  EXPECT_THROW(gw::run<void>([] {}, o), std::invalid_argument);
  o = simulated(2);
  o.sim_machine = "nowhere";
  EXPECT_THROW(gw::run<void>([] {}, o), std::invalid_argument);
}

}  // namespace
