// Tests of the texts about counters: the table for few and for many workers, totals, derived figures, JSON.
// test: timeout=30
#include "runtime/stats_output.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <sstream>

namespace {

using godwit::worker_stats;
using godwit::runtime::run_facts;

run_facts facts_for(std::size_t workers) {
  run_facts f;
  f.program = "pro\"gram";
  f.arguments = {"-n", "5"};
  f.hosts = {{"here", 0, static_cast<std::uint32_t>(workers)}};
  f.wall_seconds = 1.5;
  for (std::uint64_t w = 0; w < workers; ++w) {
    worker_stats s;
    s.spawns = 1000 * (w + 1);
    s.steals = 10;
    s.steals_timed = s.steals;
    s.steal_ns = 25'000 * (w + 1);
    s.stolen_bytes = 5000;
    s.outstanding_joins = 4;
    s.outstanding_resumed = 2;
    s.outstanding_ns = 7'000;
    s.life_ns = 1'000'000;
    s.idle_no_work_ns = 100'000 * w;
    s.idle_join_ns = 50'000;
    s.work_ns = 800'000;
    s.span_ns = 1000 * w;
    s.stack_high_bytes = 8192 * (w + 1);
    f.stats.push_back(s);
  }
  return f;
}

std::vector<std::string> line_with(const std::string& text, const std::string& title) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("godwit: " + title)) {
      std::istringstream words(line.substr(8 + title.size()));
      std::vector<std::string> out;
      for (std::string w; words >> w;) out.push_back(w);
      return out;
    }
  return {"no line"};
}

using words = std::vector<std::string>;

TEST(stats_table, one_column_per_worker_and_all) {
  const std::string t = stats_table(facts_for(2));
  EXPECT_EQ(line_with(t, "spawns"), (words{"1000", "2000", "3000"}));
  EXPECT_EQ(line_with(t, "  latency, us"), (words{"2.50", "5.00", "3.75"})) << "the mean over all steals";
  EXPECT_EQ(line_with(t, "  stolen stack, bytes"), (words{"500", "500", "500"}));
  EXPECT_EQ(line_with(t, "  ready until resumed, us"), (words{"3.50", "3.50", "3.50"}));
  EXPECT_EQ(line_with(t, "busy, %"), (words{"95.0", "85.0", "90.0"}));
  EXPECT_EQ(line_with(t, "idle, %: no work"), (words{"0.0", "10.0", "5.0"}));
  EXPECT_EQ(line_with(t, "stack high-water mark, KiB"), (words{"8", "16", "16"}))
      << "the largest, not the sum";
  EXPECT_EQ(line_with(t, "far steals"), words{"no line"}) << "left out where there are none";
  EXPECT_EQ(t.find("Tinf"), std::string::npos) << "only with span";
}

TEST(stats_table, what_the_operating_system_kept_is_in_the_verdict) {
  run_facts f = facts_for(2);
  EXPECT_EQ(stats_table(f).find("operating system"), std::string::npos) << "not known";
  for (worker_stats& s : f.stats) s.cpu_ns = 200'000, s.aside_ns = 150'000;
  const std::string t = stats_table(f);
  EXPECT_EQ(line_with(t, "on a CPU, %"), (words{"20.0", "20.0", "20.0"}));
  EXPECT_EQ(line_with(t, "others had its CPU, %"), (words{"15.0", "15.0", "15.0"}));
  EXPECT_NE(t.find("speed-up 0.70 on 2 workers: waits in the operating system for 55 % of the time"),
            std::string::npos)
      << t;
  EXPECT_NE(t.find("; others had the CPUs for 15 %\n"), std::string::npos) << t;
}

TEST(stats_table, many_workers_become_smallest_median_largest) {
  const std::string t = stats_table(facts_for(21));
  EXPECT_EQ(line_with(t, "spawns"), (words{"1000", "11000", "21000", "231000"}));
  EXPECT_NE(t.find("smallest"), std::string::npos);
  std::istringstream in(t);
  for (std::string line; std::getline(in, line);) EXPECT_LE(line.size(), 110u) << line;
}

TEST(stats_table, waits_for_something_else_than_a_join) {
  run_facts f = facts_for(2);
  EXPECT_EQ(line_with(stats_table(f), "idle, %: a wait"), words{"no line"})
      << "left out where there are none";
  f.stats[1].idle_wait_ns = 300'000;
  const std::string t = stats_table(f);
  EXPECT_EQ(line_with(t, "busy, %"), (words{"95.0", "55.0", "75.0"}));
  EXPECT_EQ(line_with(t, "idle, %: a wait"), (words{"0.0", "30.0", "15.0"}));
  EXPECT_NE(stats_json(f).find(R"("idle_wait_fraction":0.15,)"), std::string::npos) << stats_json(f);
}

TEST(stats_table, global_memory_of_other_hosts) {
  run_facts f = facts_for(2);
  EXPECT_EQ(line_with(stats_table(f), "global cache hits"), (words{"no line"})) << "left out on one host";
  f.stats[0].global_hits = 90;
  f.stats[1].global_hits = 10;
  f.stats[1].global_fetches = 5;
  f.stats[1].global_fetched_bytes = 5 * 16384;
  f.stats[1].global_fetch_ns = 2'500'000;
  f.stats[0].global_evictions = 3;
  f.stats[0].far_atomics = 7;
  const std::string t = stats_table(f);
  EXPECT_EQ(line_with(t, "global cache hits"), (words{"90", "10", "100"}));
  EXPECT_EQ(line_with(t, "  fetches"), (words{"0", "5", "5"}));
  EXPECT_EQ(line_with(t, "    KiB"), (words{"0.0", "80.0", "80.0"}));
  EXPECT_EQ(line_with(t, "    time, ms"), (words{"0.00", "2.50", "2.50"}));
  EXPECT_EQ(line_with(t, "  evictions"), (words{"3", "0", "3"}));
  EXPECT_EQ(line_with(t, "  atomics"), (words{"7", "0", "7"}));
  EXPECT_EQ(line_with(t, "  write-backs"), (words{"no line"}));
}

TEST(stats_table, moves_of_memory) {
  run_facts f = facts_for(2);
  EXPECT_EQ(line_with(stats_table(f), "moves of memory"), (words{"no line"}))
      << "left out where there are none";
  f.stats[0].moves = 3;
  f.stats[1].moves = 9;
  f.stats[1].moved_bytes = 8 * 4096;
  f.stats[1].moves_busy = 2;
  f.stats[0].part_waits = 5;
  f.stats[0].part_wait_ns = 1'500'000;
  const std::string t = stats_table(f);
  EXPECT_EQ(line_with(t, "moves of memory, parts"), (words{"3", "9", "12"}));
  EXPECT_EQ(line_with(t, "  KiB, other hosts"), (words{"0.0", "32.0", "32.0"}));
  EXPECT_EQ(line_with(t, "  parts busy"), (words{"0", "2", "2"}));
  EXPECT_EQ(line_with(t, "  parts without room"), (words{"no line"}));
  EXPECT_EQ(line_with(t, "waits for moving parts"), (words{"5", "0", "5"}));
  EXPECT_EQ(line_with(t, "  time, ms"), (words{"1.50", "0.00", "1.50"}));
}

TEST(stats_table, how_movable_memory_was_used) {
  run_facts f = facts_for(2);
  EXPECT_EQ(stats_table(f).find("movable"), std::string::npos) << "left out on one host";
  EXPECT_EQ(stats_json(f).find("heat"), std::string::npos);
  const godwit::gas::used_part here[] = {{0x1000, 1, 10, 3, 0, 1}, {0x1000, 2, 50, 0, 1, ~0u}};
  godwit::gas::heat_sums one{60, 3}, other{1, 4'000'000'000};
  std::copy(std::begin(here), std::end(here), one.used);
  for (std::uint32_t i = 0; i < 8; ++i) other.used[i] = {0x2000, i, 1, 4'000'000'000u - i, 1, 0};
  f.heat.add(one);
  std::string t = stats_table(f);
  EXPECT_NE(t.find("accesses to movable memory: 60 by hosts that had it, 3 by others\n"), std::string::npos);
  EXPECT_EQ(line_with(t, "  global:0x1000, 1"), (words{"0", "10", "3", "1"}));
  EXPECT_EQ(line_with(t, "  global:0x1000, 2"), (words{"1", "50", "0", "-"}));
  EXPECT_NE(stats_json(f).find(R"("heat":{"near":60,"far":3,"used_most":[)"
                               R"({"allocation":4096,"part":1,"owner":0,"near":10,"far":3,"other":1},)"
                               R"({"allocation":4096,"part":2,"owner":1,"near":50,"far":0}]})"),
            std::string::npos)
      << stats_json(f);
  f.heat.add(other);
  t = stats_table(f);
  EXPECT_NE(t.find("61 by hosts that had it, 4000000003 by others\n"), std::string::npos) << t;
  EXPECT_EQ(line_with(t, "  global:0x2000, 7").at(2), "3999999993");
  EXPECT_EQ(line_with(t, "  global:0x1000, 1"), words{"no line"}) << "eight were used more";
  std::istringstream in(t);
  for (std::string line; std::getline(in, line);) EXPECT_LE(line.size(), 110u) << line;
}

TEST(stats_table, work_and_span) {
  run_facts f = facts_for(5);
  f.opts.span = true;
  EXPECT_NE(stats_table(f).find("work T1 4.000 ms, span Tinf 0.004 ms, parallelism T1/Tinf 1000.0"),
            std::string::npos)
      << stats_table(f);
}

TEST(stats_table, ends_with_a_verdict) {
  const std::string t = stats_table(facts_for(4)), last = t.substr(t.rfind('\n', t.size() - 2) + 1);
  EXPECT_EQ(last,
            "godwit: speed-up 3.20 on 4 workers: nothing to steal for 9 % of the time, stealing for 6 %\n");
  EXPECT_EQ(stats_table(run_facts{}).find("speed-up"), std::string::npos) << "nothing is known";
}

TEST(stats_table, a_worker_without_counters_divides_by_nothing) {
  run_facts f = facts_for(1);
  f.stats[0] = {};
  EXPECT_EQ(line_with(stats_table(f), "busy, %"), (words{"-", "-"}));
  EXPECT_EQ(line_with(stats_table(f), "  latency, us"), (words{"-", "-"}));
}

TEST(stats_json, has_every_counter_and_the_run) {
  run_facts f = facts_for(3);
  f.status = 70;
  f.message = "it\nfailed";
  const std::string j = stats_json(f);
  for (const auto& c : godwit::runtime::counter_fields()) {
    const std::string name = "\"" + std::string(c.name) + "\":";
    std::size_t n = 0;
    for (std::size_t at = j.find(name); at != std::string::npos; at = j.find(name, at + 1)) ++n;
    EXPECT_GE(n, 4u) << name << " of three workers and in total";
  }
  for (const char* part :
       {R"("program":"pro\"gram")", R"("arguments":["-n","5"])", R"("workers":3)", R"("status":70)",
        R"("message":"it\u000afailed")", R"("name":"here","first_worker":0,"workers":3)",
        R"("policy":"greedy")", R"("wall_seconds":1.5)", R"("spawns":6000)"})
    EXPECT_NE(j.find(part), std::string::npos) << part << "\n" << j;
}

}  // namespace
