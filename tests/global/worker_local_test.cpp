// Tests of worker_local: one value per worker, made there, combined in order, ended with the run; on every
// substrate, under every policy, and between hosts (under MPI as well: tests/mpi).
// test: timeout=180 skip-asan
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/sanitizer.hpp"
#include "support/schedule.hpp"
#include "support/substrate.hpp"

#include <atomic>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace gw = godwit;

namespace {

gw::options on(gw::choice::substrate s, std::uint32_t workers, std::uint32_t hosts = 1) {
  gw::options o;
  o.substrate = s;
  o.workers = workers;
  o.sim_hosts = hosts;
  o.sim_machine = "example";
  o.quiet = true;
  return o;
}

constexpr int depth = 9, leaves = 1 << depth;

template <class F>
void each_leaf(int n, F f) {
  if (n == 0) return f();
  gw::invoke([=] { each_leaf(n - 1, f); }, [=] { each_leaf(n - 1, f); });
}

/// A value that says who made it.
struct counted {
  std::uint32_t maker = gw::worker_id();
  std::uint64_t count = 0;
};

gw::worker_local<counted> of_main;  // each worker's process has a copy of the handle

/// Empty: all right.
std::string count_leaves() {
  const gw::worker_local<counted> of_thread;
  each_leaf(depth, [of_thread] {
    ++of_thread->count;
    ++of_main->count;
  });
  std::uint64_t sums[2] = {0, 0};
  int i = 0;
  for (const auto& values : {of_thread, of_main}) {
    const gw::worker_local makers([] { return std::vector<std::uint32_t>(); });
    values.for_each([makers](const counted& c) { makers->push_back(c.maker); });
    // spare workers' values are visited by the first worker
    makers.for_each([](const std::vector<std::uint32_t>& m) {
      if (m[0] != gw::worker_id()) throw std::logic_error("a value of another worker");
    });
    const auto all = makers.combine([](std::vector<std::uint32_t> a, const std::vector<std::uint32_t>& b) {
      a.insert(a.end(), b.begin(), b.end());
      return a;
    });
    if (!all || all->empty()) return "nobody has a value";
    for (std::size_t k = 1; k < all->size(); ++k)
      if ((*all)[k - 1] >= (*all)[k]) return "not in order of the workers, or two of one";
    sums[i++] = values.combine([](counted a, counted b) {
                        return counted{a.maker, a.count + b.count};
                      })
                    ->count;
  }
  if (sums[0] != leaves || sums[1] != leaves)
    return std::to_string(sums[0]) + " and " + std::to_string(sums[1]) + " leaves were counted";
  return "";
}

TEST(WorkerLocal, EveryLeafIsCountedOnce) {
  support::for_each_schedule(
      [](const gw::options& o) { EXPECT_EQ(gw::run<std::string>(count_leaves, o), ""); });
}

TEST(WorkerLocal, OfBool) {
  EXPECT_EQ(gw::run<bool>([] {
              const gw::worker_local<bool> any;
              *any = true;
              return any.combine([](bool a, bool b) { return a || b; }).value();
            }),
            true);
}

TEST(WorkerLocal, OnThreads) {
  EXPECT_EQ(gw::run<std::string>(count_leaves, on(gw::choice::substrate::threads, 3)), "");
}

TEST(WorkerLocal, InASimulation) {
  EXPECT_EQ(gw::run<std::string>(count_leaves, on(gw::choice::substrate::sim, 4)), "");
}

TEST(WorkerLocal, BetweenSimulatedHosts) {
  for (const auto way : {"rma", "am"}) {
    auto o = on(gw::choice::substrate::sim, 6, 3);
    o.way = gw::choice::named{way};
    EXPECT_EQ(gw::run<std::string>(count_leaves, o), "") << way;
  }
}

TEST(WorkerLocal, UnderOtherPolicies) {
  for (const char* policy : {"stalling", "locked_free", "crude"}) {
    gw::options o;
    o.workers = 3;
    o.policy = gw::choice::named{policy};
    EXPECT_EQ(gw::run<std::string>(count_leaves, o), "") << policy;
  }
}

// Whoever waits for the workers goes on at another one.
TEST(WorkerLocal, WithPrivateHeaps) {
  GODWIT_NEEDS_PROCESSES("they have one heap");
  support::for_each_schedule([](gw::options o) {
    o.heap = gw::choice::heap::separate;
    EXPECT_EQ(gw::run<int>(
                  [] {
                    const gw::worker_local<int> counts;
                    each_leaf(depth, [counts] { ++*counts; });
                    counts.for_each([](int& n) { n *= 2; });
                    const std::optional<int> sum = counts.combine(std::plus<>());
                    counts.clear();
                    return counts.combine(std::plus<>()) ? -1 : *sum;
                  },
                  o),
              2 * leaves);
  });
}

std::atomic<int> alive{0}, made{0};  // of this process

struct guarded {
  std::uint32_t home = gw::worker_id();
  std::string text = std::string(100, 'x');
  guarded() { ++alive, ++made; }
  guarded(const guarded&) = delete;
  ~guarded() {
    EXPECT_EQ(home, gw::worker_id()) << "it ends on its worker";
    --alive;
  }
};

TEST(WorkerLocal, ValuesEndWithTheRunOrWhenToldTo) {
  for (const auto where : {gw::choice::substrate::threads, gw::choice::substrate::sim}) {
    alive = made = 0;
    EXPECT_EQ(gw::run(on(where, 3),
                      [] {
                        const gw::worker_local<guarded> values;
                        gw::on_each_worker([values] { *values; });
                        EXPECT_EQ(alive, 3);
                        values.clear();
                        EXPECT_EQ(alive, 0);
                        gw::on_each_worker([values] { *values; });
                      }),
              0);
    EXPECT_EQ(made, 6);
    EXPECT_EQ(alive, 0);
  }
}

TEST(WorkerLocal, ProcessesEndTheirsThemselves) {
  GODWIT_NEEDS_PROCESSES("the report is of workers that are processes");
  if (support::with_asan) GTEST_SKIP() << "a sanitizer's malloc has no such report";
  gw::options o;
  o.workers = 2;
  o.check_heap = true;  // reports what is left
  testing::internal::CaptureStderr();
  EXPECT_EQ(gw::run(o,
                    [] {
                      const gw::worker_local values([] { return std::string(1000, 'v'); });
                      gw::on_each_worker([values] { *values; });
                    }),
            0);
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("1000"), std::string::npos);
}

TEST(WorkerLocal, ManyAtATimeAndOneAfterTheOther) {
  gw::options o = on(gw::choice::substrate::threads, 2);
  EXPECT_EQ(gw::run<int>(
                [] {
                  std::vector<gw::worker_local<int>> all(300);
                  for (int i = 0; i < 300; ++i) *all[static_cast<std::size_t>(i)] = i;
                  for (int i = 0; i < 300; ++i)
                    EXPECT_EQ(*all[static_cast<std::size_t>(i)].combine(std::plus<>()), i);
                  for (int round = 0; round < 100; ++round) {
                    const gw::worker_local one([] { return 7; });
                    EXPECT_FALSE(one.combine(std::plus<>()).has_value()) << "nobody has asked for one";
                    EXPECT_EQ(*one, 7);
                    one.clear();
                  }
                  for (int i = 0; i < 300; ++i)
                    EXPECT_EQ(*all[static_cast<std::size_t>(i)].combine(std::plus<>()), i);
                  return 0;
                },
                o),
            0);
}

TEST(WorkerLocal, WhatAVisitThrowsComesAfterAll) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  const gw::worker_local<int> values, visits;
                  gw::on_each_worker([values] { *values = 1; });
                  try {
                    values.for_each([visits](int&) {
                      ++*visits;
                      throw std::runtime_error("no");
                    });
                  } catch (const std::runtime_error&) {
                    return *visits.combine(std::plus<>());
                  }
                  return 0;
                },
                on(gw::choice::substrate::threads, 3)),
            3);
}

TEST(WorkerLocal, SpareWorkersCountAsWell) {
  gw::options o = on(gw::choice::substrate::threads, 1);
  o.spare_workers = 2;
  EXPECT_EQ(gw::run<std::uint64_t>(
                [] {
                  const gw::worker_local<std::uint64_t> values;
                  std::atomic<bool> ready{false};
                  gw::thread other([&] {  // a spare begins it: the only worker spins
                    *values += 5;
                    ready = true;
                  });
                  while (!ready) {
                  }
                  other.join();
                  gw::on_each_worker([values] { *values += 2; });
                  return *values.combine(std::plus<>());
                },
                o),
            7u);
}

std::vector<gw::worker_local<guarded>> asked_at_end(40);  // more than a table begins with

struct asks_others {
  guarded own;
  ~asks_others() {
    for (const auto& other : asked_at_end) EXPECT_EQ(other->text.size(), 100u);
  }
};

TEST(WorkerLocal, ADestructorMayAskForNewValuesOfOthers) {
  alive = made = 0;
  EXPECT_EQ(gw::run(on(gw::choice::substrate::threads, 2),
                    [] {
                      const gw::worker_local<asks_others> values;
                      gw::on_each_worker([values] { *values; });
                    }),
            0);
  EXPECT_EQ(made, 2 * 41);
  EXPECT_EQ(alive, 0);
}

TEST(WorkerLocal, WhatMakesAValueMustNotWait) {
  const auto root = [] {
    const gw::worker_local values([] {
      gw::yield();  // somebody else asks
      return 1;
    });
    auto other = gw::create([values] { return *values; });
    return *values + other.join();
  };
  EXPECT_DEATH(gw::run<int>(root, on(gw::choice::substrate::threads, 1)),
               "worker 0 has a value of this worker_local already: what makes the values");
}

TEST(WorkerLocal, OutsideOfARunThereIsNone) {
  const gw::worker_local<int> values;
  EXPECT_DEATH(*values = 1, "worker_local was asked for a value outside godwit::run");
}

}  // namespace
