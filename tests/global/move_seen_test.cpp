// What a run leaves behind about moves of memory: counters and events, exact ones, that agree.
// include/godwit/runtime.hpp, docs/tracing.md. Runs under MPI as well (tests/mpi): there parts travel.
#include "support/schedule.hpp"
#include "trace/trace_reader.hpp"

#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace gw = godwit;

namespace {

using gw::trace::event;
using gw::trace::kind;
using gw::trace::part_of;
using gw::trace::part_result;
using gw::trace::worker_of;

constexpr std::uint64_t page = 4096, words_of_page = page / 8;

/// A run with a trace, and what is left of it. Under MPI the first rank has that.
class seen_run {
 public:
  template <class F>
  seen_run(gw::options o, F f) {
    const std::string file = testing::TempDir() + "godwit_move_seen." + std::to_string(getpid());
    o.trace = file;
    result = gw::run<std::string>([f] { return std::string(f()); }, o);
    if (!gw::is_first_process()) return;
    trace = support::read_trace(file);
    std::filesystem::remove(file);
  }
  std::uint64_t sum(std::uint64_t gw::worker_stats::*counter) const {
    std::uint64_t n = 0;
    for (const gw::worker_stats& s : gw::last_run_stats()) n += s.*counter;
    return n;
  }
  template <class F>
  void each(kind k, F&& f) const {
    for (const auto& [worker, all] : trace.events)
      for (const event& e : all)
        if (e.what == static_cast<std::uint16_t>(k)) f(worker, e);
  }

  std::string result;
  support::trace_contents trace;
};

struct step {
  std::uint32_t from, to;
  bool operator==(const step&) const = default;
};

constexpr std::uint64_t parts = 12, some = 5;

std::string move_there_and_back() {
  const std::uint32_t last = gw::worker_count() - 1;
  gw::distribution how = gw::distribution::cyclic(page);
  const auto p = gw::allocate<std::uint64_t>(parts * words_of_page, how.movable(page));
  for (std::uint64_t i = 0; i < parts; ++i) gw::put(p + i * words_of_page, i);
  gw::move(p, parts * words_of_page, last).join();
  gw::move(p, some * words_of_page, 0).join();
  gw::move(p, some * words_of_page, 0).join();  // they are there
  for (std::uint64_t i = 0; i < parts; ++i)
    if (gw::get(p + i * words_of_page) != i) return "part " + std::to_string(i);
  gw::deallocate(p, parts * words_of_page);
  return std::to_string(gw::worker_count());
}

/// The parts of the only allocation: what they did, in their order.
std::map<std::uint64_t, std::vector<step>> steps_of(const seen_run& run, std::uint64_t allocation) {
  std::map<std::uint64_t, std::multimap<std::uint64_t, step>> by_time;
  std::map<std::uint32_t, std::uint64_t> moves;
  std::uint64_t bytes = 0, came = 0;
  run.each(kind::part, [&](std::uint32_t worker, const event& e) {
    EXPECT_EQ(e.a, allocation);
    const auto how = static_cast<part_result>(e.detail);
    EXPECT_TRUE(how == part_result::came || how == part_result::given) << e.detail;
    EXPECT_EQ(e.bytes, how == part_result::came ? page : 0);
    by_time[part_of(e.b)].emplace(e.time_ns, step{e.other, worker_of(e.b)});
    ++moves[worker];
    came += how == part_result::came ? 1 : 0;
    bytes += e.bytes;
  });
  for (std::uint32_t w = 0; w < gw::last_run_stats().size(); ++w)
    EXPECT_EQ(gw::last_run_stats()[w].moves, moves[w]) << "worker " << w;
  EXPECT_EQ(run.sum(&gw::worker_stats::moved_bytes), bytes);
  std::uint64_t in_waves = 0;
  run.each(kind::moves, [&](std::uint32_t, const event& e) {
    EXPECT_GT(e.duration_ns, 0u);
    EXPECT_EQ(e.bytes, e.other * page);
    in_waves += e.other;
  });
  EXPECT_EQ(in_waves, came);
  std::map<std::uint64_t, std::vector<step>> steps;
  for (const auto& [part, list] : by_time)
    for (const auto& [time, s] : list) steps[part].push_back(s);
  return steps;
}

TEST(MoveSeen, EveryPartThatMovedIsCountedAndInTheTrace) {
  const seen_run run({}, move_there_and_back);
  const auto n = static_cast<std::uint32_t>(std::stoul(run.result));
  if (!gw::is_first_process()) return;
  // Homes: parts 0, n, 2n, ... are worker 0's, and so on.
  std::uint64_t allocation = 0, told = 0, freed = 0;
  run.each(kind::parts, [&](std::uint32_t, const event& e) {
    if (allocation == 0) allocation = e.a;
    EXPECT_EQ(e.a, allocation);
    if (e.other == 0) {
      ++freed;
      return;
    }
    EXPECT_EQ(e.bytes, page);
    for (std::uint64_t i = 0; i < e.other; ++i) EXPECT_EQ(worker_of(e.b), (part_of(e.b) + i) % n);
    told += e.other;
  });
  EXPECT_EQ(told, parts);
  EXPECT_EQ(freed, 1u);
  std::map<std::uint64_t, std::vector<step>> wanted;
  std::uint64_t moves = 0;
  for (std::uint64_t i = 0; i < parts; ++i) {
    const auto home = static_cast<std::uint32_t>(i % n);
    if (home != n - 1) wanted[i].push_back({home, n - 1});
    if (i < some && n > 1) wanted[i].push_back({n - 1, 0});
    if (wanted.contains(i)) moves += wanted[i].size();
  }
  EXPECT_EQ(steps_of(run, allocation), wanted);
  EXPECT_EQ(run.sum(&gw::worker_stats::moves), moves);
  // Perfetto's names of them.
  const bool came = run.sum(&gw::worker_stats::moved_bytes) != 0;
  EXPECT_EQ(run.trace.has_text("part came"), came);
  EXPECT_EQ(run.trace.has_text("moves memory here"), came);
  EXPECT_TRUE(run.trace.has_text("movable memory allocated"));
  EXPECT_TRUE(run.trace.has_text("movable memory freed"));
  // Each part was written and read once, some before they came to where they are.
  std::uint64_t used = 0;
  run.each(kind::heat, [&](std::uint32_t, const event& e) {
    EXPECT_EQ(e.a, allocation);
    EXPECT_EQ(part_of(e.b), used++);
    EXPECT_GE(e.bytes + e.other, 1u);
    EXPECT_LE(e.bytes + e.other, 2u);
    EXPECT_EQ(worker_of(e.b) != gw::trace::no_worker, e.other != 0);
  });
  EXPECT_EQ(used, came ? parts : 0u) << "on one host nobody counts";
  EXPECT_EQ(run.trace.has_text("movable memory used"), came);
  EXPECT_EQ(run.sum(&gw::worker_stats::move_calls), 3u);
  EXPECT_EQ(run.sum(&gw::worker_stats::moves_busy), 0u);
  EXPECT_EQ(run.sum(&gw::worker_stats::moves_no_room), 0u);
}

/// Somebody holds a part that another host wants, while others of his host read it. He looks at words of two
/// hosts: who waits for an answer serves (way am).
std::string wanted_by_all() {
  const auto p =
      gw::allocate<std::uint64_t>(words_of_page, gw::distribution::at(gw::worker_id()).movable(page), page);
  const auto flags = gw::allocate<std::uint64_t>(2, gw::distribution::at(0));
  const auto elsewhere = gw::allocate<std::uint64_t>(1, gw::distribution::at(gw::worker_count() - 1));
  gw::put(elsewhere, 0);
  gw::put(flags, 0);
  gw::put(flags + 1, 0);
  const bool several_hosts = gw::try_local(p) == nullptr;
  auto mover = gw::spawn([=] {
    while (gw::atomic_load(flags) == 0) gw::yield();
    const std::uint32_t n = gw::worker_count(), other_host = (gw::owner_of(p) + n / 2) % n;
    const gw::move_result r = gw::move(p, other_host).join();
    gw::atomic_store(flags + 1, 1);
    return r;
  });
  gw::future<void> readers[2];
  for (auto& r : readers)
    r = gw::spawn([=] {
      while (gw::atomic_load(flags + 1) == 0) {
        static_cast<void>(gw::get(p));
        gw::yield();
      }
    });
  {
    auto held = gw::checkout(p, 1, gw::access::read_write);
    gw::atomic_store(flags, 1);
    for (int i = 0; i < 2000 && gw::atomic_load(flags + 1) + gw::atomic_load(elsewhere) == 0; ++i)
      usleep(200);
    held[0] = 1;
  }
  for (auto& r : readers) r.join();
  const gw::move_result r = mover.join();
  gw::deallocate(p, words_of_page);
  gw::deallocate(flags, 2);
  gw::deallocate(elsewhere, 1);
  return std::string(several_hosts ? "several " : "one ") + (r == gw::move_result::busy ? "busy" : "other");
}

TEST(MoveSeen, WhoWaitsIsCountedAndInTheTrace) {
  std::uint64_t busy = 0, waits = 0;
  bool several_hosts = false;
  // Which worker runs whom is open: until it happened.
  for (int i = 0; i < 30 && (i < 2 || (several_hosts && (busy == 0 || waits == 0))); ++i) {
    const seen_run run(support::schedule(4), wanted_by_all);
    several_hosts = run.result.starts_with("several");
    const bool stayed = run.result.ends_with("busy");
    EXPECT_EQ(run.sum(&gw::worker_stats::moves_busy), stayed ? 1u : 0u);
    if (stayed) {
      EXPECT_GT(run.sum(&gw::worker_stats::move_wait_ns), 0u);
    }
    EXPECT_GE(run.sum(&gw::worker_stats::move_ns), run.sum(&gw::worker_stats::move_wait_ns));
    busy += stayed ? 1 : 0;
    waits += run.sum(&gw::worker_stats::part_waits);
    if (!gw::is_first_process()) continue;
    std::uint64_t events = 0, ns = 0, stayed_events = 0;
    run.each(kind::part_wait, [&](std::uint32_t worker, const event& e) {
      ++events;
      // Who waits for what stays is of its host, and has nobody to ask.
      EXPECT_TRUE(!stayed || gw::last_run_stats()[worker].far_gets == 0) << "worker " << worker;
      ns += e.duration_ns;
    });
    run.each(kind::part, [&](std::uint32_t, const event& e) {
      stayed_events += e.detail == static_cast<std::uint16_t>(part_result::busy) ? 1 : 0;
    });
    EXPECT_EQ(stayed_events, run.sum(&gw::worker_stats::moves_busy));
    EXPECT_EQ(events, run.sum(&gw::worker_stats::part_waits));
    EXPECT_GE(ns, run.sum(&gw::worker_stats::part_wait_ns));
    EXPECT_GE(run.sum(&gw::worker_stats::part_wait_ns), 2'000u * events) << "a nap each, at least";
  }
  if (several_hosts) {
    EXPECT_GT(busy, 0u);
    EXPECT_GT(waits, 0u);
  } else {
    EXPECT_EQ(waits, 0u) << "on one host nothing is on its way";
  }
}

/// A number behind the key @p name, from @p at on, which goes behind it.
std::uint64_t number_at(const std::string& json, std::size_t& at, const std::string& name) {
  at = json.find("\"" + name + "\":", at);
  if (at == std::string::npos) return ~std::uint64_t{0};
  return std::stoull(json.substr(at += name.size() + 3));
}

constexpr std::uint64_t freed_part_puts = 30, left_part_puts = 70;

/// Parts of worker 0 that the root thread uses: one that is freed, and two that nobody frees.
std::string use_and_leave() {
  const auto at_first = gw::distribution::at(0).movable(page);
  const auto freed = gw::allocate<std::uint64_t>(words_of_page, at_first);
  const auto left = gw::allocate<std::uint64_t>(2 * words_of_page, at_first);
  const std::uint32_t last = gw::worker_count() - 1;
  for (std::uint64_t i = 0; i < 10; ++i) gw::put(left + words_of_page, i);
  gw::move(left, words_of_page, last).join();
  for (std::uint64_t i = 0; i < left_part_puts; ++i) gw::put(left, i);
  gw::rebalance(left, words_of_page, {.threshold = 1e9});  // halves what is counted, and moves nothing
  for (std::uint64_t i = 0; i < freed_part_puts; ++i) gw::put(freed, i);
  gw::move(freed, words_of_page, last).join();  // counts begin at zero
  gw::put(freed, std::uint64_t{1});
  gw::put(freed, std::uint64_t{2});
  gw::deallocate(freed, words_of_page);
  return std::to_string(left.address());
}

TEST(MoveSeen, HowOftenPartsWereUsedIsInTheStatisticsAlsoOfWhatNobodyFreed) {
  gw::options o;
  o.stats_json = testing::TempDir() + "godwit_move_heat." + std::to_string(getpid());
  const seen_run run(o, use_and_leave);
  if (!gw::is_first_process()) return;
  std::ifstream in(o.stats_json);
  const std::string json{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(o.stats_json);
  if (run.sum(&gw::worker_stats::moved_bytes) == 0) {
    EXPECT_EQ(json.find("\"heat\""), std::string::npos) << "on one host nobody counts";
    return;
  }
  std::size_t at = json.find("\"heat\"");
  ASSERT_NE(at, std::string::npos) << json;
  const std::uint64_t near = number_at(json, at, "near"), far = number_at(json, at, "far");
  EXPECT_EQ(near + far, 10 + left_part_puts + freed_part_puts + 2) << "each access once: " << json;
  struct used {
    std::uint64_t allocation, part, owner, count;
    auto operator<=>(const used&) const = default;
  };
  std::vector<used> most;
  for (at = json.find("\"used_most\""); json.find("\"allocation\"", at) != std::string::npos;) {
    used u{number_at(json, at, "allocation"), number_at(json, at, "part"), number_at(json, at, "owner"), 0};
    u.count = number_at(json, at, "near");
    u.count += number_at(json, at, "far");
    most.push_back(u);
  }
  const std::uint64_t left = std::stoull(run.result), last = gw::last_run_stats().size() - 1;
  const auto has = [&](std::uint64_t part, std::uint64_t owner, std::uint64_t count) {
    return std::count(most.begin(), most.end(), used{left, part, owner, count});
  };
  EXPECT_EQ(most.size(), 3u) << json;
  EXPECT_EQ(has(0, last, left_part_puts / 2), 1) << json;
  EXPECT_EQ(has(1, 0, 10), 1) << json;
  std::uint64_t of_left = 0;
  run.each(kind::heat, [&](std::uint32_t, const event& e) { of_left += e.a == left ? 1 : 0; });
  EXPECT_EQ(of_left, 2u) << "a trace has what was not freed, too";
}

}  // namespace
