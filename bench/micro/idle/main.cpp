// idle: what do workers that have nothing to do cost? The root thread computes and spawns nothing; the CPU
// time that the other workers use meanwhile is what the benchmark reports.

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "../../common/godwit_run.hpp"
#include "../../common/shared_page.hpp"

namespace {

constexpr unsigned most_workers = 256;

struct board {
  std::atomic<int> pid[most_workers];  ///< W its worker, R root
};

double cpu_seconds(int pid) {
  clockid_t clock;
  timespec t{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct idle_time {
  double wall;
  double most_loaded;  ///< CPU seconds of the idle worker that used most
  unsigned workers;
};

idle_time compute_alone(board* b, double seconds) {
  godwit::on_each_worker([b] { b->pid[godwit::worker_id() % most_workers].store(getpid()); });
  const unsigned me = godwit::worker_id(), workers = std::min(godwit::worker_count(), most_workers);
  double before[most_workers] = {};
  for (unsigned w = 0; w < workers; ++w) before[w] = cpu_seconds(b->pid[w].load());
  const std::uint64_t start = bench::now_ns();
  std::uint64_t x = start;
  do {
    for (int i = 0; i < 10000; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    bench::keep(x);
  } while (static_cast<double>(bench::now_ns() - start) * 1e-9 < seconds);
  idle_time r{static_cast<double>(bench::now_ns() - start) * 1e-9, 0, workers};
  for (unsigned w = 0; w < workers; ++w)
    if (w != me) r.most_loaded = std::max(r.most_loaded, cpu_seconds(b->pid[w].load()) - before[w]);
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("idle", "CPU time of workers that have nothing to do.", argc, argv);
  double seconds = 10;
  program.option("--seconds", seconds, "How long root computes alone (default 10; with --quick 2)",
                 bench::between(0.1, 3600.0));
  program.parse();
  if (program.options().quick && !program.given("--seconds")) seconds = 2;
  const unsigned workers = program.most_workers();
  if (workers < 2) {
    std::fprintf(program.out(), "idle: skipped: it needs two CPUs\n");
    program.json()["skipped"] = "needs two CPUs";
    return program.finish();
  }
  try {
    bench::shared_page<board> page;
    board* const b = page.get();
    const idle_time r = bench::run_godwit(workers, [=] { return compute_alone(b, seconds); }).first;
    program.json()["measurements"].push_back(
        {{"title", "idle workers"}, {"workers", r.workers}, {"wall_s", r.wall}, {"cpu_s", r.most_loaded}});
    std::fprintf(program.out(), "Idle workers: %u workers, root computes alone for %.1f s\n", r.workers,
                 r.wall);
    program.figure("percent", "an idle worker uses", 100 * r.most_loaded / r.wall, "% of a CPU",
                   "CPU time of the idle worker that used most / wall time");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "idle: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
