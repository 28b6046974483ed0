// Tests of what a run leaves behind when asked: trace file, table and JSON of counters; also when it fails.
// test: timeout=120 skip-qemu
#include "support/child.hpp"
#include "support/shared.hpp"
#include "trace/trace_reader.hpp"

#include <godwit/godwit.hpp>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

namespace gw = godwit;
using gw::trace::event;
using gw::trace::kind;
using nlohmann::json;
using support::run_child;
using support::show;

[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

struct files {
  std::string folder = testing::TempDir() + "godwit_trace_test." + std::to_string(getpid());
  std::string trace = folder + "/run.trace";
  std::string stats = folder + "/stats \"1\".json";
  files() { std::filesystem::create_directories(folder); }
  ~files() { std::filesystem::remove_all(folder); }
  gw::options options(std::uint32_t workers) const {
    gw::options o;
    o.workers = workers;
    o.trace = trace;
    o.stats_json = stats;
    return o;
  }
  json read_stats() const { return json::parse(std::ifstream(stats)); }
};

std::size_t count(const support::trace_contents& c, kind k) {
  std::size_t n = 0;
  for (const auto& [w, all] : c.events)
    n += static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const event& e) { return e.what == static_cast<std::uint16_t>(k); }));
  return n;
}

/// File, counters and what last_run_stats says must agree.
void expect_agreement(const support::trace_contents& c, const json& stats, std::uint32_t workers) {
  const json info = json::parse(c.info);
  EXPECT_EQ(info.at("workers"), workers);
  EXPECT_EQ(info.at("stats"), stats) << "the same text";
  ASSERT_EQ(stats.at("worker_stats").size(), workers);
  const auto& last = gw::last_run_stats();
  std::uint64_t steals = 0;
  for (std::uint32_t w = 0; w < workers; ++w) {
    const json& s = stats.at("worker_stats").at(w);
    const auto written = s.at("trace_events").get<std::uint64_t>();
    const auto dropped = s.at("trace_dropped").get<std::uint64_t>();
    EXPECT_EQ(info.at("dropped").at(w), dropped);
    EXPECT_EQ(info.at("events").at(w), written - dropped);
    const auto found = c.events.find(w);
    EXPECT_EQ(found == c.events.end() ? 0 : found->second.size(), written - dropped);
    if (last.size() == workers) {
      EXPECT_EQ(s.at("steals"), last[w].steals);
      EXPECT_EQ(s.at("resumes"), last[w].resumes);
      EXPECT_EQ(s.at("stack_high_bytes"), last[w].stack_high_bytes);
    }
    steals += s.at("steals").get<std::uint64_t>();
  }
  EXPECT_EQ(stats.at("totals").at("steals"), steals);
}

TEST(trace, holds_what_the_scheduler_did) {
  const files f;
  testing::internal::CaptureStderr();
  const long result = gw::run<long>([] { return fib(24); }, f.options(4));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(result, 46368);
  EXPECT_NE(said.find("godwit: trace " + f.trace + ": "), std::string::npos) << said;
  const auto c = support::read_trace(f.trace);
  const json stats = f.read_stats();
  expect_agreement(c, stats, 4);
  EXPECT_EQ(count(c, kind::start), 1u);
  EXPECT_EQ(count(c, kind::steal), stats.at("totals").at("steals").get<std::size_t>());
  EXPECT_EQ(count(c, kind::resume), stats.at("totals").at("resumes").get<std::size_t>());
  EXPECT_GE(count(c, kind::end), 1u);
  for (const auto& [w, all] : c.events)
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](auto& a, auto& b) {
      return a.time_ns < b.time_ns;
    })) << w;
}

/// Of the steals, those behind which there is a place in fib.
std::pair<std::size_t, std::size_t> steals_in_fib(const support::trace_contents& c) {
  const auto in_fib = [&](std::uint64_t address) {
    const auto text = c.strings.find(address);
    return text != c.strings.end() && text->second.find("fib") != std::string::npos;
  };
  std::size_t steals = 0, named = 0;
  for (const auto& [w, all] : c.events)
    for (auto e = all.begin(); e != all.end(); ++e) {
      if (e->what != static_cast<std::uint16_t>(kind::steal)) continue;
      ++steals;
      bool found = false;
      for (auto who = e + 1; who != all.end() && who->what == static_cast<std::uint16_t>(kind::callers);
           ++who)
        found |= in_fib(who->a) || in_fib(who->b);
      named += found;
    }
  return {steals, named};
}

TEST(trace, says_behind_each_steal_where_the_thread_had_spawned) {
  const files f;
  std::size_t steals = 0, named = 0;
  for (int n = 24; steals == 0 && n < 40; ++n) {  // a busy machine may let the others come too late
    gw::run<long>([n] { return fib(n); }, f.options(4));
    std::tie(steals, named) = steals_in_fib(support::read_trace(f.trace));
  }
  EXPECT_GE(steals, 1u);
  EXPECT_GE(10 * named, 9 * steals) << "now and then a signal is written down between the two";
}

TEST(trace, of_a_sample_has_these_workers_only_and_says_so) {
  const files f;
  gw::options o = f.options(5);
  o.trace_workers = 2;
  testing::internal::CaptureStderr();
  gw::run<void>([] { gw::on_each_worker([] {}), fib(20); }, o);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(" events of 2 of 5 workers"), std::string::npos) << said;
  const auto c = support::read_trace(f.trace);
  expect_agreement(c, f.read_stats(), 5);
  EXPECT_EQ(json::parse(c.info).at("traced_workers"), 2);
  for (const auto& [w, all] : c.events) EXPECT_TRUE(all.empty() || w == 0 || w == 2) << w;
  EXPECT_FALSE(c.events.at(0).empty());
}

TEST(trace, places_are_those_of_the_program) {
  const files f;
  gw::options o = f.options(2);
  o.force_steal = gw::choice::force_steal::children;  // so that joins are outstanding
  testing::internal::CaptureStderr();
  gw::run<long>([] { return fib(8); }, o);
  testing::internal::GetCapturedStderr();
  const auto c = support::read_trace(f.trace);
  ASSERT_GT(count(c, kind::place), 0u);
  for (const auto& [w, all] : c.events)
    for (const event& e : all) {
      if (e.what != static_cast<std::uint16_t>(kind::place)) continue;
      EXPECT_NE(c.strings.at(e.a).find("trace_test.cpp"), std::string::npos) << c.strings.at(e.a);
      EXPECT_GT(e.other, 0u);
    }
}

TEST(trace, a_small_ring_keeps_the_end_of_the_run_and_says_what_it_dropped) {
  const files f;
  gw::options o = f.options(2);
  o.trace_bytes = 64 << 10;
  o.force_steal = gw::choice::force_steal::children;
  testing::internal::CaptureStderr();
  gw::run<long>([] { return fib(16); }, o);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("oldest dropped (raise --godwit-trace-bytes)"), std::string::npos) << said;
  const auto c = support::read_trace(f.trace);
  const json stats = f.read_stats();
  expect_agreement(c, stats, 2);
  EXPECT_GT(stats.at("totals").at("trace_dropped"), 0);
  EXPECT_GT(stats.at("totals").at("trace_events"), stats.at("totals").at("trace_dropped"));
  EXPECT_TRUE(c.has_text("earlier events dropped"));
}

struct cell {
  std::atomic<int> set{0};
  alignas(gw::shared_future<int>) std::byte handle[sizeof(gw::shared_future<int>)];
};
cell* cell_ = nullptr;

[[gnu::noinline]] int wait_for_oneself() {
  while (cell_->set.load() == 0) gw::yield();
  return reinterpret_cast<gw::shared_future<int>*>(cell_->handle)->get();
}
void deadlock() {
  fib(12);
  gw::shared_future<int> a = gw::spawn([] { return wait_for_oneself(); });
  new (cell_->handle) gw::shared_future<int>(a);
  cell_->set = 1;
  a.get();
}

TEST(trace, is_written_when_the_run_fails) {
  struct {
    const char* name;
    int status;
    void (*root)();
  } const cases[] = {
      {"a worker is killed", 128 + SIGKILL,
       [] {
         fib(12);
         kill(getpid(), SIGKILL);
       }},
      {"deadlock", 70, deadlock},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const files f;
    const support::shared<cell> shared;
    const auto o = run_child([&] {
      cell_ = shared.get();
      char name[] = "program";
      char* argv[] = {name, nullptr};
      return gw::run(1, argv, c.root, f.options(2));
    });
    EXPECT_EQ(o.status, c.status) << show(o);
    EXPECT_TRUE(o.err_has("godwit: trace ")) << show(o);
    const auto contents = support::read_trace(f.trace);
    const json stats = f.read_stats();
    EXPECT_EQ(stats.at("status"), c.status);
    EXPECT_FALSE(stats.at("message").get<std::string>().empty());
    EXPECT_EQ(json::parse(contents.info).at("stats"), stats);
    EXPECT_EQ(count(contents, kind::start), 1u);
  }
}

TEST(trace, is_written_when_the_run_is_interrupted) {
  const files f;
  const std::string going = f.trace + ".going";  // there from the root thread's beginning on
  const auto o = run_child(
      [&] {
        char name[] = "program";
        char* argv[] = {name, nullptr};
        return gw::run(
            1, argv,
            [&going] {
              std::ofstream(going) << "yes";
              for (;;) {
                fib(12);
                std::puts("going");
                std::fflush(stdout);
              }
            },
            f.options(2));
      },
      [&](pid_t pid) {
        while (!std::filesystem::exists(going)) usleep(1000);
        usleep(300'000);
        kill(pid, SIGINT);
      });
  std::filesystem::remove(going);
  EXPECT_EQ(o.status, 130) << o.err;
  EXPECT_EQ(count(support::read_trace(f.trace), kind::start), 1u);
  EXPECT_EQ(f.read_stats().at("status"), 130);
}

TEST(trace, a_file_that_cannot_be_written_is_a_bad_option) {
  for (const char* option : {"--godwit-trace=/no/such/folder/t", "--godwit-stats-json=/no/such/folder/s"}) {
    const auto o = run_child([&] {
      std::string flag = option;
      char name[] = "program";
      char* argv[] = {name, flag.data(), nullptr};
      return gw::run(2, argv, [] { std::puts("the root thread ran"); });
    });
    EXPECT_EQ(o.status, 2) << show(o);
    EXPECT_EQ(o.err_lines(), 1) << show(o);
    EXPECT_TRUE(o.err_has("/no/such/folder/")) << show(o);
    EXPECT_EQ(o.out, "");
  }
}

TEST(trace, of_one_file_with_the_counters_is_a_bad_option) {
  const files f;
  std::filesystem::create_symlink(f.trace, f.folder + "/link");
  for (const std::string& stats : {f.trace, f.folder + "/link"}) {
    const auto o = run_child([&] {
      gw::options opts = f.options(1);
      opts.stats_json = stats;
      return gw::run(
          0, nullptr, [] { std::puts("the root thread ran"); }, opts);
    });
    EXPECT_EQ(o.status, 2) << show(o);
    EXPECT_EQ(o.err_lines(), 1) << show(o);
    EXPECT_TRUE(o.err_has("--godwit-stats-json")) << show(o);
    EXPECT_EQ(o.out, "");
  }
}

TEST(stats, json_to_standard_output_and_the_table) {
  const auto o = run_child([&] {
    std::string words[] = {"program", "--godwit-stats=1", "--godwit-stats-json=-", "--godwit-workers=2"};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
    return gw::run(4, argv, [] { fib(20); });
  });
  ASSERT_EQ(o.status, 0) << show(o);
  const json stats = json::parse(o.out);
  EXPECT_EQ(stats.at("workers"), 2);
  EXPECT_EQ(stats.at("policy"), "greedy");
  EXPECT_EQ(stats.at("options").at("workers"), "2");
  EXPECT_EQ(stats.at("status"), 0);
  EXPECT_GT(stats.at("wall_seconds"), 0);
  for (const char* row : {"worker 0", "worker 1", "spawns", "steals", "latency, us", "outstanding joins",
                          "busy, %", "stack high-water mark"})
    EXPECT_TRUE(o.err_has(row)) << row << "\n" << show(o);
}

TEST(stats, nothing_is_printed_or_written_unasked) {
  const auto o = run_child([&] {
    char name[] = "program";
    char* argv[] = {name, nullptr};
    return gw::run(1, argv, [] { fib(15); });
  });
  EXPECT_EQ(o.status, 0);
  EXPECT_EQ(o.out + o.err, "");
}

}  // namespace
