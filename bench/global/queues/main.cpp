// global_queues: what idle hosts take of a host that has more threads than it can run, when these have data.
//
// Queue: threads are sent to parts that all lie with worker 0, and each adds up its part; idle hosts may take
// them with their parts (option rebalance), or not. Mixed: as many threads that have come to a part and use
// it again and again as such that have none; all give way between two steps, so that idle hosts can take
// either. A thread that is taken away from its part reads it by messages: steals weigh that.
//
// Alternating runs; every sum is compared with what it must be. With one host there is nobody to take
// anything: then both must be equal. Document: docs/results/README.md. Test: bench/CMakeLists.txt.

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../common/godwit_run.hpp"
#include "../parts.hpp"

namespace {

namespace gw = godwit;
using words = gw::global_ptr<std::uint64_t>;

constexpr std::uint64_t most_parts = 64;

struct settings {
  std::uint64_t parts = 16, part_kib = 64, threads = 2;  ///< threads of a part
  std::uint64_t turns = 0;                               ///< of compute, besides using its part
  std::uint64_t steps = 0;                               ///< mixed: of a thread
  std::uint32_t reps = 0;

  std::uint64_t part_words() const noexcept { return (part_kib << 10) / 8; }
};

/// Work of the CPU, not of the clock: two that share one take twice as long.
void compute(std::uint64_t turns) {
  std::uint64_t x = turns;
  for (std::uint64_t i = 0; i < turns; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(x));
  }
}
/// In a microsecond, here.
std::uint64_t turns_per_us() {
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 9; ++i) {
    const std::uint64_t start = bench::now_ns();
    compute(100'000);
    least = std::min(least, bench::now_ns() - start);
  }
  return 100'000'000 / least;
}

words parts_of_worker_0(const settings& s) {
  const words p = gw::allocate<std::uint64_t>(s.parts * s.part_words(),
                                              gw::distribution::at(0).movable(s.part_kib << 10), 4096);
  std::vector<std::uint64_t> row(s.part_words());
  for (std::uint64_t i = 0; i < s.parts; ++i) {
    std::fill(row.begin(), row.end(), i);
    gw::put(p + static_cast<std::ptrdiff_t>(i * s.part_words()), row.data(), row.size());
  }
  return p;
}

struct outcome {
  double seconds = 0;
  std::uint64_t sum = 0;
};

/// Where the thread is: by one message if that is elsewhere, once it has begun.
std::uint64_t add_up(words at, std::uint64_t n) {
  std::uint64_t sum = 0;
  const auto span = gw::checkout(at, n, gw::access::read);
  for (const std::uint64_t x : span) sum += x;
  return sum;
}

outcome run_queue(const settings& s) {
  const words p = parts_of_worker_0(s);
  constexpr std::uint64_t most_threads = 16;
  std::array<gw::future<std::uint64_t>, most_parts * most_threads> all;
  const std::uint64_t count = s.parts * s.threads, start = bench::now_ns();
  for (std::uint64_t t = 0; t < count; ++t) {
    const words at = p + static_cast<std::ptrdiff_t>(t % s.parts * s.part_words());
    all[t] = gw::spawn_at(at, [at, s] {
      const std::uint64_t sum = add_up(at, s.part_words());
      compute(s.turns);
      return sum;
    });
  }
  outcome o;
  for (std::uint64_t t = 0; t < count; ++t) o.sum += all[t].join();
  o.seconds = static_cast<double>(bench::now_ns() - start) * 1e-9;
  gw::deallocate(p, s.parts * s.part_words());
  return o;
}
std::uint64_t sum_of_queue(const settings& s) {
  return s.threads * s.part_words() * (s.parts * (s.parts - 1) / 2);
}

/// One of the mixed: @p at null: it has no part. A few words of it at each step.
std::uint64_t step_by_step(words at, const settings& s) {
  constexpr std::uint64_t words_a_step = 16;
  std::uint64_t sum = 0;
  if (at) gw::go_to(at);
  for (std::uint64_t i = 0; i < s.steps; ++i) {
    if (at)
      for (std::uint64_t k = 0; k < words_a_step; ++k)
        sum += gw::get(at + static_cast<std::ptrdiff_t>((i * words_a_step + k) * 37 % s.part_words()));
    compute(s.turns / 10);
    gw::yield();
  }
  return sum;
}
outcome run_mixed(const settings& s) {
  const words p = parts_of_worker_0(s);
  std::array<gw::future<std::uint64_t>, 2 * most_parts> all;
  const std::uint64_t start = bench::now_ns();
  for (std::uint64_t i = 0; i < s.parts; ++i) {
    const words at = p + static_cast<std::ptrdiff_t>(i * s.part_words());
    all[2 * i] = gw::spawn_at(at, [=] { return step_by_step(at, s); });
    all[2 * i + 1] = gw::spawn_at(gw::worker(0), [=] { return step_by_step({}, s); });
  }
  outcome o;
  for (std::uint64_t i = 0; i < 2 * s.parts; ++i) o.sum += all[i].join();
  o.seconds = static_cast<double>(bench::now_ns() - start) * 1e-9;
  gw::deallocate(p, s.parts * s.part_words());
  return o;
}
std::uint64_t sum_of_mixed(const settings& s) { return s.steps * 16 * (s.parts * (s.parts - 1) / 2); }

/// Of alternating runs.
struct series {
  std::vector<double> seconds;
  std::uint64_t fetched = 0, moved = 0, far_gets = 0, move_calls = 0, move_ns = 0;
  void add(const outcome& o, std::uint64_t must) {
    if (!gw::is_first_process()) return;
    if (o.sum != must)
      throw std::runtime_error("the sum is " + std::to_string(o.sum) + ", not " + std::to_string(must));
    seconds.push_back(o.seconds);
    for (const gw::worker_stats& w : gw::last_run_stats()) {
      fetched += w.threads_fetched;
      moved += w.moves;
      far_gets += w.far_gets;
      move_calls += w.move_calls;
      move_ns += w.move_ns;
    }
  }
  double median() const { return parts::median_of(seconds); }
  double each(std::uint64_t n) const { return static_cast<double>(n) / static_cast<double>(seconds.size()); }
};

template <class F>
outcome in_a_run(unsigned workers, bool rebalance, F f) {
  gw::options o;
  o.workers = workers;
  o.rebalance = rebalance;
  return gw::run<outcome>(f, o);
}

void show(bench::program& program, const settings& s, const series* queue, const series* mixed) {
  std::fprintf(program.out(),
               "%llu parts of %llu KiB at worker 0, seconds, medians of %u\n  %-58s %8s %8s %8s %9s\n",
               static_cast<unsigned long long>(s.parts), static_cast<unsigned long long>(s.part_kib), s.reps,
               "", "s", "fetched", "moves", "far gets");
  bench::ordered_json rows = bench::ordered_json::array();
  const auto row = [&](const char* what, const series& r) {
    std::fprintf(program.out(), "  %-58s %8.4f %8.1f %8.1f %9.1f\n", what, r.median(), r.each(r.fetched),
                 r.each(r.moved), r.each(r.far_gets));
    rows.push_back({{"what", what},
                    {"seconds", r.median()},
                    {"fetched", r.each(r.fetched)},
                    {"moves", r.each(r.moved)},
                    {"far_gets", r.each(r.far_gets)}});
  };
  row("queue: threads stay", queue[0]);
  row("queue: idle hosts take threads with their parts", queue[1]);
  row("mixed: half of the threads have a part", mixed[0]);
  row("mixed, idle hosts move parts", mixed[1]);
  program.json()["measurements"].push_back({{"title", "Threads with data"}, {"rows", rows}});
  std::vector<double> ratios;
  for (std::size_t i = 0; i < queue[0].seconds.size(); ++i)
    ratios.push_back(queue[0].seconds[i] / queue[1].seconds[i]);
  program.figure("queue.speed_up",
                 "threads queued for parts of one host, taken with these: time without / with",
                 parts::median_of(ratios), "x", "median over the rounds");
  program.figure("queue.fetched", "threads that were taken", queue[1].each(queue[1].fetched), "",
                 "mean of " + std::to_string(s.reps));
  program.figure("queue.moves", "parts that went with them, and came back", queue[1].each(queue[1].moved), "",
                 "mean");
  program.figure("queue.move_us", "a call that moved parts, from a host that computes",
                 queue[1].move_calls == 0 ? 0
                                          : static_cast<double>(queue[1].move_ns) * 1e-3 /
                                                static_cast<double>(queue[1].move_calls),
                 "us", "mean");
  program.figure("mixed.far_gets", "gets by message of threads taken away from their parts",
                 mixed[0].each(mixed[0].far_gets), "", "mean");
  program.figure("mixed.seconds", "half of the threads have a part", mixed[0].median(), "s", "median");
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  bench::program program("global_queues", "Threads with data, and hosts without work.", argc, argv);
  program.option("--parts", s.parts, "Parts, all at worker 0", bench::between(1, most_parts));
  program.option("--part-kib", s.part_kib, "KiB of a part", bench::between(4, 4096));
  program.option("--threads", s.threads, "Threads of a part", bench::between(1, 16));
  std::uint64_t us = 0;
  program.option("--us", us, "Microseconds that a thread computes (default 10,000; with --quick 5,000)");
  program.option("--steps", s.steps, "Mixed: steps of a thread (default 20; with --quick 10)");
  program.option("--rounds", s.reps, "Rounds (default 11; with --quick 5)");
  program.parse();
  const bool quick = program.options().quick;
  if (us == 0) us = quick ? 5'000 : 10'000;
  s.turns = us * turns_per_us();
  if (s.steps == 0) s.steps = quick ? 10 : 20;
  if (s.reps == 0) s.reps = quick ? 5 : 11;
  const unsigned w = program.most_workers();
  series queue[2], mixed[2];
  try {
    for (std::uint32_t i = 0; i < s.reps; ++i)
      for (int on = 0; on < 2; ++on) {
        queue[on].add(in_a_run(w, on == 1, [s] { return run_queue(s); }), sum_of_queue(s));
        mixed[on].add(in_a_run(w, on == 1, [s] { return run_mixed(s); }), sum_of_mixed(s));
      }
    if (gw::is_first_process()) show(program, s, queue, mixed);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_queues: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
