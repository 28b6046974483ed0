// What the operating system kept of the threads' time: whose it was, and what the report says of it.
#include "told.hpp"

#include <gtest/gtest.h>

namespace {

using namespace godwit::report;
using godwit::trace::idle_cause;
using godwit::trace::system_kind;
using report_test::has;
using report_test::told;
using report_test::trace_builder;

constexpr std::uint64_t root = 0x1000, child = 0x2000, ms = 1'000'000;

/// Two workers that have threads for 10 ms. The one that was stolen is `reader`, the other one is what it
/// left.
trace_builder both_busy() {
  trace_builder t(2);
  t.start(0, 0, root);
  t.steal(1, 1000, root, child, 0, 500);
  t.spawned(1, 1000, "reader() (read.cpp:7)");
  return t;
}
void end(trace_builder& t) {
  t.end(0, 10 * ms, child);
  t.end(1, 10 * ms, root);
}

TEST(System, WaitsAreNotBusyAndAreTheVerdict) {
  trace_builder t = both_busy();
  t.system(0, 10 * ms, 10 * ms, 8 * ms, system_kind::waits);
  t.system(1, 10 * ms, 10 * ms, 9 * ms, system_kind::waits);
  end(t);
  const told x(t);
  EXPECT_EQ(x.ns(0, state::blocked), 8 * ms);
  EXPECT_EQ(x.ns(1, state::blocked), 9 * ms);
  EXPECT_LE(x.ns(0, state::busy), 2 * ms);
  EXPECT_EQ(
      x.title(),
      "Speed-up 0.30 on 2 workers: threads waited in the operating system for 85 % of their time, mostly "
      "reader at read.cpp:7.");
}

TEST(System, WorkOfTheKernelHasItsPageFaults) {
  trace_builder t = both_busy();
  for (const std::uint32_t w : {0u, 1u}) t.system(w, 10 * ms, 10 * ms, 4 * ms, system_kind::kernel, 500);
  end(t);
  const told x(t);
  EXPECT_EQ(x.ns(1, state::kernel), 4 * ms);
  EXPECT_EQ(
      x.title(),
      "Speed-up 1.20 on 2 workers: the operating system worked for 40 % of the threads' time (1,000 page "
      "faults), mostly for reader at read.cpp:7.");
}

TEST(System, WhatOthersHadTheCpuForStaysBusyAndIsSaid) {
  trace_builder t = both_busy();
  for (const std::uint32_t w : {0u, 1u}) t.system(w, 10 * ms, 10 * ms, 5 * ms, system_kind::aside);
  end(t);
  const told x(t);
  EXPECT_GE(x.ns(0, state::busy), 9 * ms);
  EXPECT_EQ(
      x.title(),
      "Speed-up 2.00 on 2 workers: nothing stands out. Others had the CPUs for 50 % of the threads' time.");
}

/// A worker waits, and the other one has nothing meanwhile: serial, and why.
TEST(System, StandsBehindWhatExplainsMore) {
  trace_builder t(4);
  t.start(0, 0, root);
  t.system(0, 10 * ms, 10 * ms, 9 * ms, system_kind::waits);
  t.end(0, 10 * ms, root);
  for (const std::uint32_t w : {1u, 2u, 3u}) t.idle(w, 10 * ms, 10 * ms, idle_cause::no_work);
  const told x(t);
  EXPECT_TRUE(has(x.title(), ". Threads waited in the operating system for 90 % of their time, mostly "))
      << x.title();
}

/// The time goes to what ran in it, by how long it did, and none to what was idle.
TEST(System, GoesToWhatRanThen) {
  trace_builder t(1);
  t.start(0, 0, root);
  t.name(0, 0, "short", 0x77);
  t.name(0, 1 * ms, "", 0x77);
  t.name(0, 1 * ms, "long", 0x88);
  t.name(0, 4 * ms, "", 0x88);
  t.system(0, 4 * ms, 4 * ms, 2 * ms, system_kind::waits);
  t.end(0, 4 * ms, root);
  t.idle(0, 14 * ms, 10 * ms, idle_cause::wait);
  const told x(t);
  ASSERT_EQ(x.a.system.names.size(), 2u);
  for (const auto& n : x.a.system.names)
    EXPECT_EQ(n.ns[at(system_kind::waits)], x.a.names[n.name] == "long" ? 3 * ms / 2 : ms / 2)
        << x.a.names[n.name];
}

/// A wait for another host's memory is one in the operating system, too: it counts once.
TEST(System, WaitsForOtherHostsCountOnce) {
  trace_builder t = both_busy();
  for (std::uint64_t i = 1; i <= 10; ++i) t.access(0, i * 900'000, 1, 100'000, "gets.cpp:9");  // 8 each
  t.system(0, 10 * ms, 10 * ms, 9 * ms, system_kind::waits);
  end(t);
  const told x(t);
  EXPECT_EQ(x.ns(0, state::access), 8 * ms);
  EXPECT_EQ(x.ns(0, state::blocked), 1 * ms);
}

/// Of the time before all workers' events begin nothing is counted.
TEST(System, FromBeforeTheEventsOfAllWorkersIsLeftOut) {
  trace_builder t(2);
  t.info["dropped"] = {0, 9};
  t.start(0, 0, root);
  t.system(0, 2 * ms, 2 * ms, 2 * ms, system_kind::waits);
  t.start(1, 5 * ms, child);
  t.end(0, 10 * ms, root);
  t.end(1, 10 * ms, child);
  const told x(t);
  ASSERT_EQ(x.a.whole_from, 5 * ms);
  EXPECT_EQ(x.ns(0, state::blocked), 0u);
  EXPECT_TRUE(x.a.system.names.empty());
}

}  // namespace
