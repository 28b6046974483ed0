// Runs side by side: the numbers of a comparison, what is refused, and the tables.
#include "compare.hpp"
#include "compare_page.hpp"
#include "trace_builder.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace {

using namespace godwit::report;
using nlohmann::json;

struct wanted {
  std::uint32_t workers = 1;
  double life_ms = 100, idle_ms = 0;  ///< of each worker
  double steals = 0;                  ///< of worker 0, 2 us each; every other one was timed
  double work_ms = 0, span_ms = 0;
  const char* program = "/bin/uts";
};
recording counters(const wanted& w) {
  json run = {{"program", w.program}, {"workers", w.workers}, {"cpus", 4}};
  run["arguments"] = {"-t", "1", "--godwit-workers=" + std::to_string(w.workers)};
  json workers = json::array();
  for (std::uint32_t i = 0; i < w.workers; ++i)
    workers.push_back({{"life_ns", w.life_ms * 1e6}, {"idle_no_work_ns", w.idle_ms * 1e6}});
  workers[0]["steals"] = w.steals;
  workers[0]["steals_timed"] = w.steals / 2;
  workers[0]["steal_ns"] = w.steals / 2 * 2000;
  workers[0]["work_ns"] = w.work_ms * 1e6;
  workers[0]["span_ns"] = w.span_ms * 1e6;
  const std::string text = json{{"run", run}, {"workers", workers}}.dump();
  return parse(std::as_bytes(std::span(text)), "test");
}
compared_run run_of(const wanted& w, const std::string& name) { return compared(counters(w), nullptr, name); }
std::string refused(std::vector<compared_run> runs) {
  try {
    compare(std::move(runs));
  } catch (const input_error& e) {
    return e.what();
  }
  return "nothing";
}
std::string text_of(const comparison& c) {
  std::ostringstream out;
  print(out, c);
  return out.str();
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// 1, 2 and 8 workers, given in disorder; T1 = 100 ms, T_inf = 20 ms.
comparison scaling() {
  return compare({run_of({.workers = 8, .life_ms = 40, .idle_ms = 20}, "h"),
                  run_of({.life_ms = 100, .work_ms = 100, .span_ms = 20}, "one"),
                  run_of({.workers = 2, .life_ms = 62.5, .idle_ms = 2.5, .steals = 30}, "two")});
}

TEST(Compare, SpeedUpBoundAndBurden) {
  const comparison c = scaling();
  EXPECT_TRUE(c.scaling);
  ASSERT_EQ(c.runs.size(), 3u);
  EXPECT_EQ(c.runs[0].name, "one");
  EXPECT_EQ(c.runs[2].name, "h");
  EXPECT_DOUBLE_EQ(c.speed_up(0), 1);
  EXPECT_DOUBLE_EQ(c.speed_up(1), 1.6);
  EXPECT_DOUBLE_EQ(c.speed_up(2), 2.5);
  EXPECT_DOUBLE_EQ(c.bound(0), 1) << "workers";
  EXPECT_DOUBLE_EQ(c.bound(1), 2);
  EXPECT_DOUBLE_EQ(c.bound(2), 4) << "CPUs";
  EXPECT_DOUBLE_EQ(c.runs[1].steals, 30);
  EXPECT_DOUBLE_EQ(c.runs[1].steal_ns, 60'000) << "those that were not timed take as long";
  EXPECT_TRUE(has(headline_of(c), "Speed-up 2.50 on 8 workers, of at most 4.00")) << headline_of(c);
  EXPECT_TRUE(has(bound_of(c), "T1/T∞ = 5.00")) << bound_of(c);
}

TEST(Compare, TheSpanBounds) {
  const comparison c =
      compare({run_of({.work_ms = 100, .span_ms = 40}, "a"), run_of({.workers = 4, .life_ms = 60}, "b")});
  EXPECT_DOUBLE_EQ(c.bound(1), 2.5);
  EXPECT_TRUE(has(bound_of(c), "let all do it, or none")) << bound_of(c);
  const auto also = run_of({.workers = 4, .life_ms = 60, .work_ms = 110, .span_ms = 40}, "b");
  EXPECT_FALSE(has(bound_of(compare({c.runs[0], also})), "or none"));
  EXPECT_TRUE(
      has(bound_of(compare({run_of({}, "a"), run_of({.workers = 4}, "b")})), "no run measured the span"));
}

TEST(Compare, WithoutARunOfOneWorker) {
  const comparison c = compare({run_of({.workers = 2, .life_ms = 60, .idle_ms = 10}, "a"),
                                run_of({.workers = 4, .life_ms = 40}, "b")});
  EXPECT_DOUBLE_EQ(c.base_time, 100e6) << "the work of the two";
  EXPECT_DOUBLE_EQ(c.speed_up(1), 2.5);
  EXPECT_TRUE(has(base_of(c), "No run had one worker")) << base_of(c);
}

TEST(Compare, VersionsWithTheSameWorkers) {
  const comparison c =
      compare({run_of({.workers = 2, .life_ms = 60}, "old"), run_of({.workers = 2, .life_ms = 40}, "new")});
  EXPECT_FALSE(c.scaling);
  EXPECT_EQ(c.runs[0].name, "old") << "in the order given";
  EXPECT_DOUBLE_EQ(c.speed_up(1), 1.5);
  EXPECT_EQ(headline_of(c), "new is 1.50 × as fast as old");
  const comparison other = compare({run_of({.life_ms = 40}, "old"), run_of({.life_ms = 60}, "new")});
  EXPECT_EQ(headline_of(other), "No run is faster than old, the first");
}

TEST(Compare, WhatIsRefused) {
  EXPECT_TRUE(has(refused({run_of({}, "a")}), "at least two files"));
  EXPECT_TRUE(has(refused({run_of({}, "a"), run_of({.workers = 2, .program = "fib"}, "b")}),
                  "b: a run of fib, but a is one of uts"));
  EXPECT_TRUE(has(refused({run_of({.workers = 2}, "a"), run_of({}, "b"), run_of({.workers = 2}, "c")}),
                  "a and c: both have 2 workers"));
  EXPECT_EQ(refused({run_of({}, "a"), run_of({.workers = 2, .program = "other/uts"}, "b")}), "nothing");
  recording failed = counters({});
  failed.info["status"] = 3;
  EXPECT_THROW(compared(failed, nullptr, "f"), input_error);
  recording timeless = counters({});
  timeless.stats["workers"][0].erase("life_ns");
  EXPECT_THROW(compared(timeless, nullptr, "t"), input_error);
}

TEST(Compare, DroppedEventsLeaveTheCounters) {
  report_test::trace_builder t(1);
  t.info["program"] = "uts";
  t.info["dropped"] = {7};
  t.info["stats"]["workers"] = {{{"life_ns", 5e6}, {"steals", 3}}};
  t.start(0, 0, 1);
  t.end(0, 1'000'000, 1);
  const std::string file = t.bytes();
  const recording r = parse(std::as_bytes(std::span(file)), "t");
  const analysis a = analyze(r);
  ASSERT_GT(a.dropped, 0u);
  EXPECT_DOUBLE_EQ(compared(r, &a, "t").figures.wall, 5e6);
}

TEST(Compare, Traces) {
  std::vector<compared_run> runs;
  for (const std::uint32_t workers : {1u, 4u}) {
    const std::string file = report_test::simulate({.workers = workers, .events = 5'000, .seed = 3}).bytes();
    const recording r = parse(std::as_bytes(std::span(file)), "t");
    const analysis a = analyze(r);
    runs.push_back(compared(r, &a, std::to_string(workers)));
    EXPECT_DOUBLE_EQ(runs.back().figures.wall, static_cast<double>(a.wall()));
    EXPECT_DOUBLE_EQ(runs.back().steals, static_cast<double>(a.steal_ns.count));
    EXPECT_EQ(runs.back().verdict, explain(figures_of(r, &a), r, &a).front().title);
  }
  EXPECT_GT(compare(runs).runs[1].steal_ns, 0);
}

TEST(Compare, Tables) {
  const std::string text = text_of(scaling());
  EXPECT_TRUE(has(text, "62.5 ms (× 0.62)")) << text;
  EXPECT_TRUE(has(text, "lost to: nothing to run")) << text;
  EXPECT_FALSE(has(text, "lost to: locks")) << "nothing was: " << text;
  EXPECT_TRUE(has(text, "120 ms (× 1.20)")) << "time in threads: " << text;
  EXPECT_TRUE(has(text, "2.00 µs")) << text;
  for (const run_table& t : tables_of(scaling()))
    for (const run_table::row& row : t.rows) EXPECT_EQ(row.cells.size(), 3u) << row.label;
}

TEST(Compare, PageCarriesEverything) {
  std::ostringstream out;
  write_comparison(out, compare({run_of({}, "</script><b>"), run_of({.workers = 2}, "b")}));
  const std::string page = out.str();
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("Licensed to the Apache Software Foundation"), std::string::npos);
}

}  // namespace
