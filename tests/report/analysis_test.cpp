// The analysis on schedules made by hand, whose answers are known, and on simulated ones, where sums must
// fit.
#include "analysis.hpp"
#include "trace_builder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace {

using namespace godwit::report;
using godwit::trace::idle_cause;
using report_test::trace_builder;

/// The builder's file must outlive its analysis.
struct analysed {
  std::string file;
  recording r;
  analysis a;
  explicit analysed(const trace_builder& t)
      : file(t.bytes()), r(parse(std::as_bytes(std::span(file)), "test")), a(analyze(r)) {}
  std::uint64_t ns(std::uint32_t w, state s) const { return a.totals[w].ns[static_cast<std::size_t>(s)]; }
};

constexpr std::uint64_t root = 0x1000, child = 0x2000, other = 0x3000;

/// Worker 1 steals the root from worker 0 at 3000, waits for the child at 6000; worker 0 ends the child at
/// 10000.
trace_builder one_steal() {
  trace_builder t(2);
  t.strings = {{1, "/src/a/search.cpp"}, {2, "visit"}};
  t.start(0, 1000, root);
  t.idle(1, 3000, 2000, idle_cause::no_work);
  t.steal(1, 3500, root, child, 0, 500, 512);
  t.suspend(1, 6000, root, child, 42);
  t.end(0, 10000, child, true);
  t.resume(0, 10200, root, child, 0, 200);
  t.end(0, 12000, root);
  t.idle(1, 12000, 6000, idle_cause::join);
  return t;
}

TEST(Analysis, StatesOfWorkers) {
  const analysed x(one_steal());
  EXPECT_EQ(x.a.end, 11000u);
  EXPECT_EQ(x.ns(0, state::busy), 10800u);
  EXPECT_EQ(x.ns(0, state::getting), 200u);
  EXPECT_EQ(x.ns(1, state::no_work), 2000u);
  EXPECT_EQ(x.ns(1, state::getting), 500u);
  EXPECT_EQ(x.ns(1, state::busy), 2500u);
  EXPECT_EQ(x.ns(1, state::join), 6000u);
  EXPECT_EQ(x.a.odd, 0u);
  EXPECT_EQ(x.a.threads, 2u);
}

TEST(Analysis, TimelineNamesTheBottomThread) {
  const analysed x(one_steal());
  const auto& line = x.a.timeline[0];
  ASSERT_EQ(line.size(), 4u);
  EXPECT_EQ(line[0].end, 2000u);  // when the thief took it
  EXPECT_EQ(line[0].begun, gain::start);
  EXPECT_EQ(line[0].ended, loss::stolen);
  EXPECT_EQ(line[1].begun, gain::left);
  EXPECT_EQ(line[1].ended, loss::end_waiter);
  EXPECT_EQ(line[1].end, 9000u);
  EXPECT_EQ(line[2].what, state::getting);
  EXPECT_EQ(line[3].begun, gain::resume);
  EXPECT_EQ(line[3].thread, line[0].thread);
  EXPECT_NE(line[1].thread, line[0].thread);
  EXPECT_EQ(x.a.timeline[1][2].thread, line[0].thread);
  EXPECT_EQ(x.a.timeline[1][2].other, 0u);
}

TEST(Analysis, BusyAndReadyOverTime) {
  const analysed x(one_steal());
  EXPECT_EQ(x.a.busy.at(1000), 1);
  EXPECT_EQ(x.a.busy.at(3000), 2);
  EXPECT_EQ(x.a.busy.at(6000), 1);
  EXPECT_EQ(x.a.busy.at(9100), 0);
  EXPECT_EQ(x.a.busy.at(10000), 1);
  EXPECT_EQ(x.a.ready.at(8999), 0);
  EXPECT_EQ(x.a.ready.at(9000), 1);
  EXPECT_EQ(x.a.ready.at(9200), 0);
  EXPECT_DOUBLE_EQ(x.a.busy.mean(2000, 3000), 1.5);
  EXPECT_EQ(x.a.ns_by_busy, (std::vector<std::uint64_t>{200, 8300, 2500}));
  EXPECT_EQ(x.a.ready_while_idle_ns, 200u);
}

TEST(Analysis, ChainThroughStealAndJoin) {
  const analysed x(one_steal());
  // root to 2000, the child to 9000, the root again from 9200 to 11000.
  EXPECT_EQ(x.a.longest_chain_ns, 10800u);
  EXPECT_TRUE(x.a.path.complete);
  EXPECT_EQ(x.a.path.running_ns, 10800u);
  EXPECT_EQ(x.a.path.ready_ns, 200u);
  EXPECT_EQ(x.a.path.joins, 1u);
  EXPECT_EQ(x.a.path.steals, 0u);
}

TEST(Analysis, ChainOverTheThiefWhenItIsLater) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.steal(1, 150, root, child, 0, 50);  // taken at 100
  t.end(0, 200, child);
  t.idle(0, 1150, 950, idle_cause::no_work);
  t.end(1, 1150, root);
  const analysed x(t);
  EXPECT_EQ(x.a.longest_chain_ns, 1100u);
  EXPECT_EQ(x.a.path.running_ns, 1100u);
  EXPECT_EQ(x.a.path.stealing_ns, 50u);
  EXPECT_EQ(x.a.path.steals, 1u);
  EXPECT_TRUE(x.a.path.complete);
}

TEST(Analysis, PlacesWhereThreadsWaited) {
  const analysed x(one_steal());
  ASSERT_EQ(x.a.places.size(), 1u);
  const waiting_place& p = x.a.places[0];
  EXPECT_EQ(p.file, "/src/a/search.cpp");
  EXPECT_EQ(p.function, "visit");
  EXPECT_EQ(p.line, 42u);
  EXPECT_EQ(p.count, 1u);
  EXPECT_EQ(p.wait_ns, 4200u);
  EXPECT_EQ(p.ready_ns, 200u);
  EXPECT_EQ(p.idle_ns, 6000u);
}

TEST(Analysis, PlacesWhereThreadsStayed) {
  trace_builder t(1);
  t.strings = {{1, "/src/a/search.cpp"}};
  t.start(0, 1000, root);
  for (std::uint64_t i = 0; i < 3; ++i) {
    t.suspend(0, 2000 + 1000 * i, root, 0);
    t.stay(0, 2400 + 1000 * i, root, i == 2 ? 7 : 42);
    t.resume(0, 2500 + 1000 * i, root, 0, 0, 200);
  }
  t.end(0, 9000, root);
  const analysed x(t);
  ASSERT_EQ(x.a.places.size(), 2u);
  EXPECT_EQ(x.a.places[0].line, 42u);
  EXPECT_EQ(x.a.places[0].stays, 2u);
  EXPECT_EQ(x.a.places[1].stays, 1u);
  EXPECT_EQ(x.a.places[0].count, 0u) << "nobody waited there";
  EXPECT_EQ(x.a.odd, 0u);
}

TEST(Analysis, MatrixAndHistograms) {
  const analysed x(one_steal());
  EXPECT_EQ(x.a.from_whom.size, 2u);
  EXPECT_EQ(x.a.from_whom.steals, (std::vector<std::uint64_t>{0, 0, 1, 0}));
  EXPECT_EQ(x.a.from_whom.bytes, (std::vector<std::uint64_t>{0, 0, 512, 0}));
  EXPECT_EQ(x.a.steal_ns.count, 1u);
  EXPECT_EQ(x.a.steal_ns.most, 500u);
  EXPECT_EQ(x.a.ready_ns.most, 200u);
  EXPECT_EQ(x.a.wait_ns.most, 4200u);
  EXPECT_EQ(x.a.run_ns.count, 3u);  // 9000, 2500, 1800
  EXPECT_DOUBLE_EQ(x.a.run_ns.sum, 13300);
}

TEST(Analysis, OverlappingStealsAreAppliedInTheOrderOfTheThreads) {
  trace_builder t(3);
  t.start(0, 0, root);
  t.steal(1, 1000, root, child, 0, 900);  // from far away: begins first, ends last
  t.steal(2, 300, child, other, 0, 100);
  t.end(2, 600, child);
  t.end(0, 700, other);
  t.end(1, 2000, root);
  const analysed x(t);
  const auto& line = x.a.timeline[0];
  ASSERT_GE(line.size(), 3u);
  EXPECT_EQ(line[0].end, 100u);
  EXPECT_EQ(line[1].end, 200u);
  EXPECT_EQ(line[1].thread, x.a.timeline[2][2].thread);
  EXPECT_EQ(line[2].begun, gain::left);
  EXPECT_EQ(x.a.longest_chain_ns, 1100u);
}

TEST(Analysis, LargeMatricesAreGrouped) {
  trace_builder t(300);
  t.start(0, 0, root);
  t.steal(299, 150, root, child, 0, 50);
  t.end(299, 400, root);
  t.end(0, 500, child);
  const analysed x(t);
  EXPECT_EQ(x.a.from_whom.group, 3u);
  EXPECT_EQ(x.a.from_whom.size, 100u);
  EXPECT_EQ(x.a.from_whom.steals[99 * 100 + 0], 1u);
}

TEST(Analysis, CancelledSuspensionChangesNothing) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.steal(1, 150, root, child, 0, 50);
  t.end(0, 290, child);
  t.suspend(1, 300, root, child, 7);
  godwit::trace::event served{};  // while it asked whether to wait
  served.time_ns = 305;
  served.duration_ns = 3;
  served.what = static_cast<std::uint16_t>(godwit::trace::kind::message);
  t.add(1, served);
  t.cancel(1, 310, root);
  t.end(1, 1000, root);
  const analysed x(t);
  EXPECT_EQ(x.ns(1, state::busy), 850u);
  EXPECT_EQ(x.a.totals[1].suspends, 0u);
  EXPECT_EQ(x.a.ready.most(), 0);
  EXPECT_EQ(x.a.odd, 0u);
}

TEST(Analysis, ParentGoesOnInPlace) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.steal(1, 150, root, child, 0, 50);
  t.suspend(1, 300, other, child, 7, true);  // a descendant of root waits; root itself goes on
  t.end(0, 500, child);
  t.resume(0, 520, other, child, 0, 20);
  t.end(0, 700, other);
  t.end(1, 1000, root);
  const analysed x(t);
  EXPECT_EQ(x.ns(1, state::busy), 850u);
  EXPECT_EQ(x.ns(0, state::busy), 500u + 180u);
  EXPECT_EQ(x.a.totals[1].suspends, 1u);
  EXPECT_EQ(x.a.wait_ns.most, 220u);
  EXPECT_EQ(x.a.odd, 0u);
}

TEST(Analysis, SeveralWaitersOfOneRecord) {
  trace_builder t(3);
  t.start(0, 0, root);
  t.steal(1, 120, root, child, 0, 20);
  t.steal(2, 240, root, other, 1, 20);
  t.suspend(1, 300, other, child);
  t.suspend(2, 350, root, child);
  t.end(0, 500, child, true);
  t.resume(0, 510, other, child, 1, 10);
  t.end(0, 600, other);
  t.resume(2, 650, root, child, 2, 10);
  t.end(2, 700, root);
  const analysed x(t);
  EXPECT_EQ(x.a.ready.at(500), 2);
  EXPECT_EQ(x.a.ready.at(520), 1);
  EXPECT_EQ(x.a.ready.at(650), 0);
  EXPECT_EQ(x.a.ready_ns.most, 150u);
  EXPECT_EQ(x.a.odd, 0u);
}

TEST(Analysis, AnswersOfLettersCompleteRecords) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.suspend(0, 100, root, other);
  t.complete(1, 400, other);
  t.resume(0, 460, root, other, 0, 10);
  t.end(0, 500, root);
  const analysed x(t);
  EXPECT_EQ(x.a.ready.at(400), 1);
  EXPECT_EQ(x.a.ready_ns.most, 60u);
}

TEST(Analysis, YieldsAreNoJoins) {
  trace_builder t(1);
  t.start(0, 0, root);
  t.suspend(0, 100, root, 0);
  t.resume(0, 130, root, 0, 0, 30);
  t.end(0, 200, root);
  const analysed x(t);
  EXPECT_EQ(x.a.ready.most(), 0);
  EXPECT_EQ(x.a.wait_ns.count, 0u);
  EXPECT_EQ(x.ns(0, state::busy), 170u);
  EXPECT_EQ(x.a.odd, 0u);
}

TEST(Analysis, IdleEventsMayFollowTheGet) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.steal(1, 1000, root, child, 0, 100);
  t.sleep(1, 800, 300);
  t.idle(1, 900, 400, idle_cause::transport);
  t.end(1, 1500, root);
  t.end(0, 2000, child);
  const analysed x(t);
  EXPECT_EQ(x.ns(1, state::transport), 900u);  // what lies before the idle event belongs to it
  EXPECT_EQ(x.ns(1, state::getting), 100u);
  EXPECT_EQ(x.ns(1, state::busy), 500u);
  EXPECT_EQ(x.a.totals[1].sleep_ns, 300u);
}

TEST(Analysis, TasksOnTopOfAJoin) {
  trace_builder t(2);
  t.start(0, 0, root);
  t.task(0, 250, child, 1, 50, true);  // root waits from 200 on, and goes on at 400
  t.end(0, 400, child);
  t.end(0, 1000, root);
  const analysed x(t);
  EXPECT_EQ(x.ns(0, state::busy), 950u);
  EXPECT_EQ(x.ns(0, state::getting), 50u);
  EXPECT_EQ(x.a.timeline[0][0].end, 200u);
  EXPECT_EQ(x.a.timeline[0].back().thread, x.a.timeline[0][0].thread);
  EXPECT_EQ(x.a.busy.at(999), 1);
  EXPECT_EQ(x.a.odd, 0u);
}

TEST(Analysis, IdleOnTopOfABuriedJoin) {
  trace_builder t(1);
  t.start(0, 0, root);
  t.idle(0, 400, 100, idle_cause::join);
  t.end(0, 1000, root);
  const analysed x(t);
  EXPECT_EQ(x.ns(0, state::busy), 900u);
  EXPECT_EQ(x.ns(0, state::join), 100u);
}

TEST(Analysis, RecordsNameOneThreadAfterAnother) {
  trace_builder t(1);
  t.start(0, 0, root);
  t.end(0, 100, root);
  t.resume(0, 200, root, 0, 0, 10);
  t.end(0, 300, root);
  EXPECT_EQ(analysed(t).a.threads, 2u);
}

TEST(Analysis, WithoutItsStartARunIsCountedFromWhereAllIsKnown) {
  trace_builder t = one_steal();
  t.events[0].erase(t.events[0].begin());  // worker 0's first event is the end of the child at 10000
  t.info["dropped"] = {5, 0};
  const analysed x(t);
  EXPECT_EQ(x.a.dropped, 5u);
  EXPECT_EQ(x.a.whole_from, 9000u);
  EXPECT_EQ(x.a.wall(), 2000u);
  EXPECT_EQ(x.ns(0, state::busy), 1800u);
  EXPECT_EQ(x.ns(0, state::unknown), 0u);
  EXPECT_EQ(x.ns(1, state::join), 2000u);
  EXPECT_EQ(x.a.timeline[0][0].what, state::unknown);
  EXPECT_EQ(x.a.timeline[0][0].end, 9000u);
  EXPECT_FALSE(x.a.path.complete);
  EXPECT_EQ(x.a.odd, 0u);
  EXPECT_EQ(std::accumulate(x.a.ns_by_busy.begin(), x.a.ns_by_busy.end(), std::uint64_t{0}), 2000u);
}

TEST(Analysis, ContradictionsAreCounted) {
  trace_builder t(1);
  t.start(0, 0, root);
  t.end(0, 100, root);
  t.end(0, 200, child);
  t.resume(0, 300, other, child, 0, 10);
  EXPECT_EQ(analysed(t).a.odd, 2u);
}

TEST(Histogram, FewSamplesAreKeptAsTheyAre) {
  histogram h;
  h.add(1003);
  h.add(17);
  EXPECT_EQ(h.samples, (std::vector<std::uint64_t>{1003, 17}));
  for (std::uint64_t i = 0; i < 1000; ++i) h.add(i);
  EXPECT_EQ(h.samples.size(), histogram::few);
}

TEST(Histogram, QuartersOfOctaves) {
  histogram h;
  for (const std::uint64_t v : {0u, 1u, 2u, 1000u, 1023u, 1024u}) h.add(v);
  EXPECT_EQ(h.bins[0], 2u);
  EXPECT_EQ(h.bins[4], 1u);
  EXPECT_EQ(h.bins[39], 2u);
  EXPECT_EQ(h.bins[40], 1u);
  EXPECT_DOUBLE_EQ(histogram::lower_edge(40), 1024);
  histogram even;
  for (std::uint64_t v = 1; v <= 1000; ++v) even.add(v);
  EXPECT_NEAR(even.quantile(0.5), 500, 100);
  EXPECT_NEAR(even.quantile(0.99), 990, 150);
  for (std::uint64_t v = 2; v < 1u << 20; v = v * 5 / 4 + 1) {
    histogram one;
    one.add(v);
    for (std::size_t i = 0; i < one.bins.size(); ++i)
      if (one.bins[i] > 0) {
        EXPECT_LE(histogram::lower_edge(i), static_cast<double>(v) * (1 + 1e-12));
        EXPECT_GT(histogram::lower_edge(i + 1), static_cast<double>(v) * (1 - 1e-12));
      }
  }
}

class Simulated : public testing::TestWithParam<report_test::schedule> {};

TEST_P(Simulated, SumsFit) {
  const analysed x(report_test::simulate(GetParam()));
  const analysis& a = x.a;
  EXPECT_EQ(a.odd, 0u);
  double busy = 0;
  for (std::uint32_t w = 0; w < a.workers; ++w) {
    std::uint64_t at = 0, sum = 0;
    for (const segment& s : a.timeline[w]) {
      ASSERT_EQ(s.begin, at) << "worker " << w;
      ASSERT_GT(s.end, s.begin);
      at = s.end;
      if (s.what == state::busy) busy += static_cast<double>(s.end - s.begin);
    }
    EXPECT_EQ(at, a.end);
    for (const std::uint64_t ns : a.totals[w].ns) sum += ns;
    EXPECT_EQ(sum, a.end);
  }
  EXPECT_DOUBLE_EQ(busy, static_cast<double>(a.sum(state::busy)));
  double by_level = 0;
  for (std::size_t n = 0; n < a.ns_by_busy.size(); ++n) by_level += static_cast<double>(n * a.ns_by_busy[n]);
  EXPECT_NEAR(by_level, busy, busy * 1e-9);
  EXPECT_NEAR(a.busy.mean(0, a.end) * static_cast<double>(a.end), busy, busy * 1e-6);
  EXPECT_TRUE(a.path.complete);
  const auto first = std::find_if(a.timeline[0].begin(), a.timeline[0].end(),
                                  [](const segment& s) { return s.what == state::busy; });
  EXPECT_EQ(a.path.running_ns + a.path.stealing_ns + a.path.ready_ns, a.end - first->begin);
  EXPECT_GE(a.longest_chain_ns, a.path.running_ns);
  EXPECT_LE(a.longest_chain_ns, a.end);
  std::uint64_t steals = 0, stolen = 0;
  for (const auto& list : a.timeline)
    for (const segment& s : list) stolen += s.ended == loss::stolen ? 1 : 0;
  for (const std::uint64_t n : a.from_whom.steals) steals += n;
  EXPECT_EQ(steals, a.steal_ns.count + a.far_steal_ns.count);
  EXPECT_LE(stolen, steals);  // but for those of threads that had not run for a nanosecond
  EXPECT_GE(stolen, steals - steals / 100);
  EXPECT_EQ(a.ready.list().empty() ? 0 : a.ready.list().back().value, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, Simulated,
    testing::Values(report_test::schedule{.workers = 2, .events = 5000},
                    report_test::schedule{.workers = 7, .events = 20'000, .seed = 3},
                    report_test::schedule{.workers = 4, .events = 20'000, .greedy = false},
                    report_test::schedule{.workers = 16, .events = 30'000, .hosts = 2, .seed = 9}));

}  // namespace
