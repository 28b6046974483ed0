// See run_common.hpp.
#include "runtime/run_common.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include "base/available_memory.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/valgrind.hpp"
#include "heap/heap.hpp"
#include "heap/kept.hpp"
#include "runtime/debugger.hpp"
#include "runtime/forked.hpp"
#include "runtime/shared_objects.hpp"
#include "sched/policies.hpp"

namespace godwit {

namespace {

/// Never destroyed: a run that ends with its program writes it after all destructors.
std::vector<worker_stats>& last_stats() {
  static auto& stats = *new std::vector<worker_stats>;
  return stats;
}
std::function<void()> tick_;
std::chrono::milliseconds tick_every_{0};

}  // namespace

const std::vector<worker_stats>& last_run_stats() noexcept { return last_stats(); }

void on_tick(std::chrono::milliseconds interval, std::function<void()> f) {
  tick_ = std::move(f);
  tick_every_ = std::max(interval, std::chrono::milliseconds(1));
}

namespace runtime {

using transport::worker_no;
using transport::shm::near_range;

sched::segment_words* common_words(const transport::shm::segment& memory) noexcept {
  return reinterpret_cast<sched::segment_words*>(memory.common() + memory.where().words);
}

sched::segment_words& words_of(const transport::shm::segment& memory, worker_no w) noexcept {
  return *memory.at(w, common_words(memory));
}

transport::shm::layout plan_segment(const options& opts, std::uint32_t workers) noexcept {
  // Iso-address: every worker's memory has room for the stacks of all.
  const std::uint64_t regions = detail::facts_of(opts).has_all_stacks() ? workers : 1;
  return sched::host_words_first(
      transport::shm::plan(sizeof(detail::hot_words), sched::all_words_bytes,
                           sizeof(sched::host_words) + offsetof(sched::segment_words, far),
                           opts.stack_bytes * regions, opts.heap_bytes));
}

namespace {
sched::node_words& node_of(const transport::shm::segment& memory, worker_no first) noexcept {
  return memory.at(first, reinterpret_cast<sched::host_words*>(memory.common() + memory.where().host))->node;
}
}  // namespace

sched::node_words& host_words(const transport::shm::segment& memory) noexcept {
  return node_of(memory, worker_no{memory.near().first});
}

void refuse_too_many(std::uint32_t workers, std::uint64_t each, const char* what, const char* remedy) {
  constexpr std::uint64_t little = 16 << 20;  // fits, and asking takes a tenth of a millisecond
  if (workers * each <= little) return;
  const std::uint64_t available = base::available_memory();
  if (workers <= available / each) return;
  throw std::runtime_error("godwit: " + std::to_string(workers) + " workers that are " + what + " need " +
                           std::to_string(workers * each >> 20) + " MiB of memory to begin with, and " +
                           std::to_string(available >> 20) + " MiB are available: have at most " +
                           std::to_string(available / each) + " (--godwit-workers, GODWIT_WORKERS)" + remedy);
}

void prepare_words(const transport::shm::segment& memory, near_range workers) noexcept {
  const auto first_slot =
      reinterpret_cast<std::uint64_t>(memory.common() + memory.where().slots) + sizeof(detail::spawn_slot);
  for (std::uint32_t i = 0; i < workers.count; ++i) {
    sched::public_words& words = words_of(memory, worker_no{workers.first + i}).worker;
    words.top.store(first_slot, std::memory_order_relaxed);
    words.split.store(first_slot, std::memory_order_relaxed);
  }
}

void complete_memory(run_state& r) {
  launch& what = r.what;
  prepare_words(what.memory, r.own);
  const std::uint64_t bytes = choose_global_bytes(what.opts);
  what.global_space = plan_global(what.opts, bytes, what.job.workers);
  what.global.create(bytes);
  what.memory.set_window(what.global.base(), what.global.bytes());
  prepare_global(what.global.base(), what.opts);
}

namespace {
std::uint64_t addresses_for_heap(std::uint32_t hosts) noexcept {
  constexpr std::uint64_t most_of_all = std::uint64_t{1} << 44;
  const std::uint64_t most = std::min(std::uint64_t{1} << 40, std::bit_floor(most_of_all / hosts));
  const std::uint64_t bytes = transport::shm::window::largest(most, hosts);
  if (bytes == most) return most;
  constexpr std::uint64_t least = std::uint64_t{256} << 20;  // scarce addresses: most are the program's
  return bytes / 4 >= least ? bytes / 4 : 0;
}
}  // namespace

std::string why_no_heap() {
  if (base::runs_under_valgrind()) return "the program runs under valgrind";
  if (const std::string whose = heap::other_malloc(); !whose.empty())
    return "the program's malloc is " + whose;
  return addresses_for_heap(1) != 0 ? "" : "there are too few addresses (ulimit -v, ulimit -f)";
}

std::uint64_t possible_heap_bytes(const options& opts, std::uint32_t hosts) noexcept {
  if (opts.heap == choice::heap::separate)
    return 0;  // an emulator keeps a record for each page it is asked for
  return !base::runs_under_valgrind() && heap::is_ours() ? addresses_for_heap(hosts) : 0;
}

bool wants_heap(const options& opts, std::uint64_t bytes) {
  if (opts.heap == choice::heap::separate && opts.check_heap)
    throw std::invalid_argument(
        "godwit: --godwit-check-heap (GODWIT_CHECK_HEAP) looks at the heap that workers share, and with "
        "--godwit-heap=private (GODWIT_HEAP) there is none: leave one of them away");
  if (opts.heap == choice::heap::separate) return false;
  if (bytes != 0) return true;
  if (opts.heap == choice::heap::automatic && !opts.check_heap) return false;
  const std::string refused = std::string("godwit: ") +
                              (opts.heap == choice::heap::shared
                                   ? "--godwit-heap=shared (GODWIT_HEAP)"
                                   : "--godwit-check-heap (GODWIT_CHECK_HEAP), which needs a shared heap,") +
                              " cannot be had: ";
  const std::string here = why_no_heap();
  throw std::invalid_argument(
      refused + (here.empty() ? "another rank cannot have it" : here) +
      ". Use --godwit-heap=private, or --godwit-substrate=threads, where all workers have one");
}

void make_heap(run_state& r) {
  launch& what = r.what;
  if (what.heap = shared_objects::for_run(what.opts, r.own.count); what.heap != nullptr) return;
  const std::uint64_t bytes = possible_heap_bytes(what.opts);
  if (!wants_heap(what.opts, bytes)) return;
  what.own_heap.create(bytes, true);
  heap::begin(what.own_heap.base(), bytes, r.own.count, 0, what.opts.check_heap);
  what.heap = &what.own_heap;
}

void end_heap(run_state& r, bool in_order) noexcept {
  if (r.what.heap == nullptr) return;
  if (r.what.heap == &r.what.own_heap)
    heap::end();
  else
    shared_objects::after_run(in_order);
}

void go_by(transport::mpi::way how, launch& what) noexcept {
  using transport::mpi::way;
  what.job.whole_host_calls = how == way::server || how == way::assist;
  what.job.steals_by_call = how != way::rma && what.opts.far_steal == choice::far_steal::call;
  what.job.serves_itself = how == way::am;
}

std::uint32_t companions_of_host(transport::mpi::way how, const options& opts) {
  if (how == transport::mpi::way::server) return opts.companions;
  if (opts.companions != 1)
    throw std::invalid_argument(
        "godwit: companions: only way=server has some for several ranks: leave --godwit-companions "
        "(GODWIT_COMPANIONS) away, or set --godwit-way=server (GODWIT_WAY)");
  return ~0u;
}

namespace {

/// While workers are forked: they get to know which objects of this process to keep.
struct keeping {
  keeping() {
    if (const std::string problem = heap::find_kept(); !problem.empty())
      std::fprintf(stderr,
                   "godwit: warning: %s: an object that is owned by a std::shared_ptr made before run may be "
                   "destroyed in threads that copy it: pass references to it instead\n",
                   problem.c_str());
  }
  ~keeping() { heap::forget_kept(); }
  keeping(const keeping&) = delete;
  keeping& operator=(const keeping&) = delete;
};

}  // namespace

std::string fork_workers(launch& what, near_range own, family& workers) {
  flush_output();              // or every worker would write it again
  static bool warned = false;  // by workers of an earlier run
  if (what.heap == nullptr && what.opts.private_heap && what.job.workers > 1) {
    if (!stack::steers_heaps()) return std::string("godwit: ").append(equal_heaps);
    what.warns_of_heaps = !std::exchange(warned, true);
  }
  const keeping kept;
  for (std::uint32_t w = own.first + own.count; w-- > own.first;) {
    describe_to_debuggers(what, debug_no_worker);  // workers write their number over it
    const pid_t pid = fork_worker();
    if (pid == 0) worker_main(what, worker_no{w});
    if (pid < 0)
      return "godwit: cannot fork worker " + std::to_string(w) + ": " + std::strerror(errno) +
             ": raise the limit on processes (ulimit -u) or lower --godwit-workers";
    workers.add(w, pid);
  }
  return {};
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

std::vector<worker_stats> own_stats(const run_state& r) {
  std::vector<worker_stats> stats;
  for (std::uint32_t i = 0; i < r.own.count; ++i) {
    const worker_no w{r.own.first + i};
    stats.push_back(words_of(r.what.memory, w).worker.stats);
    r.what.rings->count(w, stats.back());
  }
  return stats;
}

void keep_stats(std::vector<worker_stats> all) { last_stats() = std::move(all); }

const sched::result_words& root_words(const transport::shm::segment& memory) noexcept {
  return memory.at<sched::record>(sched::root_record(memory.where()))->result;
}

void take_root_result(const transport::shm::segment& memory, const sched::result_words& root,
                      detail::run_result& result) {
  const std::byte* bytes =
      root.object == 0 ? root.small
                       : reinterpret_cast<const std::byte*>(memory.at<sched::object>(root.object) + 1);
  result.threw = root.kind == detail::outcome::error;
  result.bytes.assign(bytes, bytes + root.bytes);
}

void collect_in_process(run_state& r) {
  if (const std::string problem = flush_output(); !problem.empty())
    r.fail(base::status_failed, "godwit: " + problem);
  for (const host_facts& host : r.hosts)
    if (const sched::node_words& node = node_of(r.what.memory, worker_no{host.first_worker});
        !r.failed() && node.failed.load(std::memory_order_seq_cst) == 2)
      r.fail(base::status_failed, std::string("godwit: ") + node.message);
  if (!r.failed()) take_root_result(r.what.memory, root_words(r.what.memory), r.result);
  r.result.thrown = r.what.thrown;
}

void end_process_saying(const char* text) noexcept {
  std::fprintf(stderr, "godwit: %s\n", text);
  flush_output();
  _exit(base::status_failed);
}

}  // namespace runtime
}  // namespace godwit
