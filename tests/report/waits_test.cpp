// Threads that wait for something else than a join: who explains the idle workers, the chain through a lock,
// and the first sentence of the report.
#include "told.hpp"
#include "waits.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace godwit::report;
using godwit::trace::idle_cause;
using report_test::has;
using report_test::told;
using report_test::trace_builder;

constexpr std::uint64_t root = 0x1000, child = 0x2000, third = 0x3000;

trace_builder builder(std::uint32_t workers) {
  trace_builder t(workers);
  t.strings = {{1, "dir/search.cpp"}, {2, "visit"}};
  return t;
}

/// The child holds a lock on worker 0 until 8 ms, the root waits for it on worker 1, which then *joins*
/// another thread that waits for the lock, too.
trace_builder one_lock() {
  trace_builder t = builder(2);
  t.start(0, 0, root);
  t.steal(1, 10'000, root, child, 0, 1000);
  t.wait(1, 1'000'000, third, "mutex", 13, true);  // a thread that the root has spawned
  t.suspend(1, 1'100'000, root, third, 77);
  t.wake(0, 8'000'000, third);
  t.idle(1, 8'010'000, 6'910'000, idle_cause::join);
  t.resume(1, 8'010'000, third, 0, 1, 1000);
  t.end(0, 8'100'000, child);
  t.idle(0, 10'000'000, 1'900'000, idle_cause::no_work);
  t.end(1, 9'900'000, third, true);
  t.resume(1, 9'900'500, root, third, 1, 100);
  t.end(1, 10'000'000, root);
  return t;
}

TEST(Waits, WhatTheyAre) {
  EXPECT_EQ(kind_of(""), wait_for::join);
  EXPECT_EQ(kind_of("group"), wait_for::join);
  EXPECT_EQ(kind_of("task_group"), wait_for::join);
  EXPECT_EQ(kind_of("shared mutex (to read)"), wait_for::lock);
  EXPECT_EQ(kind_of("lock of a sync variable"), wait_for::lock);
  EXPECT_EQ(kind_of("global_semaphore"), wait_for::event);
  EXPECT_EQ(kind_of("sync variable to be full"), wait_for::event);
  EXPECT_EQ(kind_of("futex"), wait_for::event) << "godwit-openmp waits so";
  EXPECT_EQ(kind_of("read"), wait_for::outside);
}

TEST(Waits, AThreadThatWaitsForALockExplainsAnIdleWorkerWhateverItsOwnLastThreadDoes) {
  const told x(one_lock());
  EXPECT_EQ(x.a.odd, 0u);
  EXPECT_EQ(x.ns(1, state::join), 9'000u) << "from when the lock was free until it was taken up";
  EXPECT_EQ(x.ns(1, state::lock), 6'900'000u);
  ASSERT_EQ(x.a.places.size(), 2u);
  const waiting_place& p = x.a.places[0];
  EXPECT_EQ(p.what, "mutex");
  EXPECT_EQ(p.line, 13u);
  EXPECT_EQ(p.count, 1u);
  EXPECT_EQ(p.most_at_once, 1u);
  EXPECT_EQ(p.idle_ns, 6'900'000u);
  EXPECT_EQ(p.wait_ns, 7'010'000u);
  EXPECT_EQ(p.ready_ns, 10'000u);
}

TEST(Waits, TheLongestChainGoesThroughTheLock) {
  const told x(one_lock());
  // The root to 9 us, the child to 8 ms, the third to 9.9 ms, the root again.
  EXPECT_EQ(x.a.longest_chain_ns, 8'000'000u + 1'890'000 + 99'500);
  EXPECT_TRUE(x.a.path.complete);
  EXPECT_EQ(x.a.path.joins, 2u);
}

TEST(Waits, TheFirstSentenceNamesTheLockAndItsPlace) {
  const told x(one_lock());
  EXPECT_TRUE(
      has(x.findings[0].title, " on 2 workers: 1 of 1 thread waited at once for a mutex at search.cpp:13."))
      << x.findings[0].title;
  EXPECT_NE(x.find("Locks: 78 % of the lost time"), nullptr);
  EXPECT_EQ(x.find("Outstanding joins"), nullptr);
}

TEST(Waits, WhoHoldsTheLockIsNamedByWhereItLetsGo) {
  trace_builder t = builder(2);
  t.start(0, 0, root);
  t.start(1, 0, child);
  t.wait(1, 100'000, child, "mutex", 13);  // elsewhere, before it held the lock that the root waits for
  t.wake(0, 200'000, child);
  t.idle(1, 200'000, 100'000, idle_cause::wait);
  t.resume(1, 200'000, child, 0, 1, 0);
  t.wait(0, 300'000, root, "mutex", 14);
  t.wake(1, 9'000'000, root);
  t.spawned(1, 9'000'000, "keep(int) (search.cpp:20)");
  t.idle(0, 9'001'000, 8'701'000, idle_cause::wait);
  t.resume(0, 9'001'000, root, 0, 0, 0);
  t.end(0, 10'000'000, root);
  t.end(1, 10'000'000, child);
  const told x(t);
  EXPECT_TRUE(has(x.findings[0].title,
                  "1 of 1 thread waited at once for a mutex at search.cpp:14, held by "
                  "keep at search.cpp:20."))
      << x.findings[0].title;
  const finding* f = x.find("Locks: 100 % of the lost time");
  ASSERT_NE(f, nullptr);
  EXPECT_TRUE(has(f->text,
                  "a mutex at search.cpp:14: 1 wait, 8.70 ms each, up to 1 thread at once, held by keep at "
                  "search.cpp:20."))
      << f->text;
}

/// Both workers' threads sleep for 9 of 10 ms; the second has two that do.
trace_builder asleep() {
  trace_builder t = builder(2);
  t.start(0, 0, root);
  t.start(1, 0, child);
  t.wait(0, 1'000'000, root, "sleep", 9);
  t.wait(1, 1'000'000, child, "sleep", 9);
  for (const std::uint32_t w : {0u, 1u}) {
    t.wake(w, 10'000'000, w == 0 ? root : child);
    t.sleep(w, 10'000'000, 8'000'000);
    t.idle(w, 10'000'000, 9'000'000, idle_cause::wait);
    t.resume(w, 10'000'000, w == 0 ? root : child, 0, w, 0);
    t.end(w, 10'000'000, w == 0 ? root : child);
  }
  return t;
}

TEST(Waits, ThreadsThatOnlySleep) {
  const told x(asleep());
  EXPECT_EQ(x.ns(0, state::outside), 9'000'000u);
  EXPECT_EQ(x.ns(1, state::outside), 9'000'000u);
  EXPECT_TRUE(
      has(x.findings[0].title, ": no thread wanted a CPU for 90 % of the time: sleep at search.cpp:9."))
      << x.findings[0].title;
  EXPECT_EQ(x.find("Workers slept"), nullptr) << "there was nothing to be awake for";
  EXPECT_EQ(x.find("Too little to run"), nullptr);
  // Nobody's work: not on a chain.
  EXPECT_EQ(x.a.longest_chain_ns, 1'000'000u);
  EXPECT_EQ(x.a.path.outside_ns, 9'000'000u);
}

TEST(Waits, ASleepingThreadIsNoExcuseWhileAnotherComputes) {
  trace_builder t = builder(2);
  t.start(0, 0, root);
  t.start(1, 0, child);
  t.wait(1, 1'000'000, child, "sleep", 9);
  t.wake(1, 10'000'000, child);
  t.idle(1, 10'000'000, 9'000'000, idle_cause::wait);
  t.resume(1, 10'000'000, child, 0, 1, 0);
  t.end(1, 10'000'000, child);
  t.end(0, 10'000'000, root);
  const told x(t);
  EXPECT_EQ(x.ns(1, state::outside), 0u);
  EXPECT_EQ(x.ns(1, state::no_work), 9'000'000u);
  EXPECT_NE(x.find("Too little to run: 100 %"), nullptr);
}

TEST(Waits, ForWhatOtherThreadsDo) {
  trace_builder t = builder(2);
  t.start(0, 0, root);
  t.start(1, 0, child);
  t.wait(1, 1'000'000, child, "semaphore", 30);
  t.wake(0, 10'000'000, child);
  t.idle(1, 10'000'000, 9'000'000, idle_cause::wait);
  t.resume(1, 10'000'000, child, 0, 1, 0);
  t.end(1, 10'000'000, child);
  t.end(0, 10'000'000, root);
  const told x(t);
  EXPECT_EQ(x.ns(1, state::event), 9'000'000u);
  EXPECT_TRUE(has(x.findings[0].title, ": 1 of 1 thread waited at once for a semaphore at search.cpp:30."))
      << x.findings[0].title;
  EXPECT_NE(x.find("Waiting for other threads: 100 % of the lost time"), nullptr);
}

TEST(Waits, ThatWereUndoneDoNotCount) {
  trace_builder t = builder(1);
  t.start(0, 0, root);
  t.wait(0, 100'000, root, "mutex", 13);
  t.cancel(0, 110'000, root);
  t.end(0, 1'000'000, root);
  const told x(t);
  EXPECT_EQ(x.ns(0, state::busy), 1'000'000u);
  EXPECT_EQ(x.a.odd, 0u);
}

TEST(Waits, PlacesAreWhoCalledAHeader) {
  trace_builder t = builder(1);
  t.start(0, 0, root);
  t.wait(0, 100'000, root, "mutex", 13);
  t.strings[0xc0de] = "mutexes.cpp:13";
  godwit::trace::event& place = t.events[0].back();
  place.what = static_cast<std::uint16_t>(godwit::trace::kind::callers);
  place.a = 0xbad, place.b = 0xc0de, place.other = 0;  // the first is the library's, and has no text
  t.wake(0, 500'000, root);
  t.resume(0, 500'000, root, 0, 0, 0);
  t.end(0, 1'000'000, root);
  const told x(t);
  ASSERT_EQ(x.a.places.size(), 1u);
  EXPECT_EQ(format_place(x.a.places[0]), "mutexes.cpp:13");
}

TEST(Waits, WaitsThatAreOverAtOnceDoNotPileUp) {
  trace_builder t = builder(1);
  t.start(0, 0, root);
  for (std::uint64_t at = 100'000; at < 1'000'000; at += 100'000) {
    t.wait(0, at, third, "barrier", 13, true);
    t.wake(0, at, third);
    t.suspend(0, at + 1000, root, child, 77);
    t.resume(0, at + 2000, third, 0, 0, 0);
    t.end(0, at + 50'000, child, true);
    t.resume(0, at + 50'000, root, child, 0, 0);
  }
  t.end(0, 1'000'000, root);
  const told x(t);
  const auto& places = x.a.places;
  const auto p = std::find_if(places.begin(), places.end(), [](const auto& q) { return q.line == 13; });
  ASSERT_NE(p, places.end());
  EXPECT_EQ(p->count, 9u);
  EXPECT_LE(p->most_at_once, 1u);
}

/// What a thread waits for has the place in memory that another one had, which was there a moment ago.
TEST(Waits, ARecordThatServesAgainIsNotThereYet) {
  trace_builder t = builder(2);
  t.start(0, 0, root);
  t.steal(1, 10'000, root, child, 0, 100);
  t.suspend(1, 100'000, root, 0x7000, 77);
  t.complete(0, 200'000, 0x7000);
  t.resume(1, 210'000, root, 0x7000, 1, 100);
  t.suspend(1, 220'000, root, 0x7000, 77);
  t.complete(0, 5'000'000, 0x7000);
  t.resume(1, 5'000'000, root, 0x7000, 1, 100);
  t.end(1, 6'000'000, root);
  t.end(0, 6'000'000, child);
  const told x(t);
  ASSERT_EQ(x.a.places.size(), 1u);
  EXPECT_EQ(x.a.places[0].wait_ns, 110'000u + 4'780'000);
  EXPECT_LE(x.a.places[0].ready_ns, 20'000u);
}

TEST(Waits, SingleAccessesToOtherHostsAreNotBusy) {
  trace_builder t = builder(1);
  t.start(0, 0, root);
  for (std::uint64_t i = 1; i <= 100; ++i) t.access(0, i * 100'000, 1, 10'000, "gets.cpp:9");
  t.suspend(0, 10'100'000, root, child, 77);  // its place is another one
  t.idle(0, 10'200'000, 100'000, idle_cause::join);
  t.resume(0, 10'200'000, root, child, 0, 0);
  t.end(0, 10'300'000, root);
  const told x(t);
  EXPECT_EQ(x.ns(0, state::access), 100u * 8 * 10'000);
  EXPECT_EQ(x.ns(0, state::busy), 10'200'000u - 8'000'000);
  ASSERT_EQ(x.a.places.size(), 2u);
  EXPECT_EQ(x.a.places[0].count, 800u);
  EXPECT_EQ(x.a.places[0].owner, 1u);
  EXPECT_EQ(format_place(x.a.places[1]), "search.cpp:77");
  EXPECT_TRUE(has(x.findings[0].title,
                  "800 single gets of memory of worker 1's host at gets.cpp:9 took 78 % of the "
                  "threads' time."))
      << x.findings[0].title;
  const finding* f = x.find("Single accesses to other hosts: 99 % of the lost time");
  ASSERT_NE(f, nullptr);
  EXPECT_TRUE(has(f->text, "at gets.cpp:9, 10.0 µs each.")) << f->text;
}

TEST(Waits, SingleAccessesWhoseOwnerIsNotKnown) {
  trace_builder t = builder(1);
  t.start(0, 0, root);
  t.access(0, 900'000, godwit::report::nothing, 100'000, "gets.cpp:9");
  t.end(0, 1'000'000, root);
  const told x(t);
  EXPECT_TRUE(has(x.findings[0].title, "8 single gets of memory of another host at gets.cpp:9"))
      << x.findings[0].title;
}

TEST(Waits, SingleAccessesInCounters) {
  const std::string file = R"({"godwit": 1, "workers": [
      {"life_ns": 10000000, "far_single_ns": 8000000}]})";
  const recording r = parse(std::as_bytes(std::span(file)), "test");
  const run_figures f = figures_of(r, nullptr);
  EXPECT_DOUBLE_EQ(f.total[static_cast<std::size_t>(state::access)], 8e6);
  EXPECT_DOUBLE_EQ(f.busy(), 2e6);
}

}  // namespace
