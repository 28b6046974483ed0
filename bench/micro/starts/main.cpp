// starts: what do workers cost that have next to nothing to do: at the start of a run, while it lasts, and at
// its end?
//
// An empty run of two workers, in a process of its own, beside fork and wait of two children; the same where
// the stack has no limit (ulimit -s unlimited), which makes the system lay out addresses the other way round.
// And fib(20) on many more workers than CPUs: their CPU time beside that of as many children that map memory
// and end, and the memory that each takes.

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "../../common/godwit_run.hpp"
#include "../../common/shared_page.hpp"

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

/// What one child of the reference does: memory as a worker has it, of which it uses a little.
[[noreturn]] void be_empty_child() {
  constexpr std::size_t bytes = 1 << 20;
  for (int i = 0; i < 3; ++i) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) _exit(1);
    *static_cast<volatile char*>(p) = 1;
  }
  _exit(0);
}

struct cost {
  double wall_s, cpu_s;
};

cost empty_children(unsigned count) {
  const std::uint64_t before = bench::now_ns();
  const double cpu_before = bench::children_cpu_seconds() + bench::process_cpu_seconds();
  for (unsigned i = 0; i < count; ++i) {
    const pid_t pid = fork();
    if (pid == 0) be_empty_child();
    if (pid < 0) fail("fork");
  }
  for (unsigned i = 0; i < count; ++i) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) throw std::runtime_error("a child of the reference failed");
  }
  return {static_cast<double>(bench::now_ns() - before) * 1e-9,
          bench::children_cpu_seconds() + bench::process_cpu_seconds() - cpu_before};
}

/// Seconds of an empty run of two workers in a process of its own, with this limit on its stack. 0: the limit
/// cannot be had.
double empty_run(const std::string& substrate, rlim_t stack) {
  int ends[2];
  if (pipe(ends) != 0) fail("pipe");
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    rlimit limit{};
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = stack;
    if (setrlimit(RLIMIT_STACK, &limit) != 0) _exit(2);
    dup2(ends[1], 1);
    execl("/proc/self/exe", "starts", "--one", substrate.c_str(), nullptr);
    _exit(1);
  }
  close(ends[1]);
  char text[64] = {};
  const ssize_t got = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) return 0;
  if (got <= 0 || status != 0) throw std::runtime_error("an empty run in a process of its own failed");
  return std::strtod(text, nullptr);
}

double one_empty_run(const std::string& substrate) {
  return bench::run_godwit(
             2, [] { return 0; }, godwit::policies::greedy::name, substrate)
      .second.total_seconds;
}

long fib(int n) {
  if (n < 2) return n;
  auto [x, y] = godwit::invoke([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return x + y;
}
constexpr int fib_of = 20;
constexpr long fib_is = 6765;

/// KiB behind @p key in a file of /proc.
std::uint64_t kib_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size(), nullptr, 10);
  return 0;
}

/// KiB that a worker has alone, on average: its own pages, page tables, and the stack of the system.
double kib_per_worker(unsigned workers) {
  bench::shared_page<std::atomic<std::uint64_t>> all;
  std::atomic<std::uint64_t>* const sum = all.get();
  constexpr std::uint64_t stack_of_system = 16;
  bench::run_godwit(
      workers,
      [=] {
        const long value = fib(fib_of);
        godwit::on_each_worker([=] {
          sum->fetch_add(kib_of("/proc/self/smaps_rollup", "Private_Dirty:") +
                         kib_of("/proc/self/status", "VmPTE:") + stack_of_system);
        });
        return value;
      },
      godwit::policies::greedy::name, "processes");
  return static_cast<double>(sum->load()) / workers;
}

void two_workers(bench::program& program) {
  std::vector<double> children, processes, threads, over, unlimited;
  constexpr rlim_t usual = 8 << 20;
  for (int rep = 0; rep < program.options().reps * 4; ++rep) {
    children.push_back(empty_children(2).wall_s * 1e3);
    processes.push_back(empty_run("processes", usual) * 1e3);
    threads.push_back(empty_run("threads", usual) * 1e3);
    const double without_limit = empty_run("processes", RLIM_INFINITY) * 1e3;
    if (without_limit == 0) continue;
    unlimited.push_back(without_limit);
    over.push_back(without_limit / processes.back());
  }
  std::fprintf(program.out(), "Empty runs of two workers\n");
  program.figure("children", "fork and wait of two children", children, "ms", "wall time");
  program.figure("processes", "empty run, processes", processes, "ms", "wall time, in a process of its own");
  program.figure("threads", "empty run, threads", threads, "ms", "likewise");
  if (over.empty()) {
    std::fprintf(program.out(), "  without a limit on the stack: skipped: the hard limit is lower\n");
    return;
  }
  program.figure("unlimited", "empty run, processes, ulimit -s unlimited", unlimited, "ms", "likewise");
  program.figure("unlimited_over", "the same over that with a limit", over, "x", "ratios inside a round");
}

void many_workers(bench::program& program, const std::vector<unsigned>& counts) {
  for (const unsigned n : counts) {
    const std::string key = "p" + std::to_string(n), on = std::to_string(n) + " workers";
    std::vector<double> over, cpu, reference;
    for (int rep = 0; rep < program.options().reps; ++rep) {
      reference.push_back(empty_children(n).cpu_s);
      const auto [value, s] = bench::run_godwit(
          n, [] { return fib(fib_of); }, godwit::policies::greedy::name, "processes");
      if (value != fib_is) program.wrong("fib(20) on " + on + " is " + std::to_string(value));
      cpu.push_back(s.cpu_seconds);
      over.push_back(cpu.back() / reference.back());
    }
    std::fprintf(program.out(), "fib(20) on %s that are processes\n", on.c_str());
    program.figure(key + ".children", "as many empty children", reference, "CPU s", "fork, map, end, wait");
    program.figure(key + ".cpu", "fib(20) on " + on, cpu, "CPU s", "the whole run");
    program.figure(key + ".over_children", "fib(20) on " + on + " / as many empty children", over, "x",
                   "CPU times, ratios inside a round");
    program.figure(key + ".kib", "memory of a worker, of " + on, kib_per_worker(n), "KiB",
                   "own pages + page tables + system's stack, after the computation");
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("starts", "What workers cost that have next to nothing to do.", argc, argv);
  std::string one;
  std::vector<unsigned> many = {64, 512};
  program.option("--many", many, "Workers, more than CPUs (default 64,512)", bench::between(1, 4096));
  program.option("--one", one, "Only one empty run on this substrate; prints its seconds",
                 bench::one_of({"processes", "threads"}));
  program.parse();
  try {
    if (!one.empty()) {
      std::printf("%.9f\n", one_empty_run(one));
      return 0;
    }
    two_workers(program);
    many_workers(program, many);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "starts: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
