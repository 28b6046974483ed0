// run on the substrate sim: all workers in this process, on one OS thread, in virtual time.
//
// The scheduler is the real one, as with processes: threads run in a region at one address and are copied.
// What is simulated is what lies around it: time and the CPUs (src/sim). Each worker has a seat of the
// engine. docs/scale.md, docs/decisions/0019-sim.md. Tests: tests/sim, and suites of tests/api
// (tests/sim/extras.cmake).
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/blocking_calls.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/code_place.hpp"
#include "base/cpu.hpp"
#include "base/world.hpp"
#include "context/context.hpp"
#include "heap/heap.hpp"
#include "heap/hosts.hpp"
#include "runtime/faults.hpp"
#include "runtime/packed_stats.hpp"
#include "runtime/run_common.hpp"
#include "runtime/shared_objects.hpp"
#include "runtime/sim_hosts.hpp"
#include "sched/policies.hpp"
#include "sim/collectives.hpp"
#include "sim/engine.hpp"
#include "sim/user_clock.hpp"
#include "stack/stack.hpp"

#include <godwit/sim.hpp>

namespace godwit::detail {
bool simulated = false;
}

namespace godwit::runtime {

namespace {

using transport::worker_no;

sim::engine* engine_ = nullptr;
sim_hosts* hosts_ = nullptr;
heap::hosts* heaps_ = nullptr;  // null: all hosts have the process's malloc

void turn_to_heap(std::uint32_t seat) noexcept {
  heaps_->turn_of(hosts_->host_of_seat(seat), hosts_->is_worker(seat));
}

void end_for_foreign_block(const void* at, std::uint32_t host) noexcept {
  end_for_foreign_heap("freed", reinterpret_cast<std::uintptr_t>(at), host);
}

void exit_worker() noexcept {
  finish_worker();
  sched::this_worker().retire();
  hosts_->has_left(detail::hot().worker);
  engine_->leave();
}

sim::bytes_in_use used_region(std::uintptr_t sp) noexcept {
  const stack::range r = sched::this_worker().used_region(sp);
  return {r.low, r.high};
}

void rest_port() noexcept { sched::this_worker().here().net.far().rest(); }

void expose() noexcept { sched::this_worker().on_expose_signal(base::float_control()); }

/// The address sanitizer is told on which stack a worker goes on.
void announce(std::uintptr_t sp) noexcept {
  if (!context::sanitized()) return;
  if (detail::hot().owner == nullptr) return hosts_->announce();
  const sched::worker& w = sched::this_worker();
  if (const stack::range own = w.private_stack(); own.holds(sp))
    return context::sanitizer_on_stack(reinterpret_cast<void*>(own.low), own.high - own.low);
  stack::range on = w.shared_stack_of(sp);
  if (on.high == 0)
    on = {w.scheduler_stack().low(), reinterpret_cast<std::uintptr_t>(w.scheduler_stack().end())};
  context::sanitizer_on_stack(reinterpret_cast<void*>(on.low), on.high - on.low);
}

/// As a real worker's supervisor, or a rank's launcher, is told by the operating system.
void tell_of_crash() noexcept {
  const bool is_worker = detail::hot().owner != nullptr;
  base::fatal("%s %u is dead (fault crash of --godwit-sim-faults)",
              is_worker ? "worker" : "the companion of rank",
              is_worker ? detail::hot().worker : hosts_->rank_of_turn());
}

[[noreturn]] void refuse(const base::blocking_call& call) noexcept {
  base::fatal(
      "worker %u: %s, called by %s, would block. In a simulated run all workers take turns on one OS thread: "
      "nothing would go on meanwhile, and no virtual time pass. Instead, %s",
      detail::hot().worker, call.name, base::code_place(call.callers).c_str(), call.advice);
}

std::unique_ptr<sim::user_clock> clock_of(choice::sim_clock which, const sim::machine& m) {
  switch (which) {
    case choice::sim_clock::charged:
      return nullptr;
    case choice::sim_clock::measured:
      return std::make_unique<sim::machine_clock>();
    case choice::sim_clock::counted:
      break;
  }
  try {
    return std::make_unique<sim::counting_clock>(sim::instructions(), m.instructions_per_ns);
  } catch (const std::system_error& e) {
    throw std::invalid_argument(
        std::string(
            "godwit: sim_clock: there is no counter of instructions here that this process may read (") +
        e.what() +
        (e.code().value() == EACCES || e.code().value() == EPERM
             ? "; see /proc/sys/kernel/perf_event_paranoid"
             : "") +
        "): use --godwit-sim-clock=measured (GODWIT_SIM_CLOCK), or let the program charge its work "
        "(godwit::sim::charge)");
  }
}

class simulation final : public substrate {
 public:
  void plan(run_state& r) override;
  void memory(run_state& r) override;
  void start(run_state& r) override;
  void supervise(run_state& r) override;
  void collect(run_state& r) override;
  void end(run_state& r) noexcept override;

 private:
  struct seated_worker {
    transport::shm::segment memory;
    launch* what = nullptr;
    bool root = false;
  };
  static void begin(void* arg);
  sim_result result(const run_state& r) const;
  std::uint64_t bytes_taken() const;

  std::optional<sim::machine> machine_;
  std::unique_ptr<sim::user_clock> clock_;  // none: the program charges
  sim::faults faults_;
  std::optional<sim_hosts> hosts_of_run_;
  std::unique_ptr<sim::engine> engine_of_run_;
  std::vector<seated_worker> workers_;
  std::optional<alternate_stack> handlers_run_here_;
  std::uint64_t began_ns_ = 0, resident_before_ = 0, most_before_ = 0;
};

void simulation::plan(run_state& r) {
  options& opts = r.what.opts;
  machine_ = sim::read_machine(opts.sim_machine);
  clock_ = clock_of(opts.sim_clock, *machine_);
  faults_ = sim::faults::of(opts.sim_faults);
  if (opts.directory != choice::directory::software && opts.sim_hosts > 1)
    throw std::invalid_argument(
        "godwit: directory: simulated hosts have no datagrams: leave --godwit-directory (GODWIT_DIRECTORY) "
        "away");
  if (opts.seed == 0) opts.seed = opts.sim_seed;  // the same run again
  const std::uint32_t workers = opts.workers != 0 ? opts.workers : r.what.cpus * opts.sim_hosts;
  const std::uint32_t hosts = std::min(opts.sim_hosts, workers);  // others would have nothing to do
  r.plan_one_host(workers);
  using transport::mpi::way;
  const way how = opts.way == choice::way::rma      ? way::rma
                  : opts.way == choice::way::assist ? way::assist
                  : opts.way == choice::way::am     ? way::am
                                                    : way::server;
  hosts_of_run_.emplace(workers, hosts, how, companions_of_host(how, opts), faults_, opts.sim_seed);
  sched::job_shape& job = r.what.job;
  job.in_process = job.takes_turns = true;
  job.hosts = hosts_of_run_->all().data();
  job.host_count = hosts;
  job.no_rank_calls = "simulated hosts have no ranks: on_rank needs processes that an MPI launcher started";
  r.what.cpus = hosts_of_run_->all().front().count;  // each worker has one of its own
  r.cpus = workers;
  if (hosts_of_run_->several()) go_by(how, r.what);
  r.hosts.clear();
  for (const auto& [first, count] : hosts_of_run_->all())
    r.hosts.push_back({machine_->name + "-" + std::to_string(r.hosts.size()), first, count});
}

/// 16 GiB of addresses for all stacks and 64 for all heaps, unless the options say how much each worker
/// has. Memory is what they touch, and the fewer addresses lie between that, the fewer page tables. (Policy
/// iso: the region holds the stacks of all, and each segment has room for one, which it does not use.)
void simulation::memory(run_state& r) {
  launch& what = r.what;
  resident_before_ = resident_bytes();
  most_before_ = most_resident_bytes();
  constexpr std::uint64_t kib = 1 << 10, most = 256 << 20, gib = 1 << 30;
  const auto bytes = [&](std::uint64_t asked, std::uint64_t otherwise, std::uint64_t all,
                         std::uint64_t least) {
    return asked != otherwise ? asked : std::clamp(all / std::bit_ceil(r.own.count), least, most);
  };
  const options usual;
  const std::uint64_t stack_bytes = bytes(what.opts.stack_bytes, usual.stack_bytes, 16 * gib, 128 * kib);
  const std::uint64_t parts = detail::facts_of(what.opts).has_all_stacks() ? r.own.count : 1;
  what.memory.create_in_turn(
      r.own.count, transport::shm::plan_in_turn(
                       {.companion = sim_hosts::companion_stack_bytes,
                        .host = sizeof(sched::host_words),
                        .scheduler = stack::scheduler_stack_bytes,
                        .hot = sizeof(detail::hot_words),
                        .words = offsetof(sched::segment_words, far) +
                                 transport::far::bytes_without_bounce(hosts_of_run_->fewest_ring_halvings()),
                        .words_in_page = offsetof(sched::segment_words, far.inbox),
                        .heap = bytes(what.opts.heap_bytes, usual.heap_bytes, 64 * gib, 512 * kib),
                        .slots = stack_bytes / 40 * 64 + 4096,
                        .stack = stack_bytes * parts}));
  prepare_words(what.memory, r.own);
  hosts_of_run_->spare_memory(what.memory);
  hosts_of_run_->make_windows(what);
  if (!hosts_of_run_->several()) return;
  const std::uint64_t heap_bytes = possible_heap_bytes(what.opts);
  if (!wants_heap(what.opts, heap_bytes)) return;
  heaps_ = &heap::hosts::begin(static_cast<std::uint32_t>(r.hosts.size()), heap_bytes, end_for_foreign_block);
  what.job.hosts_heaps = heaps_->addresses();
}

/// On the stack between turns, which it leaves.
void simulation::begin(void* arg) {
  auto& w = *static_cast<seated_worker*>(arg);
  sched::this_worker().start(w.root ? root_thread : nullptr, w.what);
}

void simulation::start(run_state& r) {
  launch& what = r.what;
  shared_objects::before_run_here();
  base::set_fatal_hook(end_process_saying);
  install_handlers_of_process();
  handlers_run_here_.emplace();
  const options& opts = what.opts;
  engine_of_run_ = std::make_unique<sim::engine>(sim::engine_setup{
      .seats = r.own.count + hosts_of_run_->companions(),
      .model = &*machine_,
      .seed = opts.sim_seed,
      .clock = clock_.get(),
      .jitter_ns = opts.sim_jitter_ns,
      .lead_ns = opts.sim_lead_ns,
      .limit_ns = opts.sim_limit_ms != 0 ? opts.sim_limit_ms * 1'000'000 : base::no_limit,
      .faults = faults_,
      .in_use = used_region,
      .on_charge = rest_port,
      .on_interrupt = expose,
      .on_death = tell_of_crash,
      .on_turn = announce,
      .on_change = heaps_ != nullptr ? turn_to_heap : nullptr,
  });
  engine_ = engine_of_run_.get();
  hosts_ = &*hosts_of_run_;
  began_ns_ = base::system_ns();
  base::use_world(engine_);
  detail::simulated = true;
  hosts_->sit_down(what, *engine_, *machine_, r.own.count);
  sched::worker_hooks hooks{.exit_worker = exit_worker, .unseen_error = unseen_error};
  if (hosts_->several()) {
    hooks.heap_in_use = heap::in_use;
    hooks.is_free = heap::is_free;
    hook_global(hooks, opts);
    hook_parcels(hooks);
  }
  workers_.resize(r.own.count);
  const bool stays = detail::facts_of(opts).has_all_stacks();  // what lies in the region
  for (std::uint32_t i = 0; i < r.own.count; ++i) {
    seated_worker& w = workers_[i];
    w = {hosts_->view_of(what.memory, i), &what, i == 0};
    what.job.my_host = hosts_->host_of(i);
    what.job.bell_of = hosts_->bell_of(i);
    auto* hot = new (w.memory.common() + w.memory.where().hot) detail::hot_words();
    context::use_hot_words(hot);
    begin_worker(what, w.memory, worker_no{i}, hosts_->window_of(what.job.my_host), hooks);
    hot->one_heap = !hosts_->several() && opts.heap != choice::heap::separate ? 1 : 0;
    hot->host_heap = heaps_ != nullptr ? 1 : hot->one_heap;
    words_of(w.memory, worker_no{i})
        .worker.pid.store(static_cast<std::uint64_t>(sim::engine::name_of(i)), std::memory_order_relaxed);
    if (stays)
      engine_->sit(i, hot, begin, &w);
    else
      engine_->sit(i, hot, begin, &w, w.memory.stacks(), w.memory.kept_stacks(worker_no{i}),
                   sched::this_worker().here().net.far().looked_at());
  }
}

void simulation::supervise(run_state& r) {
  {
    const base::no_blocking_calls meanwhile(refuse);
    engine_->run();
    if (heaps_ != nullptr) heaps_->turn_of_nobody();
  }
  r.sim = result(r);
  if (!r.what.opts.quiet) std::fputs(r.sim->line().c_str(), stderr);
  if (const stack::range& mine = r.what.main_stack; mine.high != 0)
    context::sanitizer_on_stack(reinterpret_cast<void*>(mine.low), mine.high - mine.low);
  for (const seated_worker& w : workers_) {
    context::use_hot_words(reinterpret_cast<detail::hot_words*>(w.memory.common() + w.memory.where().hot));
    const sched::scheduler_stack& left = sched::this_worker().scheduler_stack();
    context::sanitizer_forget(left.low(), reinterpret_cast<std::uintptr_t>(left.end()));
    sched::end_worker();
  }
  hosts_->forget_frames();
  context::use_hot_words(nullptr);
  end(r);  // what follows happens in a process like any other
}

/// Of a worker's counters, as a real rank of its own would send them.
std::uint64_t most_packed_bytes(const run_state& r) {
  std::size_t most = 0;
  for (const worker_stats& s : own_stats(r)) most = std::max(most, pack({&s, 1}).size());
  return most;
}

/// Of memory, at the most; at the end, if the process had as much before.
std::uint64_t simulation::bytes_taken() const {
  const std::uint64_t most = most_resident_bytes();
  return std::max(most > most_before_ ? most : resident_bytes(), resident_before_) - resident_before_;
}

sim_result simulation::result(const run_state& r) const {
  return {.machine = machine_->name,
          .workers = r.own.count,
          .hosts = static_cast<std::uint32_t>(r.hosts.size()),
          .measured = clock_ != nullptr,
          .turns = engine_of_run_->tally(),
          .net = hosts_of_run_->several() ? std::optional(hosts_of_run_->traffic()) : std::nullopt,
          .collectives_ns =
              hosts_of_run_->several()
                  ? sim::collectives_ns(*machine_, r.own.count, static_cast<std::uint32_t>(r.hosts.size()),
                                        most_packed_bytes(r))
                  : 0,
          .here_seconds = static_cast<double>(base::system_ns() - began_ns_) / 1e9,
          .memory_bytes = bytes_taken()};
}

void simulation::end(run_state&) noexcept {
  if (heaps_ != nullptr) heap::hosts::end(*std::exchange(heaps_, nullptr));
  if (engine_ == nullptr) return;  // not started, or ended
  engine_ = nullptr;
  hosts_ = nullptr;
  detail::simulated = false;
  base::use_world(nullptr);
  base::set_fatal_hook(nullptr);
  handlers_run_here_.reset();
  restore_meanings();
}

void simulation::collect(run_state& r) {
  keep_stats(own_stats(r));
  if (hosts_of_run_->several() && tells_heat(r.what.opts))
    for (std::uint32_t h = 0; h < r.hosts.size(); ++h) r.heat.add(heat_of(hosts_of_run_->window_of(h)));
  collect_in_process(r);
}

}  // namespace

std::unique_ptr<substrate> make_sim(const options&) {
  tell_of_deaths();
  return std::make_unique<simulation>();
}

}  // namespace godwit::runtime

void godwit::detail::sim_charge(std::uint64_t ns) noexcept { runtime::engine_->charge(ns); }
std::uint64_t godwit::detail::sim_now_ns() noexcept { return runtime::engine_->now_ns(); }
