// far_steal: what a steal from another host costs, step by step (U13). Two workers on two hosts under MPI:
//
//   scripts/hosts --hosts 2 --mpi openmpi -- build/release/bench/far_steal --godwit-way=server
//
// One thread goes back and forth: it spawns a child that computes for a while and joins it; meanwhile the
// worker on the other host takes its continuation. The times are the scheduler's own: from the request to the
// moment when the stack is there. Beside them stand the round trip that MPI itself needs (measured in the
// same job by the library's self-test, printed at start) and the papers' figures.
#include <alloca.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "../../common/godwit_run.hpp"

namespace {

constexpr int most_tries = 50;  ///< spawns for each steal: on a busy machine the other worker comes late

/// The thread that is stolen again and again, @p steals times. A child that runs @p child_us gives the other
/// worker time to come.
[[gnu::noinline]] unsigned ping_pong(int steals, std::size_t padding, unsigned child_us) {
  auto* const pad = static_cast<volatile char*>(alloca(padding + 16));
  unsigned moved = 0;
  for (int i = 1; moved < static_cast<unsigned>(steals) && i <= most_tries * steals; ++i) {
    for (std::size_t at = 0; at < padding; at += 64) pad[at] = static_cast<char>(i);
    const std::uint32_t before = godwit::worker_id();
    auto child = godwit::spawn([child_us] {
      const std::uint64_t end = bench::now_ns() + child_us * 1000ull;
      while (bench::now_ns() < end)
        for (int k = 0; k < 50; ++k) godwit::spawn([] {}).join();  // spawns: a polling way answers there
    });
    moved += godwit::worker_id() != before;
    child.join();
  }
  return moved;
}

/// A request to the other host for which nothing is awake there: fetch-and-add of a word, after a pause of
/// @p pause_us. Median, us.
double lone_request_us(int times, unsigned pause_us) {
  godwit::global_array<std::uint64_t> words(8192, godwit::distribution::blocked());
  const auto first = words.begin();
  const auto target = godwit::try_local(first) == nullptr ? first : first + 8191;
  std::vector<double> taken;
  for (int i = 0; i < times; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    const std::uint64_t start = bench::now_ns();
    godwit::atomic_fetch_add(target, std::uint64_t{1});
    taken.push_back(static_cast<double>(bench::now_ns() - start) * 1e-3);
  }
  return bench::median(taken);
}

/// Quantile of far_steal_times, us; inside a bucket as if spread evenly.
double quantile_us(const std::uint64_t (&times)[64], double q) {
  std::uint64_t all = 0, below = 0;
  for (const auto n : times) all += n;
  const double wanted = q * static_cast<double>(all);
  for (int i = 0; i < 64; ++i) {
    const auto n = static_cast<double>(times[i]);
    if (n > 0 && static_cast<double>(below) + n >= wanted)
      return std::pow(2.0, (i + (wanted - static_cast<double>(below)) / n) / 4);
    below += times[i];
  }
  return 0;
}

struct row {
  std::uint64_t times[64] = {};
  std::vector<double> total, carry, serve, check, lock, entry, stack, unlock;
  double bytes = 0;
  std::uint64_t steals = 0, failed = 0, looks = 0, moved = 0, messages = 0;
  double message_us = 0;
};

}  // namespace

int main(int argc, char** argv) {
  bench::program program(
      "far_steal", "Steals between two hosts, step by step. Start it under MPI with two ranks.", argc, argv);
  std::vector<unsigned> sizes = {664, 3055};
  int rounds = 200;
  unsigned child_us = 3000;
  program.option("--bytes", sizes, "Stolen stack sizes (default 664,3055)");
  program.option("--rounds", rounds, "Steals per repetition and size", bench::between(1, 1'000'000));
  program.option("--child-us", child_us, "How long a child computes");
  program.parse();
  try {
    std::FILE* const to = program.out();
    bench::ordered_json rows = bench::ordered_json::array();
    std::fprintf(to, "Steals between hosts, us: mean and its parts are medians over %d repetitions\n",
                 program.options().reps);
    std::fprintf(to, "  %8s %8s %8s | %8s %8s | %8s %8s %8s | %8s %8s %8s %8s %8s | %8s %10s\n", "asked B",
                 "stolen B", "steals", "median", "p90", "mean", "carry", "serve", "check", "lock", "entry",
                 "stack", "unlock", "failed", "messages");
    std::size_t base = 0;
    for (std::size_t pass = 0; pass <= sizes.size(); ++pass) {
      const std::size_t asked = pass == 0 ? 0 : sizes[pass - 1];
      const std::size_t padding = asked > base ? (asked - base + 8) & ~std::size_t{15} : 0;
      row r;
      // The first pass finds out what is stolen without padding. A few steals are enough, but some there must
      // be: at first the other worker may still be asleep.
      const int reps = pass == 0 ? 50 : program.options().reps;
      for (int rep = 0; rep < reps && (pass != 0 || r.total.empty()); ++rep) {
        godwit::options o;
        o.workers = 2;
        const int n = pass == 0 ? 20 : rounds;
        r.moved += godwit::run<unsigned>(
            [=] { return godwit::spawn([=] { return ping_pong(n, padding, child_us); }).join(); }, o);
        godwit::worker_stats s;
        for (const auto& w : godwit::last_run_stats()) {
          s.far_steals += w.far_steals, s.far_steal_ns += w.far_steal_ns, s.far_carry_ns += w.far_carry_ns;
          s.far_serve_ns += w.far_serve_ns, s.far_check_ns += w.far_check_ns, s.far_lock_ns += w.far_lock_ns;
          s.far_entry_ns += w.far_entry_ns, s.far_stack_ns += w.far_stack_ns,
              s.far_unlock_ns += w.far_unlock_ns;
          s.far_failed += w.far_failed, s.far_looks += w.far_looks, s.messages += w.messages;
          for (int i = 0; i < 64; ++i) r.times[i] += w.far_steal_times[i];
          s.message_ns += w.message_ns, s.stolen_bytes += w.stolen_bytes, s.steals += w.steals;
        }
        if (s.far_steals == 0) continue;
        const auto us = [&](std::uint64_t ns) {
          return static_cast<double>(ns) * 1e-3 / static_cast<double>(s.far_steals);
        };
        r.total.push_back(us(s.far_steal_ns)), r.carry.push_back(us(s.far_carry_ns));
        r.serve.push_back(us(s.far_serve_ns)), r.check.push_back(us(s.far_check_ns));
        r.lock.push_back(us(s.far_lock_ns)), r.entry.push_back(us(s.far_entry_ns));
        r.stack.push_back(us(s.far_stack_ns)), r.unlock.push_back(us(s.far_unlock_ns));
        r.bytes = static_cast<double>(s.stolen_bytes) / static_cast<double>(s.far_steals);
        r.steals += s.far_steals, r.failed += s.far_failed, r.messages += s.messages;
      }
      if (r.total.empty()) {
        program.wrong("no steal between hosts happened: start it under MPI with two ranks on two hosts");
        break;
      }
      if (pass == 0) {
        base = static_cast<std::size_t>(r.bytes);
        continue;
      }
      std::fprintf(to,
                   "  %8zu %8.0f %8llu | %8.1f %8.1f | %8.1f %8.1f %8.1f | %8.1f %8.1f %8.1f %8.1f %8.1f | "
                   "%8llu %10llu\n",
                   asked, r.bytes, static_cast<unsigned long long>(r.steals), quantile_us(r.times, 0.5),
                   quantile_us(r.times, 0.9), bench::median(r.total), bench::median(r.carry),
                   bench::median(r.serve), bench::median(r.check), bench::median(r.lock),
                   bench::median(r.entry), bench::median(r.stack), bench::median(r.unlock),
                   static_cast<unsigned long long>(r.failed), static_cast<unsigned long long>(r.messages));
      rows.push_back({{"asked_bytes", asked},
                      {"stolen_bytes", r.bytes},
                      {"steals", r.steals},
                      {"failed", r.failed},
                      {"median_us", quantile_us(r.times, 0.5)},
                      {"p90_us", quantile_us(r.times, 0.9)},
                      {"mean_us", bench::median(r.total)},
                      {"carry_us", bench::median(r.carry)},
                      {"serve_us", bench::median(r.serve)},
                      {"check_us", bench::median(r.check)},
                      {"lock_us", bench::median(r.lock)},
                      {"entry_us", bench::median(r.entry)},
                      {"stack_us", bench::median(r.stack)},
                      {"unlock_us", bench::median(r.unlock)}});
    }
    std::vector<double> lone;
    for (int rep = 0; rep < program.options().reps; ++rep) {
      godwit::options o;
      o.workers = 2;
      lone.push_back(godwit::run<double>([=] { return lone_request_us(std::min(rounds, 100), 5000); }, o));
    }
    std::fprintf(to, "  a request after 5 ms without any: median %.1f us\n", bench::median(lone));
    program.json()["measurements"].push_back(
        {{"title", "steals between hosts"}, {"rows", rows}, {"lone_request_us", bench::median(lone)}});
    std::fprintf(
        to,
        "  median, p90 of all steals, request to stack there (buckets of a quarter octave); mean, carry: of "
        "that between the companions, serve: of that the execution at "
        "the victim's host (steals by call);\n  check ... unlock: the steps of a steal word by word\n");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "far_steal: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
