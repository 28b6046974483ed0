// Runs on several simulated hosts: right in every way, the same again with the same seed, late messages and
// faults, global memory, and what is refused.
// test: skip-qemu
#include "sim/simulated_runs.hpp"
#include "support/child.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace simulated_runs;

TEST(simulated_hosts, threads_go_to_other_hosts_whatever_the_way) {
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

TEST(simulated_hosts, the_same_seed_gives_the_same_run_on_hosts) {
  for (const auto way : all_ways) {
    const outcome first = timed_fib(14, on_hosts(6, 3, way, 5, "random"));
    EXPECT_EQ(first.ns, timed_fib(14, on_hosts(6, 3, way, 5, "random")).ns);
    EXPECT_NE(first.ns, timed_fib(14, on_hosts(6, 3, way, 6, "random")).ns);
  }
}

/// Allocated at one host, again and again at the same addresses, and each time divided the other way round;
/// written at the other host, and read by who has each block.
TEST(simulated_hosts, addresses_that_are_used_again_have_new_homes) {
  gw::options o = on_hosts(4, 2, gw::choice::way::server);
  o.global_bytes = 256 << 20;
  const auto wrong = gw::run<int>(
      [] {
        constexpr std::uint64_t block = 8 << 20, blocks = 12, words = block / sizeof(std::uint64_t);
        int wrong = 0;
        for (std::uint32_t round = 0; round < 40; ++round) {
          const auto turned = [round](std::uint64_t b, std::uint64_t, std::uint32_t homes) {
            return static_cast<std::uint32_t>((b + round) % homes);
          };
          const auto at =
              gw::spawn_at(gw::worker(2), [turned] {
                return gw::allocate<std::uint64_t>(blocks * words, gw::distribution::user(block, turned));
              }).join();
          gw::spawn_at(gw::worker(0), [at, round] {
            for (std::uint64_t i = 0; i < blocks * words; i += words / 2) gw::put(at + i, i + round);
          }).join();
          for (std::uint64_t b = 0; b < blocks; ++b) {
            const std::uint32_t home = turned(b, blocks, 4);
            wrong += gw::spawn_at(gw::worker(home), [at, b, home, round] {
                       const auto here = at + b * words;
                       int n = gw::home_of(here) != home;
                       for (std::uint64_t i = b * words; i < (b + 1) * words; i += words / 2)
                         n += gw::get(at + i) != i + round;
                       return n;
                     }).join();
          }
          gw::deallocate(at, blocks * words);
        }
        return wrong;
      },
      o);
  EXPECT_EQ(wrong, 0);
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

TEST(simulated_hosts, every_worker_is_called_once) {
  for (const auto way : all_ways)
    for (const std::uint32_t hosts : {1u, 2u, 3u, 7u, 12u})
      for (const std::uint32_t workers : {12u, 200u}) each_worker_ns(on_hosts(workers, hosts, way, hosts));
  each_worker_ns(simulated(150));  // more than a worker sends letters to
}

/// The call is handed on: eight times as many hosts take three steps more, not eight times as long.
TEST(simulated_hosts, calls_on_every_worker_go_along_a_tree_of_hosts) {
  const auto time = [](std::uint32_t hosts) {
    gw::options o = on_hosts(8 * hosts, hosts, gw::choice::way::server);
    o.sim_machine = "wisteria";
    return each_worker_ns(o);
  };
  const std::uint64_t few = time(8), many = time(64);
  EXPECT_LT(many, 4 * few) << few << " ns on 8 hosts";
}

/// @p k children, each in a frame of its own, of a continuation that others steal meanwhile. Gives back when
/// the last of them had ended for long, and their number.
struct joined {
  std::uint64_t from = 0;
  int children = 0;
};
template <bool Moves>
[[gnu::noinline]] joined children_of_a_chain(int k) {
  if (k == 0) {
    gw::sim::charge(1'000'000);
    return {gw::sim::now_ns()};
  }
  auto spawned = gw::spawn([] {
    gw::sim::charge(50'000);
    return 1;
  });
  if constexpr (Moves) {
    auto moved = std::move(spawned);
    joined j = children_of_a_chain<Moves>(k - 1);
    j.children += moved.join();
    return j;
  } else {
    joined j = children_of_a_chain<Moves>(k - 1);
    j.children += spawned.join();
    return j;
  }
}
template <bool Moves>
std::uint64_t joins_take_ns(const gw::options& o) {
  return gw::run<std::uint64_t>(
      [] {
        const joined j = children_of_a_chain<Moves>(20);
        EXPECT_EQ(j.children, 20);
        return gw::sim::now_ns() - j.from;
      },
      o);
}

/// docs/protocols/join.md, Read along: of those on another host the first one costs a round trip, not each as
/// with futures that have been moved.
TEST(simulated_hosts, results_of_another_host_come_together) {
  for (const auto way : all_ways) {
    if (way == gw::choice::way::am) continue;  // who computes gives nothing away in time
    gw::options o = on_hosts(2, 2, way);
    o.sim_machine = "wisteria";
    const std::uint64_t together = joins_take_ns<false>(o);
    EXPECT_GE(far_steals(), 10u);
    const std::uint64_t one_by_one = joins_take_ns<true>(o);
    EXPECT_LT(2 * together, one_by_one) << "way " << static_cast<int>(way);
  }
}

std::uint64_t wait_began_ns;  // workers of a simulation share a process

// Whichever host the child was of that they waited for.
TEST(simulated_hosts, all_who_waited_are_timed) {
  for (const gw::choice::way way : all_ways) {
    timed_fib(16, on_hosts(16, 16, way));
    std::uint64_t waited = 0, timed = 0;
    for (const gw::worker_stats& s : gw::last_run_stats()) {
      waited += s.outstanding_joins;
      timed += s.outstanding_resumed;
    }
    EXPECT_GT(waited, 0u);
    EXPECT_EQ(timed, waited) << name_of(way);
  }
}

/// Distributed continuation stealing, table II: 20.7 us on WISTERIA. With thieves that meet at a victim ours
/// takes 22.6, and one operation more would take 2.8.
TEST(simulated_hosts, a_steal_word_by_word_takes_what_the_paper_printed) {
  gw::options o = on_hosts(48, 48, gw::choice::way::rma);
  o.sim_machine = "wisteria";
  o.rma_atomics = true;
  o.far_steal = gw::choice::far_steal::words;
  o.victims = gw::choice::victims::uniform;
  timed_fib(22, o);
  std::uint64_t steals = 0, ns = 0;
  for (const gw::worker_stats& s : gw::last_run_stats()) {
    steals += s.far_steals;
    ns += s.far_steal_ns;
  }
  ASSERT_GT(steals, 100u);
  EXPECT_NEAR(static_cast<double>(ns) / static_cast<double>(steals), 22'000, 2'000);
}

/// A thread whose parent is at hand waits for another host's child: it looks, and then says that it waits.
TEST(simulated_hosts, who_waits_for_another_host_takes_two_round_trips) {
  for (const auto way :
       {gw::choice::way::server, gw::choice::way::assist}) {  // all requests take the same there
    gw::options o = on_hosts(2, 2, way);
    o.sim_machine = "wisteria";
    struct times {
      std::uint64_t look, wait;
    };
    const auto took = gw::run<times>(
        [] {
          gw::sim::charge(1'000'000);  // until the other host asks for work
          auto child = gw::spawn([] { gw::sim::charge(5'000'000); });
          EXPECT_EQ(gw::worker_id(), 1u);
          EXPECT_FALSE(child.ready());  // the first request may meet others under way
          const std::uint64_t from = gw::sim::now_ns();
          EXPECT_FALSE(child.ready());
          const std::uint64_t look = gw::sim::now_ns() - from;
          auto waits = gw::spawn([c = std::move(child)]() mutable {
            wait_began_ns = gw::sim::now_ns();
            c.join();
          });
          const std::uint64_t wait = gw::sim::now_ns() - wait_began_ns;
          waits.join();
          return times{look, wait};
        },
        o);
    EXPECT_LT(2 * took.wait, 5 * took.look) << took.wait << " ns, way " << static_cast<int>(way);
  }
}

struct allocation_times {
  std::uint64_t allocate, puts, deallocate;
};

/// Memory on all of 64 hosts, a put to each, and back: hosts are not asked one after the other, as puts are.
TEST(simulated_hosts, hosts_pay_for_an_allocation_at_once) {
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
    // A look at what there is, one at the limit, and the payment; to be forgotten, to ask who still looks, to
    // give the pages back, and the payment.
    EXPECT_LT(took.allocate, 2 * took.puts) << "way " << static_cast<int>(way);
    EXPECT_LT(took.deallocate, 2 * took.puts) << "way " << static_cast<int>(way);
  }
}

TEST(simulated_hosts, slow_networks_take_longer) {
  std::uint64_t ns[2];
  for (const bool slow : {false, true}) {
    const std::string name = testing::TempDir() + "godwit_slow_networks." + std::to_string(getpid());
    std::ofstream(name) << "latency_ns = " << (slow ? 300'000 : 1'000) << "\n";
    gw::options o = on_hosts(8, 8, gw::choice::way::server);
    o.sim_machine = name;
    ns[slow ? 1 : 0] = timed_fib(16, o).ns;
    std::remove(name.c_str());
  }
  EXPECT_GT(ns[1], ns[0] + 300'000);
}

// Messages that are late by chance, forced steals, all ways.
TEST(simulated_hosts, right_under_every_seed_on_hosts) {
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

TEST(simulated_hosts, companions_that_nap_change_times_alone) {
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

// Faults change no result; and they do happen. (So few requests fit into small rings, too.)
TEST(simulated_hosts, faults_change_times_alone) {
  std::map<std::string_view, int> changed;  // in so many ways: a fault may meet nobody whom it delays
  for (const auto way : all_ways) {
    gw::options o = on_hosts(5, 3, way, 7, "random");
    const std::uint64_t good_day = timed_fib(12, o).ns;
    for (const char* which : {"delay", "stall", "slow", "spurious", "late", "small", "all"}) {
      o.sim_faults = which;
      const outcome first = timed_fib(12, o);
      EXPECT_EQ(first.value, 144) << which;
      changed[which] += first.ns != good_day ? 1 : 0;
      EXPECT_EQ(first.ns, timed_fib(12, o).ns) << which;
    }
  }
  for (const auto& [which, ways] : changed)
    if (which != "small") {
      EXPECT_GE(ways, 2) << which;
    }
}

/// 2^depth leaves of 0.4 ms each, within which nobody answers for his memory.
int long_leaves(int depth) {
  if (depth == 0) {
    gw::sim::charge(400'000);
    return 1;
  }
  auto a = gw::spawn([depth] { return long_leaves(depth - 1); });
  const int b = long_leaves(depth - 1);
  return a.join() + b;
}

// Thieves that look at nothing before they lock keep each lock taken: its owner gets it between two of them.
TEST(simulated_hosts, thieves_do_not_keep_an_owner_out) {
  for (const std::uint32_t workers : {14u, 16u, 36u}) {
    gw::options o = on_hosts(workers, workers, gw::choice::way::am);
    o.far_steal = gw::choice::far_steal::words;
    o.empty_check = false;
    o.victims = gw::choice::victims::uniform;
    o.expose_signal = false;
    o.sim_limit_ms = 1'000;  // alone it would take 410
    EXPECT_EQ(gw::run<int>([] { return long_leaves(10); }, o), 1024);
  }
}

TEST(simulated_hosts, who_is_dead_is_named) {
  for (const auto way : all_ways) {
    const support::outcome out = support::run_child([way] {
      gw::options o = on_hosts(5, 3, way, 7);
      o.sim_faults = "crash,delay";
      return timed_fib(25, o).value;
    });
    EXPECT_EQ(out.status, 70) << support::show(out);
    EXPECT_TRUE(out.err_has(" is dead (fault crash")) << support::show(out);
    EXPECT_EQ(out.err.find("godwit:"), out.err.rfind("godwit:")) << "no other reason: " << support::show(out);
  }
}

TEST(simulated_hosts, a_fault_that_there_is_not_is_refused) {
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

TEST(simulated_hosts, large_stacks_go_to_other_hosts) {
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
TEST(simulated_hosts, global_memory_lies_on_all_hosts) {
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

/// As many large pieces as the ring of a simulated worker has entries, and few bytes behind them.
TEST(simulated_hosts, a_large_put_may_end_with_few_bytes) {
  for (const auto way : all_ways) {
    const bool good = gw::run<bool>(
        [] {
          constexpr std::size_t n = (2 << 20) / sizeof(std::uint64_t) + 3;
          const auto p = gw::allocate<std::uint64_t>(4 * n, gw::distribution::blocked());
          std::vector<std::uint64_t> from(n), back(n);
          for (std::size_t i = 0; i < n; ++i) from[i] = i * 3 + 1;
          gw::put(p + 3 * n, from.data(), n);  // at the other host
          gw::get(p + 3 * n, back.data(), n);
          gw::deallocate(p, 4 * n);
          return back == from;
        },
        on_hosts(2, 2, way));
    EXPECT_TRUE(good) << "way " << static_cast<int>(way);
  }
}

/// A loop that only looks at memory of its own host lets time pass, and others do what it waits for.
TEST(simulated_hosts, who_looks_at_global_memory_sees_others_work) {
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
TEST(simulated_hosts, hosts_of_a_node_share_its_card) {
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

TEST(simulated_hosts, who_waits_for_ever_on_hosts_is_told) {
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
TEST(simulated_hosts, many_who_poll_for_ever_on_hosts_are_told) {
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

TEST(simulated_hosts, a_deadlock_says_who_waits_on_other_hosts) {
  for (const gw::choice::way way : all_ways) {
    std::string said;
    try {
      gw::run<void>(
          [] {
            const auto never = gw::global_latch::make(1);
            auto waits = gw::spawn_at(gw::worker(2), [never] { never.wait(); });
            waits.join();
          },
          on_hosts(4, 2, way));
    } catch (const gw::run_error& e) {
      said = e.what();
    }
    for (const char* words :
         {"deadlock: all 4 workers are idle", "outstanding joins: 2", "suspended on worker 2, waits at"})
      EXPECT_NE(said.find(words), std::string::npos) << words << ", not in:\n" << said;
  }
}

// As between processes: the frame may be another worker's by then.
TEST(simulated_hosts, closures_that_are_sent_refer_to_no_local) {
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

}  // namespace
