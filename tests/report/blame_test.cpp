// What ran while workers were idle, what it is called, and what the first sentence makes of it.
#include "told.hpp"

#include <gtest/gtest.h>

namespace {

using namespace godwit::report;
using godwit::trace::idle_cause;
using report_test::told;
using report_test::trace_builder;

constexpr std::uint64_t ms = 1'000'000, root = 0x1000, child = 0x2000;

/// Worker 0 computes for @p alone, then spawns; worker 1 takes the rest, and both end at @p end.
trace_builder serial(std::uint64_t alone, std::uint64_t end) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.idle(1, alone, static_cast<std::uint32_t>(alone), idle_cause::no_work);
  t.steal(1, alone, root, child, 0, 1000);
  t.spawned(1, alone, "read_input(char const*) (serial.cpp:13)");
  t.end(0, end, child);
  t.end(1, end, root);
  return t;
}

TEST(Names, ASpawnNamesWhatCameBeforeAndBothThatFollow) {
  const told x(serial(4 * ms, 8 * ms));
  EXPECT_EQ(x.name(0, 0), "read_input at serial.cpp:13");
  EXPECT_EQ(x.name(0, 1), "read_input at serial.cpp:13");
  EXPECT_EQ(x.name(1, 2), "read_input at serial.cpp:13");
}

TEST(Names, ASpawnThatNobodyTakesNamesWhatCameBefore) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.expose(0, 4 * ms, "read_input(char const*) (serial.cpp:13)");
  t.idle(1, 5 * ms, 5 * ms, idle_cause::no_work);
  t.end(0, 5 * ms, root);
  const told x(t);
  EXPECT_EQ(x.name(0, 0), "read_input at serial.cpp:13");
  EXPECT_NE(x.title().find("serial from 0 ns to 4.00 ms: read_input at serial.cpp:13, before it spawned."),
            std::string::npos)
      << x.title();
}

TEST(Names, AWaitNamesWhatFollows) {
  trace_builder t(1);
  t.strings = {{1, "/src/search.cpp"}, {2, "int visit(node*)"}};
  t.start(0, 0, root);
  t.suspend(0, ms, root, child, 42);
  t.complete(0, ms + 1, child);
  t.resume(0, ms + 10, root, child, 0, 5);
  t.end(0, 2 * ms, root);
  const told x(t);
  EXPECT_EQ(x.name(0, 0), "visit at search.cpp:42") << "for want of a better one";
  EXPECT_EQ(x.name(0, x.a.timeline[0].size() - 1), "visit at search.cpp:42");
}

TEST(Names, WithoutALineOfTheUserTheParentsNameStays) {
  trace_builder t = serial(4 * ms, 8 * ms);
  t.events[1].pop_back();  // its end
  t.idle(0, 9 * ms, ms, idle_cause::no_work);
  t.steal(0, 9 * ms, root, 0x3000, 1, 1000);
  t.spawned(0, 9 * ms, "");  // all frames are the library's
  t.end(0, 10 * ms, root);
  t.end(1, 10 * ms, 0x3000);
  const told x(t);
  EXPECT_EQ(x.name(0, x.a.timeline[0].size() - 1), "read_input at serial.cpp:13");
}

TEST(Names, TheProgramsOwnComeFirst) {
  trace_builder t = serial(4 * ms, 8 * ms);
  t.events[0].clear();
  t.start(0, 0, root);
  t.name(0, ms, "reading", 0x10);
  t.name(0, 5 * ms, "", 0x10);
  t.end(0, 8 * ms, child);
  const told x(t);
  EXPECT_EQ(x.name(0, 0), "read_input at serial.cpp:13");
  EXPECT_EQ(x.name(0, 1), "reading");
  EXPECT_EQ(x.a.timeline[0][1].begin, ms);
  EXPECT_EQ(x.name(0, 2), "reading") << "the child inherits it";
  EXPECT_EQ(x.name(1, 2), "reading");
}

TEST(Blame, ASerialPart) {
  EXPECT_EQ(told(serial(6 * ms, 10 * ms)).title(),
            "Speed-up 1.40 on 2 workers: serial from 0 ns to 6.00 ms: read_input at serial.cpp:13, before it "
            "spawned.");
}

TEST(Blame, NothingStandsOut) {
  EXPECT_EQ(told(serial(ms / 10, 10 * ms)).title(), "Speed-up 1.99 on 2 workers: nothing stands out.");
}

/// Four workers; three have a thread each of @p length.
trace_builder few(std::uint64_t length) {
  trace_builder t(4);
  t.start(0, 0, root);
  for (std::uint32_t w = 1; w < 4; ++w) {
    t.steal(w, w * 1000, root, 0x2000 * w, w - 1, 500);
    t.spawned(w, w * 1000, "main (few.cpp:9)");
  }
  t.suspend(3, 4000, root, 0x2000);
  for (std::uint32_t w = 0; w < 3; ++w) t.end(w, length + w, 0x2000 * (w + 1));
  t.idle(3, length, static_cast<std::uint32_t>(length - 4000), idle_cause::join);
  return t;
}

TEST(Blame, TooFewTasks) {
  EXPECT_EQ(told(few(10 * ms)).title(),
            "Speed-up 3.00 on 4 workers: too few tasks: on average 3.00 of 4 workers had one, mostly main at "
            "few.cpp:9.");
}

/// Rounds of these lengths: the root thread spawns after @p before, and waits while the child runs.
trace_builder rounds(const std::vector<std::uint64_t>& lengths, bool offered = false,
                     std::uint64_t before = 500) {
  trace_builder t(2);
  std::uint64_t now = 0, record = 0x10'000;
  t.start(0, 0, root);
  for (const std::uint64_t length : lengths) {
    record += 8;
    t.steal(1, now + before, root, record, 0, 400);
    t.spawned(1, now + before, "step() (rounds.cpp:5)");
    if (offered) t.expose(0, now + before + 100);
    t.suspend(1, now + before + 100, root, record);
    now += length;
    t.end(0, now, record, true);
    t.resume(0, now + 200, root, record, 1, 100);
    now += 300;
    t.idle(1, now, static_cast<std::uint32_t>(length - 300), idle_cause::join);
  }
  t.end(0, now, root);
  return t;
}

TEST(Blame, TasksThatAreTooFine) {
  EXPECT_EQ(
      told(rounds(std::vector<std::uint64_t>(1000, 3000))).title(),
      "Speed-up 0.97 on 2 workers: tasks too fine: threads left behind by steals ran for 2.90 µs (median "
      "of 1,000), mostly step at rounds.cpp:5.");
}

TEST(Blame, UnevenTasksAreNotOneBigLeaf) {
  std::vector<std::uint64_t> lengths;
  for (int i = 0; i < 10; ++i) lengths.insert(lengths.end(), {ms, ms, 10 * ms});
  EXPECT_EQ(told(rounds(lengths)).title(),
            "Speed-up 1.00 on 2 workers: uneven tasks: step at rounds.cpp:5 ran for up to 10.00 ms.");
  lengths.assign(30, ms);
  lengths.back() = 60 * ms;
  EXPECT_EQ(
      told(rounds(lengths)).title(),
      "Speed-up 1.00 on 2 workers: one big leaf: step at rounds.cpp:5 ran for up to 60.0 ms, 67 % of the "
      "time.");
}

TEST(Blame, UnevenTasksWithLateThievesAreNotSerial) {
  EXPECT_EQ(told(rounds(std::vector<std::uint64_t>(10, 10 * ms), false, 6 * ms)).title(),
            "Speed-up 1.00 on 2 workers: uneven tasks: step at rounds.cpp:5 ran for up to 4.00 ms.");
}

TEST(Blame, WhatThievesCouldHaveTakenIsNobodysFault) {
  EXPECT_EQ(told(rounds({ms, 60 * ms}, true)).title(),
            "Speed-up 1.00 on 2 workers: late joins for 50 % of the time.");
}

TEST(Blame, TheChainNamesWhatItConsistsOf) {
  const told x(serial(6 * ms, 10 * ms));
  const std::vector<chain_part> parts = parts_of_chain(x.a);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].ns, x.a.path.running_ns);
}

}  // namespace
