// See run_common.hpp.
#include "runtime/run_common.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <utility>

#include "base/check.hpp"
#include "base/cpus.hpp"
#include "base/launcher.hpp"
#include "base/pause.hpp"
#include "runtime/debugger.hpp"

namespace godwit {

namespace {

std::vector<worker_stats> last_stats_;
std::function<void()> tick_;
std::chrono::milliseconds tick_every_{0};

void print_stats(const std::vector<worker_stats>& all) {
  std::fprintf(
      stderr,
      "godwit: worker   steals   failed  suspends  resumes  exposed  signals  sleeps  stack KiB  heap KiB\n");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const worker_stats& s = all[i];
    std::fprintf(stderr, "godwit: %6zu %8llu %8llu %9llu %8llu %8llu %8llu %7llu %10llu %9llu\n", i,
                 static_cast<unsigned long long>(s.steals), static_cast<unsigned long long>(s.steals_failed),
                 static_cast<unsigned long long>(s.suspends), static_cast<unsigned long long>(s.resumes),
                 static_cast<unsigned long long>(s.exposures), static_cast<unsigned long long>(s.signals),
                 static_cast<unsigned long long>(s.sleeps),
                 static_cast<unsigned long long>(s.stack_high_bytes >> 10),
                 static_cast<unsigned long long>(s.heap_high_bytes >> 10));
  }
}

}  // namespace

const std::vector<worker_stats>& last_run_stats() noexcept { return last_stats_; }

void on_tick(std::chrono::milliseconds interval, std::function<void()> f) {
  tick_ = std::move(f);
  tick_every_ = std::max(interval, std::chrono::milliseconds(1));
}

bool is_first_process() noexcept {
  return !base::detect_launcher().one_of_several() || base::detect_launcher().rank == 0;
}

namespace runtime {

void begin_launch(launch& what, const options& opts, detail::root_task& root) {
  what.opts = opts;
  what.cpus = base::usable_cpu_count();
  what.seed = opts.seed != 0 ? opts.seed : base::now_ns() ^ static_cast<std::uint64_t>(getpid()) << 32;
  what.root = &root;
  what.supervisor = getpid();
  what.main_stack = stack::system_stack();
  if (opts.bind == "cores") what.bind_to = base::usable_cpus();
}

transport::shm::layout plan_segment(const options& opts) noexcept {
  return transport::shm::plan(sizeof(detail::hot_words), sizeof(sched::segment_words), opts.stack_bytes,
                              opts.heap_bytes);
}

const sched::segment_words* common_words(const transport::shm::segment& memory) noexcept {
  return reinterpret_cast<const sched::segment_words*>(memory.common() + memory.where().words);
}

void prepare_words(const transport::shm::segment& memory, transport::worker_no w) noexcept {
  auto* words = const_cast<sched::segment_words*>(memory.at(w, common_words(memory)));
  const auto first_slot =
      reinterpret_cast<std::uint64_t>(memory.common() + memory.where().slots) + sizeof(detail::spawn_slot);
  words->worker.top.store(first_slot, std::memory_order_relaxed);
  words->worker.split.store(first_slot, std::memory_order_relaxed);
}

bool fork_worker(launch& what, transport::worker_no w, family& workers, detail::run_result& result) {
  describe_to_debuggers(what, debug_no_worker);  // workers write their number over it
  const pid_t pid = fork();
  if (pid == 0) worker_main(what, w);
  if (pid < 0) {
    result.status = base::status_failed;
    result.message = "godwit: cannot fork worker " + std::to_string(transport::index(w)) + ": " +
                     std::strerror(errno) +
                     ": raise the limit on processes (ulimit -u) or lower --godwit-workers";
    return false;
  }
  workers.add(transport::index(w), pid);
  return true;
}

int tick(std::uint64_t& next_tick_ns) {
  if (!tick_) return -1;
  const auto now = base::now_ns();
  if (now >= next_tick_ns) {
    tick_();
    next_tick_ns = now + static_cast<std::uint64_t>(tick_every_.count()) * 1'000'000;
  }
  return static_cast<int>((next_tick_ns - std::min(now, next_tick_ns)) / 1'000'000 + 1);
}

void last_tick() {
  if (tick_) tick_();
}

std::string interrupted(int signal) {
  return "godwit: interrupted by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

void keep_stats(std::vector<worker_stats> all, bool print) {
  last_stats_ = std::move(all);
  if (print) print_stats(last_stats_);
}

}  // namespace runtime
}  // namespace godwit
