// run on the substrate threads: the workers are OS threads of this process.
//
// The same scheduler, records and deques as with processes, over one private mapping in which every worker's
// segment lies once (segment::create_in_place). Threads have stacks of their own (stack/pool.hpp), so a steal
// or a suspension moves no bytes, and pointers of the program mean the same everywhere. What cannot be had: a
// fault or a fatal error cannot be kept from the caller of run: they end the process. docs/threads.md,
// docs/decisions/0011-threads.md. Test: all of tests/api, with GODWIT_SUBSTRATE=threads.
#include <algorithm>
#include <bit>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <pthread.h>
#include <stdexcept>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/thread_sanitizer.hpp"
#include "base/valgrind.hpp"
#include "base/world.hpp"
#include "context/context.hpp"
#include "io/events.hpp"
#include "runtime/debugger.hpp"
#include "runtime/faults.hpp"
#include "runtime/monitor.hpp"
#include "runtime/run_common.hpp"
#include "runtime/shared_objects.hpp"
#include "runtime/stuck.hpp"
#include "sched/policies.hpp"
#include "stack/pool.hpp"

namespace godwit::runtime {

namespace {

constexpr std::size_t least_own_stack = 32 << 10;    // of the thread that calls run
constexpr std::size_t first_stack_bytes = 64 << 10;  // between the OS thread's own stack and the worker's

/// One OS thread that is a worker.
struct worker_thread {
  transport::worker_no me{};
  transport::shm::segment memory;
  std::uintptr_t way_back = 0;  ///< its own stack, while it is a worker
  pthread_t handle{};
};

/// The workers of a run and what they share.
struct team final : substrate {
  team() = default;
  team(std::uint64_t threads, std::span<const int> signals)
      : room(threads), ends_in_midst(true), open_signals(signals) {}
  void plan(run_state& r) override;
  void memory(run_state& r) override;
  void start(run_state& r) override;
  void supervise(run_state& r) override;
  void collect(run_state& r) override;
  void add_events(run_state& r) override;
  void end(run_state& r) noexcept override;

  std::vector<worker_stats> stats_now(const run_state& r) const;
  sched::worker* worker_of(std::uint32_t number) const noexcept;

  const std::uint64_t room = 0;  ///< for the stacks of so many threads, if it can be had
  const bool ends_in_midst = false;
  const std::span<const int> open_signals = usual_open_signals;
  run_state* run = nullptr;
  launch* what = nullptr;
  stack::pool stacks;
  transport::shm::near_range all;  ///< workers, spare ones included
  std::uint32_t regular = 0;       ///< of these, no spares
  std::uint32_t started = 0;       ///< that have an OS thread. W who called run
  pthread_attr_t attributes;       ///< of those
  std::vector<worker_thread> workers;
  std::optional<monitor> spares;
  std::atomic<std::uint32_t> running{0};  ///< futex: changes when one ends
};
team* team_ = nullptr;
const detail::event_source* events_ = nullptr;

void exit_worker() noexcept {
  finish_worker();
  godwit_ctx_resume_suspended(team_->workers[transport::index(sched::this_worker().here().me)].way_back, 0);
}

void enter(void* arg, std::uintptr_t sp) {
  auto& t = *static_cast<worker_thread*>(arg);
  t.way_back = sp;
  sched::this_worker().start(t.me == transport::worker_no{0} ? root_thread : nullptr, team_->what);
}

void* worker_main(void* arg) {
  auto& t = *static_cast<worker_thread*>(arg);
  launch& what = *team_->what;
  const std::uint32_t number = transport::index(t.me);
  {
    char name[16];
    std::snprintf(name, sizeof name, "godwit-%u", number);
    pthread_setname_np(pthread_self(), name);
  }
  sigset_t set;  // stop signals and the like are for the program's other threads
  sigfillset(&set);
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&set, s);
  for (const int s : team_->open_signals) sigdelset(&set, s);
  pthread_sigmask(SIG_SETMASK, &set, nullptr);
  {
    const alternate_stack handlers_run_here;
    if (number < team_->regular) bind_to_cpu(what.bind_to, number);
    t.memory = what.memory.seen_by(t.me);
    auto* hot = new (t.memory.common() + t.memory.where().hot) detail::hot_words();
    context::use_hot_words(hot);
    begin_worker(what, t.memory, t.me, what.global.base(),
                 {.exit_worker = exit_worker, .unseen_error = unseen_error, .events = events_});
    const stack::range own = stack::whole_system_stack();
    std::byte* low = stack::map_private(first_stack_bytes);
    context::sanitizer_on_stack(low, first_stack_bytes, context::stack_of::os_thread);
    godwit_ctx_suspend(low + first_stack_bytes, enter, &t);
    context::sanitizer_on_stack(reinterpret_cast<void*>(own.low), own.high - own.low,
                                context::stack_of::os_thread);
    stack::unmap_private(low, first_stack_bytes);
    sched::end_worker();
    context::use_hot_words(nullptr);
  }
  team_->running.fetch_sub(1, std::memory_order_seq_cst);
  monitor::worker_ended(host_words(what.memory));
  base::wake(team_->running, 1, base::reach::this_process);
  return nullptr;
}

/// Of what the process may have of @p what (RLIMIT_AS: addresses, ulimit -v; RLIMIT_DATA: memory that can be
/// written, touched or not, ulimit -d), a half: the rest is the program's.
std::uint64_t budget_of(decltype(RLIMIT_AS) what) noexcept {
  rlimit limit{};
  return getrlimit(what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur / 2
                                                                         : ~std::uint64_t{0};
}

/// Addresses for each worker's segment: as many as can be had, up to what was asked for.
void map_segments(team& t) {
  launch& what = *t.what;
  const options& opts = what.opts;
  // One page of each is its guard, and pages may have 64 KiB.
  const std::uint64_t least_stack = 4 * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t stack_bytes = std::bit_ceil(std::max(opts.thread_stack_bytes, least_stack));
  const std::uint64_t budget = budget_of(RLIMIT_AS), data = budget_of(RLIMIT_DATA);
  // A large stack for the root thread costs nothing unless there is such a limit.
  const std::uint64_t root_wanted =
      std::min(opts.stack_bytes, std::max(std::bit_floor(data / 8 / t.all.count), stack_bytes));
  const std::uint64_t root_bytes = (root_wanted + stack_bytes - 1) / stack_bytes * stack_bytes;
  const bool stacks_are_used = !detail::facts_of(opts).steals_children;
  // 256 GiB with the default of stack_bytes. Less with less: emulators pay for each page of addresses, used
  // or not, valgrind a second for 300 MiB, and ThreadSanitizer has room for few programs' addresses.
  const unsigned of_stack_bytes = base::runs_under_valgrind() || base::on_thread_sanitizer() ? 5 : 8;
  const std::uint64_t wanted =
      std::max(std::min(std::uint64_t{256} << 30, opts.stack_bytes << of_stack_bytes),
               std::bit_ceil(t.room / t.all.count * stack_bytes));
  const std::uint64_t least_heap_bytes = std::min(
      {opts.heap_bytes, std::uint64_t{16} << 20, std::max(data / 4 / t.all.count, std::uint64_t{1} << 20)});
  std::uint64_t heap_bytes = opts.heap_bytes;
  for (std::uint64_t most = std::min(wanted, (std::uint64_t{16} << 40) / t.all.count);;
       most /= 2, heap_bytes = std::max(heap_bytes / 16, least_heap_bytes)) {
    const std::uint64_t pool_bytes =
        stacks_are_used ? std::max(std::bit_floor(most), root_bytes * 2) : root_bytes;
    const auto plan = [&](std::uint64_t bytes) {
      return sched::host_words_first(transport::shm::plan_in_place(
          sizeof(detail::hot_words), sched::all_words_bytes,
          std::max<std::uint64_t>(bytes / 2048, 2 << 20) + root_bytes / 32, bytes, heap_bytes));
    };
    transport::shm::layout l = plan(pool_bytes);
    // A segment's size is rounded up to a power of two: where addresses are few, stacks get what that leaves.
    if (const auto more = plan(std::max(l.span - l.stack, 4 * stack_bytes) - 4 * stack_bytes);
        budget != ~std::uint64_t{0} && stacks_are_used && more.span == l.span &&
        more.stack_bytes > l.stack_bytes)
      l = more;
    const bool least = most / 2 < root_bytes && heap_bytes == least_heap_bytes;
    const std::uint64_t writable = t.all.count * (l.slots_bytes + l.heap_bytes + l.stack_bytes);
    if (!least && (transport::shm::segment::total_bytes(t.all.count, l) + l.span > budget || writable > data))
      continue;
    try {
      what.memory.create_in_place(t.all.count, l);
    } catch (const std::runtime_error&) {
      if (least) throw;
      continue;
    }
    if (!stacks_are_used) return;
    const auto first = reinterpret_cast<std::uintptr_t>(
        what.memory.at(transport::worker_no{0}, what.memory.common() + l.stack));
    const std::uintptr_t aligned = (first + stack_bytes - 1) / stack_bytes * stack_bytes;
    t.stacks.init(aligned, l.span, t.all.count, l.stack_bytes - (aligned - first), stack_bytes, root_bytes);
    what.job.stacks = &t.stacks;
    return;
  }
}

/// The OS thread of worker @p number. Gives back the error.
int start_worker(team& t, std::uint32_t number) noexcept {
  worker_thread& w = t.workers[number];
  w.me = transport::worker_no{number};
  t.running.fetch_add(1, std::memory_order_seq_cst);
  const int error = pthread_create(&w.handle, &t.attributes, worker_main, &w);
  if (error != 0)
    t.running.fetch_sub(1, std::memory_order_seq_cst);
  else
    ++t.started;
  return error;
}

/// See stuck.hpp. All workers that are not idle wait, and the caller is the only other thread.
void look_for_stuck(stuck_watch& watch, team& t) {
  const sched::node_words& node = host_words(t.what->memory);
  const std::uint64_t before = node.idle.load(std::memory_order_seq_cst);
  const auto idle = static_cast<std::uint32_t>(sched::idle_in(before));
  std::vector<stuck_watch::wait> waits;
  for (std::uint32_t i = 0; i < t.all.count && idle != t.all.count; ++i) {
    stuck_watch::wait w{};
    const auto tid =
        words_of(t.what->memory, transport::worker_no{i}).worker.pid.load(std::memory_order_seq_cst);
    if (stuck_watch::waits(static_cast<pid_t>(tid), i, w) && !w.shared) waits.push_back(w);
  }
  const bool all = !waits.empty() && waits.size() + idle == t.all.count && stuck_watch::at_once(waits) &&
                   node.idle.load(std::memory_order_seq_cst) == before &&
                   node.outside.load(std::memory_order_seq_cst) == 0 &&
                   stuck_watch::nobody_else(getpid(), t.all.count + 1, true);
  if (!all) waits.clear();
  if (!watch.seen(waits)) return;
  const std::uintptr_t sp = waits[0].sp;
  const bool readable = t.stacks.owns(sp);
  const std::string why = describe_stuck(waits[0], reinterpret_cast<const std::uint64_t*>(sp),
                                         readable ? t.stacks.end_of(sp) - sp : 0) +
                          "\n";
  static_cast<void>(!write(2, why.data(), why.size()));
  if (ftrylockfile(stdout) == 0) std::fflush(stdout);  // else it waits for just that
  _exit(base::status_failed);
}

void team::plan(run_state& r) {
  if (rlimit stack{}; getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < least_own_stack)
    throw std::runtime_error(
        "godwit: the process may have a stack of " + std::to_string(stack.rlim_cur >> 10) +
        " KiB only: raise the limit (ulimit -s) to " + std::to_string(least_own_stack >> 10) + " or more");
  what = &r.what;
  regular = what->opts.workers != 0 ? what->opts.workers : what->cpus;
  what->job.spares = what->opts.spare_workers;
  what->job.in_process = true;
  r.plan_one_host(regular + what->job.spares);
  all = r.own;
  r.hosts[0].workers = regular;
  if (!what->opts.trace.empty()) r.spares = what->job.spares;
}

void team::memory(run_state& r) {
  constexpr std::uint64_t least_each = 32 << 10;  // of a worker that has not done anything
  refuse_too_many(all.count, least_each, "threads", "");
  map_segments(*this);
  complete_memory(r);
}

void team::start(run_state& r) {
  run = &r;
  if (ends_in_midst) r.outputs->pause();  // until it exits
  team_ = this;
  describe_to_debuggers(*what, debug_no_worker);
  shared_objects::before_run_here();
  install_handlers_of_process();
  base::set_fatal_hook(end_process_saying);
  events::begin_run(what->opts.delay_us);
  if (events_ == nullptr) events_ = &events::source();
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{256} << 10);
  workers.resize(all.count);
  if (what->job.spares != 0)
    spares.emplace(monitor_setup{
        .memory = &what->memory,
        .regular = regular,
        .spares = what->job.spares,
        .running = &running,
        .start = [this](std::uint32_t number) { return start_worker(*this, number) == 0; },
        .handle = [this](std::uint32_t number) { return workers[number].handle; },
    });
  for (std::uint32_t i = regular; i-- > 0;)
    if (const int error = start_worker(*this, i); error != 0)
      base::fatal(
          "cannot start worker %u as a thread: %s: raise the limit on processes (ulimit -u) or lower "
          "--godwit-workers",
          i, std::strerror(error));
}

void team::supervise(run_state& r) {
  auto next_tick = base::now_ns();
  stuck_watch stuck(all.count);
  for (;;) {
    const int tick_ms = tick(next_tick);
    const int wait_ms = spares ? tick_ms : stuck.sleep_ms(tick_ms);
    // a function that is called now and then might let them go
    if (!spares && tick_ms < 0 && stuck.due()) look_for_stuck(stuck, *this);
    const std::uint32_t seen = running.load(std::memory_order_seq_cst);
    if (seen == 0) break;
    if (spares)
      spares->round(wait_ms);
    else
      base::wait_on(running, seen,
                    wait_ms < 0 ? base::no_limit : static_cast<std::uint64_t>(wait_ms) * 1'000'000,
                    base::reach::this_process);
  }
  for (std::uint32_t i = 0; i < started; ++i) pthread_join(workers[i].handle, nullptr);
  context::sanitizer_forget_stacks();
#ifndef NDEBUG
  if (what->job.stacks != nullptr && host_words(what->memory).failed.load(std::memory_order_seq_cst) == 0)
    stacks.check_invariants();
#endif
  end(r);  // the last tick and what follows happen in a process like any other
}

void team::end(run_state&) noexcept {
  if (team_ == nullptr) return;  // not started, or ended
  pthread_attr_destroy(&attributes);
  events::end_run();
  base::set_fatal_hook(nullptr);
  team_ = nullptr;
  restore_meanings();
}

/// Null: it has not started.
sched::worker* team::worker_of(std::uint32_t number) const noexcept {
  const auto* hot = what->memory.seen_by(transport::worker_no{number}).hot<detail::hot_words>();
  return static_cast<sched::worker*>(hot->owner);
}

/// One row per worker. What spares did is added to worker 0's.
void keep_rows(std::vector<worker_stats> stats, std::uint32_t rows) {
  for (std::size_t i = rows; i < stats.size(); ++i) {
    worker_stats& s = stats[i];
    // a place that is not always filled
    s.cpu_ns = s.aside_ns = 0;
    s.life_ns = s.idle_no_work_ns = s.idle_join_ns = s.idle_wait_ns = s.idle_transport_ns = 0;
    stats[0] = total_of({stats[0], s});
  }
  stats.resize(rows);
  keep_stats(std::move(stats));
}

void team::collect(run_state& r) {
  keep_rows(own_stats(r), regular);
  collect_in_process(r);
}

/// Of workers that go on.
std::vector<worker_stats> team::stats_now(const run_state& r) const {
  const std::uint64_t now = base::fast_ns();
  std::vector<worker_stats> stats;
  for (std::uint32_t i = 0; i < all.count; ++i) {
    const sched::worker* w = worker_of(i);
    stats.push_back(w != nullptr ? w->accounts().as_of(now) : worker_stats{});
    r.what.rings->count(transport::worker_no{i}, stats.back());
  }
  return stats;
}

/// In the midst of a run each worker's last event is that it had no thread up to now, or its thread's end.
void team::add_events(run_state& r) {
  const transport::shm::near_range rows{0, regular + r.spares};
  r.outputs->add(*r.what.rings, rows);
  if (!ends_in_midst || r.outputs->trace() == nullptr) return;
  const std::uint64_t now = base::fast_ns();
  for (std::uint32_t i = 0; i < rows.count; ++i) {
    sched::worker* w = worker_of(i);
    if (w == nullptr || r.what.rings->of(transport::worker_no{i}) == nullptr) continue;
    std::vector<trace::event> last = w->accounts().idle_until(now);
    if (last.empty()) {
      last.resize(1);
      last[0].time_ns = now;
      last[0].a = w->at_the_bottom();
      last[0].what = static_cast<std::uint16_t>(trace::kind::end);
    }
    r.outputs->trace()->append(i, last.data(), last.size());
  }
}

}  // namespace

void write_outputs_of_midst() {
  if (team_ == nullptr || !team_->ends_in_midst) return;
  team& t = *team_;
  run_state& r = *t.run;
  // Of the spares those that did something.
  r.spares = r.what.opts.trace.empty() ? 0 : std::max(t.started, t.regular) - t.regular;
  r.what.rings->close();
  keep_rows(t.stats_now(r), t.regular);
  r.outputs->resume();
  r.outputs->begin(t.regular + r.spares);
  write_outputs(t, r);
}

std::uint64_t most_threads() noexcept { return team_->stacks.usable(team_->all.count); }

std::unique_ptr<substrate> make_threads(const options&) {
  tell_of_deaths();
  return std::make_unique<team>();
}

std::unique_ptr<substrate> make_threads(const options&, std::uint64_t room,
                                        std::span<const int> open_signals) {
  return std::make_unique<team>(room, open_signals);
}

}  // namespace godwit::runtime

void godwit::detail::set_event_source(const event_source* source) noexcept { runtime::events_ = source; }
