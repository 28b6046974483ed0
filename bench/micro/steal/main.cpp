// steal: how long does a steal take? Two workers play ping-pong with one thread.
//
// The thread pushes its continuation (stamp), spawns a child, and the child waits until the continuation has
// started at the other worker (stamp): the difference is one steal, from push to the first instruction at
// the thief. Then the child ends, the thread goes on at the thief, and steals go the other way. Padding in
// the thread's frame sets how many bytes travel; how many did is taken from the scheduler's counters. The
// breakdown measures the pieces alone, outside the runtime: a cache line there, and copying as many bytes
// that are dirty in the other core.

#include <alloca.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

#include "../../common/godwit_run.hpp"
#include "../../common/shared_page.hpp"

namespace {

constexpr int most_rounds = 1 << 16;
constexpr unsigned most_bytes = 1 << 16;  ///< of a stolen stack
constexpr int excluded = 16;              ///< first steals: cold caches, pages touched for the first time

struct board {
  alignas(64) std::atomic<std::uint64_t> arrived;  ///< W thief: this round's continuation runs. R child
  alignas(64) std::uint32_t latency[most_rounds];  ///< ticks. W whoever runs the thread
  std::uint32_t moved;                             ///< rounds that went on at another worker
};

/// The thread that is stolen again and again. @p settle: ticks that the other worker gets to start stealing.
[[gnu::noinline]] void ping_pong(board* b, int rounds, std::size_t padding, std::uint64_t settle) {
  auto* const pad = static_cast<volatile char*>(alloca(padding + 16));
  for (int i = 1; i <= rounds; ++i) {
    // Longer by up to a quarter, by turns: else all steals would meet the thief at the same point of its
    // turn.
    const std::uint64_t wait =
        settle + settle / 4 * (static_cast<std::uint64_t>(i) * 2654435769 % 1024) / 1024;
    for (const std::uint64_t from = bench::ticks(); bench::ticks() - from < wait;) bench::relax();
    for (std::size_t at = 0; at < padding; at += 64) pad[at] = static_cast<char>(i);  // dirty in this core
    const std::uint32_t pushed_by = godwit::worker_id();
    const std::uint64_t pushed = bench::ticks();
    auto child = godwit::spawn([b, i] {
      while (b->arrived.load(std::memory_order_acquire) != static_cast<std::uint64_t>(i)) bench::relax();
    });
    const std::uint64_t started = bench::ticks();
    b->arrived.store(static_cast<std::uint64_t>(i), std::memory_order_release);
    b->latency[i - 1] = static_cast<std::uint32_t>(started - pushed);
    b->moved += godwit::worker_id() != pushed_by;
    while (!child.ready()) bench::relax();  // so that join need not suspend: only steals move this thread
    child.join();
  }
}

struct outcome {
  std::vector<double> ns;
  double stolen_bytes = 0;
  std::uint32_t moved = 0;
  int rounds = 0;
};

/// The first steals of a run count from @p from on.
outcome measure_steals(int rounds, std::size_t padding, double ticks_per_ns, int from = excluded) {
  bench::shared_page<board> page;
  board* const b = page.get();
  const auto settle = static_cast<std::uint64_t>(5000 * ticks_per_ns);
  const auto one = bench::run_godwit(2, [=] {
                     // A thread of its own: root's frames do not travel with it.
                     godwit::spawn([=] { ping_pong(b, rounds, padding, settle); }).join();
                     return 0;
                   }).second;
  outcome o;
  for (int i = from; i < rounds; ++i) o.ns.push_back(b->latency[i] / ticks_per_ns);
  o.stolen_bytes = one.counts.steals == 0 ? 0
                                          : static_cast<double>(one.counts.stolen_bytes) /
                                                static_cast<double>(one.counts.steals);
  o.moved = b->moved;
  o.rounds = rounds;
  return o;
}

constexpr int rare_rounds = 20;

/// Runs with few steals, each the first to touch much of what it needs. Gives back the mean over a run's
/// steals of the first deciles over runs: a mean, as the first touches are those of the first steals;
/// deciles, as a thief that has lost its CPU comes late.
double measure_rare_steals(bench::program& program, double ticks_per_ns) {
  std::vector<std::vector<double>> us(rare_rounds);
  for (int run = 0; run < 8 * program.options().reps; ++run) {
    const outcome o = measure_steals(rare_rounds, 0, ticks_per_ns, 0);
    for (int i = 0; i < rare_rounds; ++i)
      us[static_cast<std::size_t>(i)].push_back(o.ns[static_cast<std::size_t>(i)] / 1e3);
  }
  double sum = 0;
  bench::ordered_json rows = bench::ordered_json::array();
  for (auto& one : us) {
    rows.push_back({{"steal", rows.size() + 1},
                    {"p10_us", bench::quantile(one, 0.1)},
                    {"least_us", bench::quantile(one, 0)}});
    sum += bench::quantile(one, 0.1);
  }
  program.json()["measurements"].push_back({{"title", "steals of a run that has few"}, {"rows", rows}});
  return sum / rare_rounds;
}

/// Two threads of this process, one per core, alternate; gives back the median ns of measured(turn).
struct pair_page {
  alignas(64) std::atomic<std::uint64_t> turn;
  alignas(64) unsigned char bytes[most_bytes];
};

/// One way of a cache line, and of a line plus a copy of @p bytes that the other core just wrote.
std::vector<double> line_times(std::size_t bytes, int rounds, double ticks_per_ns) {
  bench::shared_page<pair_page> page;
  pair_page* const p = page.get();
  unsigned char copy[most_bytes];
  std::vector<double> ns;
  // Even turns: the partner writes and passes on. Odd turns: we copy and pass back.
  std::thread partner([&] {
    for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(rounds); ++r) {
      while (p->turn.load(std::memory_order_acquire) != 2 * r) bench::relax();
      for (std::size_t at = 0; at < bytes; at += 64) p->bytes[at] = static_cast<unsigned char>(r);
      p->turn.store(2 * r + 1, std::memory_order_release);
    }
  });
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(rounds); ++r) {
    while (p->turn.load(std::memory_order_acquire) != 2 * r + 1) bench::relax();
    const std::uint64_t before = bench::ticks_ordered();
    if (bytes != 0) std::memcpy(copy, p->bytes, bytes);
    bench::keep(copy);
    const std::uint64_t after = bench::ticks_ordered();
    ns.push_back(static_cast<double>(after - before) / ticks_per_ns);
    p->turn.store(2 * r + 2, std::memory_order_release);
  }
  partner.join();
  return ns;
}

double one_way_ns(int rounds, double ticks_per_ns) {
  bench::shared_page<pair_page> page;
  pair_page* const p = page.get();
  std::thread partner([&] {
    for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(rounds); ++r) {
      while (p->turn.load(std::memory_order_acquire) != 2 * r + 1) bench::relax();
      p->turn.store(2 * r + 2, std::memory_order_release);
    }
  });
  std::vector<double> ns;
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(rounds); ++r) {
    const std::uint64_t before = bench::ticks();
    p->turn.store(2 * r + 1, std::memory_order_release);
    while (p->turn.load(std::memory_order_acquire) != 2 * r + 2) bench::relax();
    ns.push_back(static_cast<double>(bench::ticks() - before) / ticks_per_ns / 2);
  }
  partner.join();
  return bench::median(ns);
}

double copy_ns(std::size_t bytes, int rounds, double ticks_per_ns) {
  const double with = bench::median(line_times(bytes, rounds, ticks_per_ns));
  return std::max(0.0, with - bench::median(line_times(0, rounds, ticks_per_ns)));
}

/// A thread that yields to another one again and again: each yield suspends one and resumes the other.
[[gnu::noinline]] void take_turns(int rounds, std::size_t padding) {
  auto* const pad = static_cast<volatile char*>(alloca(padding + 16));
  for (int i = 0; i < rounds; ++i) {
    for (std::size_t at = 0; at < padding; at += 64) pad[at] = static_cast<char>(i);
    godwit::yield();
  }
}

struct turns {
  double ticks = 0;  ///< of a suspension and a resumption
  double bytes = 0;  ///< copied out by a suspension
  std::uint64_t suspensions = 0;
};

/// Two threads of one worker, neither of which is ever stolen.
turns measure_turns(int rounds, std::size_t padding) {
  godwit::options o;
  o.workers = 1;
  const auto spent = godwit::run<std::uint64_t>(
      [=] {
        const std::uint64_t from = bench::ticks_ordered();
        auto one = godwit::spawn([=] { take_turns(rounds, padding); });
        auto two = godwit::spawn([=] { take_turns(rounds, padding); });
        two.join();
        one.join();
        return bench::ticks_ordered() - from;
      },
      o);
  turns t;
  std::uint64_t bytes = 0;
  for (const auto& w : godwit::last_run_stats()) t.suspensions += w.suspends, bytes += w.evacuated_bytes;
  if (t.suspensions == 0) return t;
  t.ticks = static_cast<double>(spent) / static_cast<double>(t.suspensions);
  t.bytes = static_cast<double>(bytes) / static_cast<double>(t.suspensions);
  return t;
}

/// The rows of suspending and resuming, with stacks of the sizes that are stolen.
void suspend_and_resume(bench::program& program, const std::vector<unsigned>& sizes, int rounds) {
  std::fprintf(program.out(), "Suspend and resume, one worker\n  %8s %8s %12s %10s\n", "asked B", "copied B",
               "suspensions", "ticks");
  const double base = measure_turns(64, 0).bytes;
  bench::ordered_json rows = bench::ordered_json::array();
  for (const unsigned bytes : sizes) {
    const std::size_t padding =
        bytes > base ? (static_cast<std::size_t>(bytes - base) + 8) & ~std::size_t{15} : 0;
    std::vector<double> ticks;
    turns t;
    for (int rep = 0; rep < program.options().reps; ++rep) {
      t = measure_turns(rounds, padding);
      ticks.push_back(t.ticks);
    }
    if (t.suspensions < static_cast<std::uint64_t>(rounds))
      program.wrong("only " + std::to_string(t.suspensions) + " suspensions in " + std::to_string(rounds) +
                    " turns of two threads");
    std::fprintf(program.out(), "  %8u %8.0f %12llu %10.0f\n", bytes, t.bytes,
                 static_cast<unsigned long long>(t.suspensions), bench::median(ticks));
    rows.push_back({{"asked_bytes", bytes},
                    {"stolen_bytes", t.bytes},
                    {"suspensions", t.suspensions},
                    {"cycles", bench::median(ticks)}});
  }
  program.json()["measurements"].push_back({{"title", "suspend and resume"}, {"rows", rows}});
  program.json()["definitions"]["suspend and resume"] =
      "ticks of the constant-rate counter for a yield that suspends one thread and resumes another";
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("steal", "Steal latency between two workers, by ping-pong.", argc, argv);
  std::vector<unsigned> sizes = {664, 2048, 3055, 16384};
  int rounds = 4000;
  program.option("--bytes", sizes, "Stolen stack sizes (default 664,2048,3055,16384)",
                 bench::between(0, most_bytes));
  program.option("--rounds", rounds, "Steals per repetition and size",
                 bench::between(2 * excluded, most_rounds));
  program.parse();
  if (program.most_workers() < 2) {
    std::fprintf(program.out(), "steal: skipped: it needs two CPUs\n");
    program.json()["skipped"] = "needs two CPUs";
    return program.finish();
  }
  try {
    const double rate = bench::ticks_per_ns();
    const double base = measure_steals(500, 0, rate).stolen_bytes;
    std::vector<std::size_t> padding;
    for (const unsigned bytes : sizes)
      padding.push_back(bytes > base ? (static_cast<std::size_t>(bytes - base) + 8) & ~std::size_t{15} : 0);

    std::vector<outcome> all(sizes.size());
    std::vector<std::vector<double>> one_way(1), copies(sizes.size());
    for (int rep = 0; rep < program.options().reps; ++rep) {
      one_way[0].push_back(one_way_ns(2000, rate));
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        outcome o = measure_steals(rounds, padding[i], rate);
        all[i].ns.insert(all[i].ns.end(), o.ns.begin(), o.ns.end());
        all[i].stolen_bytes = o.stolen_bytes;
        all[i].moved += o.moved;
        all[i].rounds += o.rounds;
        copies[i].push_back(copy_ns(static_cast<std::size_t>(o.stolen_bytes), 2000, rate));
      }
    }
    std::FILE* const to = program.out();
    const double line = bench::median(one_way[0]);
    std::fprintf(to, "Steal latency, two workers, from push to the first instruction at the thief\n");
    std::fprintf(to, "  %8s %8s %8s %10s %10s %10s | %10s %10s %10s\n", "asked B", "stolen B", "samples",
                 "p10 us", "median us", "p90 us", "copy us", "line us", "rest us");
    bench::ordered_json rows = bench::ordered_json::array();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const double p10 = bench::quantile(all[i].ns, 0.1), p50 = bench::median(all[i].ns),
                   p90 = bench::quantile(all[i].ns, 0.9), copy = bench::median(copies[i]);
      const double rest = p50 - copy - line;
      std::fprintf(to, "  %8u %8.0f %8zu %10.3f %10.3f %10.3f | %10.3f %10.3f %10.3f\n", sizes[i],
                   all[i].stolen_bytes, all[i].ns.size(), p10 / 1e3, p50 / 1e3, p90 / 1e3, copy / 1e3,
                   line / 1e3, rest / 1e3);
      if (all[i].moved * 10 < static_cast<std::uint32_t>(all[i].rounds) * 9)
        program.wrong("only " + std::to_string(all[i].moved) + " of " + std::to_string(all[i].rounds) +
                      " continuations went to the other worker");
      rows.push_back({{"asked_bytes", sizes[i]},
                      {"stolen_bytes", all[i].stolen_bytes},
                      {"samples", all[i].ns.size()},
                      {"moved", all[i].moved},
                      {"p10_us", p10 / 1e3},
                      {"median_us", p50 / 1e3},
                      {"p90_us", p90 / 1e3},
                      {"copy_us", copy / 1e3},
                      {"line_us", line / 1e3},
                      {"rest_us", rest / 1e3}});
      program.json()["figures"]["us_" + std::to_string(sizes[i])] = {
          {"what", "steal of " + std::to_string(sizes[i]) + " B"},
          {"value", p50 / 1e3},
          {"unit", "us"},
          {"definition", "median over all steals but the first of every run"}};
    }
    std::fprintf(to,
                 "  copy: the bytes alone, dirty in the other core; line: one cache line, one way; rest: "
                 "median - copy "
                 "- line\n  the first %d steals of every run are left out\n",
                 excluded);
    program.json()["measurements"].push_back({{"title", "steal latency"}, {"rows", rows}});
    program.figure("rare_us", "steal, 20 in a run, from the first on", measure_rare_steals(program, rate),
                   "us", "mean over the steals of first deciles over the runs");
    suspend_and_resume(program, sizes, rounds);
    program.json()["definitions"]["latency"] =
        "counter stamp before the spawn at the victim to the first stamp of the continuation at the thief";
  } catch (const std::exception& e) {
    std::fprintf(stderr, "steal: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
