// The sentences: for each reason of lost time the right one comes first, with the right numbers.
#include "told.hpp"

#include <gtest/gtest.h>

namespace {

using namespace godwit::report;
using godwit::trace::idle_cause;
using report_test::has;
using report_test::told;
using report_test::trace_builder;

constexpr std::uint64_t root = 0x1000, child = 0x2000;

/// Worker 1 is idle for 9 of 10 ms.
trace_builder two(idle_cause cause) {
  trace_builder t(2);
  t.strings = {{1, "dir/search.cpp"}, {2, "visit"}};
  t.start(0, 0, root);
  t.steal(1, 10'000, root, child, 0, 1000);
  if (cause == idle_cause::join)
    t.suspend(1, 1'000'000, root, child, 77);
  else
    t.end(1, 1'000'000, root);
  t.idle(1, 10'000'000, 9'000'000, cause);
  t.end(0, 10'000'000, child);
  return t;
}

TEST(Summary, Headline) {
  const told x(two(idle_cause::no_work));
  EXPECT_NEAR(x.f.speed_up(), 1.099, 1e-3);
  EXPECT_EQ(x.findings[0].title,
            "Speed-up 1.10 on 2 workers: one big leaf: a thread ran for up to 9.99 ms, 100 % of the time.");
  EXPECT_EQ(x.findings[0].advice, "Spawn it first, or divide it.");
  EXPECT_TRUE(has(x.findings[0].text, "In 10.0 ms on average 1.10 of 2 workers")) << x.findings[0].text;
  EXPECT_TRUE(has(x.findings[0].text, "efficiency of 55 %")) << x.findings[0].text;
  EXPECT_TRUE(has(x.findings[0].text, "45 % of the workers' time (9.01 ms of 20.0 ms)"))
      << x.findings[0].text;
}

TEST(Summary, WhoStayedForTheHeapOfItsHost) {
  trace_builder t = two(idle_cause::no_work);
  EXPECT_EQ(told(t).find("stayed"), nullptr);
  t.info["stats"]["totals"] = {{"threads_stayed", 75}};
  t.info["stats"]["stayed_at"] = {{{"place", "work(int) (search.cpp:12)"}, {"count", 63}},
                                  {{"place", "search.cpp:30"}, {"count", 12}}};
  const told x(t);
  const finding* s = x.find("75 threads stayed on their host for its heap");
  ASSERT_NE(s, nullptr);
  EXPECT_TRUE(has(s->text, "at work(int) (search.cpp:12) (63), search.cpp:30 (12).")) << s->text;
}

TEST(Summary, NoWork) {
  const told x(two(idle_cause::no_work));
  ASSERT_NE(x.find("Too little to run: 100 %"), nullptr);
  EXPECT_TRUE(has(x.find("Too little")->text, "at most one worker was busy"));
  EXPECT_EQ(x.find("Outstanding joins"), nullptr);
}

TEST(Summary, JoinsNameThePlace) {
  const told x(two(idle_cause::join));
  const finding* j = x.find("Outstanding joins: 100 %");
  ASSERT_NE(j, nullptr);
  EXPECT_TRUE(has(j->text, "search.cpp:77 (visit), 1 outstanding join.")) << j->text;
  EXPECT_TRUE(has(j->advice, "late")) << j->advice;
  EXPECT_TRUE(has(x.findings[0].text, "search.cpp:77")) << x.findings[0].text;
}

TEST(Summary, ReadyThreadsThatNobodyRuns) {
  trace_builder t = two(idle_cause::join);
  t.events[0].clear();
  t.info["policy"] = "stalling";
  t.start(0, 0, root);
  t.end(0, 2'000'000, child);  // ready for 8 ms, both workers idle
  t.idle(0, 10'000'000, 8'000'000, idle_cause::no_work);
  const told x(t);
  const finding* j = x.find("Ready threads that nobody ran: ");
  ASSERT_NE(j, nullptr);
  EXPECT_TRUE(has(j->text, "could have gone on")) << j->text;
  EXPECT_TRUE(has(j->advice, "policy stalling")) << j->advice;
}

TEST(Summary, Transport) { EXPECT_NE(told(two(idle_cause::transport)).find("Other hosts: 100 %"), nullptr); }

TEST(Summary, Steals) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.steal(1, 900, root, child, 0, 900);
  t.end(1, 1000, root);
  t.end(0, 1000, child);
  EXPECT_NE(told(t).find("Overhead of stealing"), nullptr);
}

TEST(Summary, NothingLost) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.steal(1, 10, root, child, 0, 5);
  t.end(1, 100'000, root);
  t.end(0, 100'000, child);
  const told x(t);
  EXPECT_NE(x.find("Nothing to gain"), nullptr);
  EXPECT_EQ(x.findings[0].title, "Speed-up 2.00 on 2 workers: nothing stands out.");
  EXPECT_EQ(x.findings[0].what, finding::level::good);
}

TEST(Summary, Dropped) {
  trace_builder t = two(idle_cause::no_work);
  t.info["dropped"] = {0, 1234};
  const told x(t);
  const finding* d = x.find("1,234 events were dropped");
  ASSERT_NE(d, nullptr);
  EXPECT_TRUE(has(d->advice, "GODWIT_TRACE_BYTES"));
}

TEST(Summary, FailedRuns) {
  trace_builder t = two(idle_cause::no_work);
  EXPECT_EQ(told(t).find("failed"), nullptr);
  t.info["status"] = 70;
  t.info["message"] = "stack overflow";
  const told x(t);
  ASSERT_NE(x.find("The run failed"), nullptr);
  EXPECT_EQ(x.find("The run failed")->text, "stack overflow (status 70).");
}

TEST(Summary, PlacesWithoutLines) {
  EXPECT_EQ(format_place({.file = "/a/b.cpp", .function = "", .line = 3}), "b.cpp:3");
  EXPECT_EQ(format_place({.file = "godwit::invoke", .function = ""}), "godwit::invoke");
  EXPECT_EQ(format_place({.file = "", .function = ""}), "an unknown place");
}

TEST(Summary, MoreWorkersThanCpus) {
  trace_builder t = two(idle_cause::no_work);
  EXPECT_EQ(told(t).find("CPU"), nullptr);
  t.info["cpus"] = 1;
  EXPECT_NE(told(t).find("2 workers on 1 CPU"), nullptr);
}

TEST(Summary, Sleep) {
  trace_builder t = two(idle_cause::no_work);
  t.sleep(1, 10'000'000, 8'000'000);
  EXPECT_NE(told(t).find("Workers slept for 40 %"), nullptr);
}

TEST(Summary, GlobalMemoryOfOtherHosts) {
  trace_builder t = two(idle_cause::no_work);
  t.info["stats"]["workers"] = {{{"life_ns", 1e8}, {"idle_no_work_ns", 0}},
                                {{"life_ns", 1e8}, {"idle_no_work_ns", 1e8}}};
  EXPECT_EQ(told(t).find("Global memory"), nullptr) << "none was used";
  auto& w = t.info["stats"]["workers"][0];
  w["global_fetch_ns"] = 3e7;
  w["global_write_back_ns"] = 1e7;
  w["global_fetches"] = 100;
  w["global_hits"] = 300;
  const finding* x = nullptr;
  {
    const told few(t);
    x = few.find("Global memory of other hosts took 40 % of the busy time");
    ASSERT_NE(x, nullptr);
    EXPECT_TRUE(has(x->text, "75 % of what they looked for was in the cache")) << x->text;
    EXPECT_TRUE(has(x->advice, "larger ranges")) << x->advice;
  }
  w["global_evictions"] = 50;
  const told many(t);
  x = many.find("Global memory of other hosts");
  ASSERT_NE(x, nullptr);
  EXPECT_TRUE(has(x->advice, "GODWIT_CACHE_BYTES")) << x->advice;
}

TEST(Summary, SpanFromCounters) {
  trace_builder t = two(idle_cause::no_work);
  t.info["stats"]["workers"] = {{{"work_ns", 6e6}, {"span_ns", 1e6}}, {{"work_ns", 4e6}, {"span_ns", 5e6}}};
  const told x(t);
  EXPECT_DOUBLE_EQ(x.f.t1(), 1e7);
  EXPECT_DOUBLE_EQ(x.f.span, 5e6);
  EXPECT_NE(x.find("Parallelism T1/T∞ = 2.00"), nullptr);
}

TEST(Summary, CountersOnly) {
  const told x(std::string(R"({"run": {"program": "p", "seconds": 0.011},
    "workers": [{"life_ns": 10000000, "idle_no_work_ns": 1000000, "steal_ns": 400000},
                {"life_ns": 10000000, "idle_join_ns": 5000000}]})"));
  EXPECT_DOUBLE_EQ(x.f.busy(), 14e6);
  EXPECT_DOUBLE_EQ(x.f.total[static_cast<std::size_t>(state::getting)], 4e5);
  EXPECT_NE(x.find("Outstanding joins: 83 %"), nullptr);
  EXPECT_NE(x.find("Counters only"), nullptr);
  EXPECT_EQ(x.findings[0].title, "Speed-up 1.40 on 2 workers: late joins for 25 % of the time.");
  EXPECT_TRUE(has(told(std::string(R"({"workers": [{}]})")).findings[0].text, "nothing can be concluded"));
}

TEST(Format, Units) {
  EXPECT_EQ(format_time(0), "0 ns");
  EXPECT_EQ(format_time(999), "999 ns");
  EXPECT_EQ(format_time(1500), "1.50 µs");
  EXPECT_EQ(format_time(999'999), "1.00 ms");
  EXPECT_EQ(format_time(123e9), "123 s");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(3 << 20), "3.00 MiB");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-1234), "-1,234");
  EXPECT_EQ(format_count(12), "12");
  EXPECT_EQ(format_percent(0.0004), "< 0.1 %");
  EXPECT_EQ(format_percent(0.5), "50 %");
  EXPECT_EQ(format_percent(0.0321), "3.2 %");
}

}  // namespace
