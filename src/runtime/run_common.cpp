// See run_common.hpp.
#include "runtime/run_common.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "base/check.hpp"
#include "base/cpus.hpp"
#include "base/launcher.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "runtime/debugger.hpp"
#include "sched/policies.hpp"

namespace godwit {

namespace {

std::vector<worker_stats> last_stats_;
std::function<void()> tick_;
std::chrono::milliseconds tick_every_{0};

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

standard_descriptors::standard_descriptors() noexcept {
  for (int fd = 0; fd < 3; ++fd)
    opened_[fd] = fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) == fd;
}
standard_descriptors::~standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd)
    if (opened_[fd]) close(fd);
}

void begin_launch(launch& what, const options& opts, detail::root_task& root) {
  base::prepare_fast_clock();
  what.opts = opts;
  what.cpus = base::usable_cpu_count();
  what.seed = opts.seed != 0 ? opts.seed : base::fresh_seed();
  what.root = &root;
  what.supervisor = getpid();
  what.main_stack = stack::system_stack();
  if (opts.bind == "cores") what.bind_to = base::usable_cpus();
}

void check_policy(const options& opts, std::size_t hosts) {
  const std::string asked = opts.span ? "span=1" : "policy=" + opts.policy;
  if (opts.span && opts.policy != "greedy")
    throw std::invalid_argument(
        "godwit: span=1 measures under a policy of its own: not together with policy=" + opts.policy);
  if (sched::policy_of(opts).steals_children && opts.force_steal != "none")
    throw std::invalid_argument("godwit: force_steal=" + opts.force_steal +
                                " makes continuations leave, and with " + asked +
                                " there are none to be stolen: use one or the other");
  if (opts.spare_workers != 0 && asked != "policy=greedy")
    throw std::invalid_argument("godwit: " + asked +
                                " has no spare workers: leave spare_workers at 0, or the policy at greedy");
  if (hosts > 1 && asked != "policy=greedy")
    throw std::invalid_argument("godwit: " + asked + " works on one host only, and the workers are on " +
                                std::to_string(hosts) + ": start it on one, or leave the policy at greedy");
}

transport::shm::layout plan_segment(const options& opts, std::uint32_t workers) noexcept {
  // Iso-address: every worker's memory has room for the stacks of all.
  const std::uint64_t regions = sched::policy_of(opts).has_all_stacks ? workers : 1;
  return transport::shm::plan(sizeof(detail::hot_words), sizeof(sched::segment_words),
                              opts.stack_bytes * regions, opts.heap_bytes);
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

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

void take_root_result(const transport::shm::segment& memory, detail::run_result& result) {
  const auto& root_result = memory.at<sched::record>(sched::root_record(memory.where()))->result;
  const std::byte* bytes =
      root_result.object == 0
          ? root_result.small
          : reinterpret_cast<const std::byte*>(memory.at<sched::object>(root_result.object) + 1);
  result.threw = root_result.kind == detail::outcome::error;
  result.bytes.assign(bytes, bytes + root_result.bytes);
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

void keep_stats(std::vector<worker_stats> all) { last_stats_ = std::move(all); }

run_facts facts_of(const options& opts, std::vector<host_facts> hosts, std::uint64_t start_ns,
                   const detail::run_result& result) {
  run_facts facts;
  facts.wall_seconds = static_cast<double>(base::now_ns() - start_ns) / 1e9;
  facts.cpus = base::usable_cpu_count();
  facts.opts = opts;
  name_program(facts);
  facts.hosts = std::move(hosts);
  facts.stats = last_stats_;
  facts.status = result.status;
  facts.message = result.message;
  return facts;
}

}  // namespace runtime
}  // namespace godwit
