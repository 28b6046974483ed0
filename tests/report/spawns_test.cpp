// Spawns that nobody steals: how many there were, by samples, and when the report calls them too many.
#include "told.hpp"

#include <gtest/gtest.h>

namespace {

using namespace godwit::report;
using godwit::trace::idle_cause;
using report_test::told;
using report_test::trace_builder;

constexpr std::uint64_t root = 0x1000, child = 0x2000, ms = 1'000'000;
constexpr const char* fine = "fib(int) (fib.cpp:7)";
constexpr const char* coarse = "render(int) (picture.cpp:9)";

/// Two workers have threads for 10 ms.
trace_builder both_busy() {
  trace_builder t(2);
  t.start(0, 0, root);
  t.steal(1, 1000, root, child, 0, 500);
  t.spawned(1, 1000, fine);
  return t;
}
void end(trace_builder& t, std::uint64_t at = 10 * ms) {
  t.end(0, at, child);
  t.end(1, at, root);
}

TEST(Spawns, ASampleStandsForTheTimeSinceTheLast) {
  trace_builder t = both_busy();
  t.spawns(0, 4 * ms, 6400, 64, fine);     // 4 ms, 100 ns each
  t.spawns(0, 8 * ms, 64 * ms, 64, fine);  // a sample longer than that: 1 ms each
  end(t);
  const told x(t);
  EXPECT_EQ(x.a.spawns.seen, 128u);
  EXPECT_NEAR(x.a.spawns.spawns, 10.0 / 68 * (40'000 + 64), 50) << "of worker 1 there is none";
  EXPECT_EQ(x.a.names.at(x.a.spawns.most), "fib at fib.cpp:7");
}

TEST(Spawns, TinyThreadsAreTheVerdictAlsoIfNothingIsLost) {
  trace_builder t = both_busy();
  t.spawns(0, 2 * ms, 640, 64, fine);
  t.spawns(1, 3 * ms, 1280, 64, fine);
  end(t);
  EXPECT_EQ(told(t).title(),
            "Speed-up 2.00 on 2 workers: tasks too fine: a spawn for every 13 ns of work, mostly fib at "
            "fib.cpp:7.");
}

TEST(Spawns, MostAreWhereTheyAreClosestInTime) {
  trace_builder t = both_busy();
  t.spawns(0, 2 * ms, 640, 64, fine);
  t.spawns(1, 9 * ms, 64 * 5000, 64, coarse);
  end(t);
  const told x(t);
  EXPECT_EQ(x.a.names.at(x.a.spawns.most), "fib at fib.cpp:7");
}

TEST(Spawns, LargeThreadsAreFine) {
  trace_builder t = both_busy();
  t.spawns(0, 2 * ms, 64 * 1000, 64, coarse);
  t.spawns(1, 3 * ms, 64 * 1000, 64, coarse);
  end(t);
  EXPECT_EQ(told(t).title(), "Speed-up 2.00 on 2 workers: nothing stands out.");
}

TEST(Spawns, AFewSayNothing) {
  trace_builder t = both_busy();
  t.spawns(0, 2 * ms, 200, 20, fine);
  t.spawns(1, 3 * ms, 2 * ms, 0, fine);
  end(t);
  EXPECT_EQ(told(t).title(), "Speed-up 2.00 on 2 workers: nothing stands out.");
}

/// Waits for answers of other hosts do not hide what ran while there was nothing to steal.
TEST(Spawns, ALeafIsSaidWhereWorkersAlsoWaitForOtherHosts) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.idle(1, 4 * ms, 4 * ms, idle_cause::transport);
  t.steal(1, 4 * ms, root, child, 0, 500);
  t.spawned(1, 4 * ms, "render(int) (picture.cpp:9)");
  t.suspend(1, 5 * ms, root, child, 12);
  t.idle(1, 9 * ms, 4 * ms - 1, idle_cause::no_work);
  t.end(0, 9 * ms, child);
  t.resume(1, 9 * ms, root, child, 0, 500);
  t.end(1, 10 * ms, root);
  EXPECT_TRUE(report_test::has(told(t).title(), "render at picture.cpp:9")) << told(t).title();
}

/// Worker 0 reads for 10 ms, then both have tiny threads for 5 ms.
TEST(Spawns, OneLongPieceIsSaidFirst) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.idle(1, 10 * ms, 10 * ms, idle_cause::no_work);
  t.steal(1, 10 * ms, root, child, 0, 500);
  t.spawned(1, 10 * ms, "read_input() (main.cpp:3)");
  t.spawns(0, 11 * ms, 640, 64, fine);
  t.spawns(1, 12 * ms, 640, 64, fine);
  end(t, 15 * ms);
  EXPECT_TRUE(report_test::has(told(t).title(), "serial from 0 ns to 10.00 ms: read_input at main.cpp:3"))
      << told(t).title();
}

}  // namespace
