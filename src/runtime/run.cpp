// run: create the shared memory, fork the workers, supervise, collect. See include/godwit/runtime.hpp.
//
// The calling process is the supervisor: it sleeps until a worker ends, a signal arrives or a tick is due.
// Any worker that ends before the run is over ends the run: all others are killed, the reason is told once.
// The shared memory has no name and the workers die with the supervisor (parent-death signal), so nothing
// stays behind.
// Test: tests/api/run_test.cpp, tests/api/fault_test.cpp.
#include <godwit/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/fixed_layout.hpp"
#include "base/launcher.hpp"
#include "base/options.hpp"
#include "base/clock.hpp"
#include "base/world.hpp"
#include "base/valgrind.hpp"
#include "runtime/exception.hpp"
#include "runtime/faults.hpp"
#include "runtime/forked.hpp"
#include "runtime/libraries.hpp"
#include "runtime/run_common.hpp"
#include "runtime/stuck.hpp"

extern "C" [[gnu::weak]] void __tsan_init();

namespace godwit {

namespace {

using runtime::family;
using runtime::interrupt_guard;
using runtime::run_outputs;
using runtime::stuck_watch;
using runtime::trace_rings;

/// Workers that wait for ever where the scheduler does not see it: why the run cannot end, or nothing.
std::string look_for_stuck(stuck_watch& watch, const family& workers, const transport::shm::segment& memory) {
  std::vector<stuck_watch::wait> waits;
  workers.each([&](std::uint32_t worker, pid_t pid) {
    stuck_watch::wait w{};
    if (stuck_watch::waits(pid, worker, w) && stuck_watch::nobody_else(pid, 1, false)) waits.push_back(w);
  });
  if (!watch.seen(waits)) return "";
  const stuck_watch::wait& w = waits[0];
  const auto& l = memory.where();
  const std::uint64_t offset = w.sp - reinterpret_cast<std::uintptr_t>(memory.common());
  const bool readable = offset >= l.stack && offset < l.stack + l.stack_bytes;
  const auto* sp = reinterpret_cast<const std::uint64_t*>(w.sp);
  constexpr std::uint64_t most_words = 256;
  return describe_stuck(w, readable ? memory.at(transport::worker_no{w.worker}, sp) : nullptr,
                        readable ? std::min(most_words, (l.stack + l.stack_bytes - offset) / sizeof *sp) : 0);
}

/// Wait for the end of the run; fills in status and message when it did not end well.
void supervise(family& workers, interrupt_guard& stop, const transport::shm::segment& memory,
               detail::run_result& result) {
  auto next_tick = base::now_ns();
  stuck_watch stuck(memory.near().count);
  while (workers.alive() != 0) {
    workers.sleep(stop.fd(), stuck.sleep_ms(runtime::tick(next_tick)));
    if (stuck.due())
      if (std::string why = look_for_stuck(stuck, workers, memory); !why.empty()) {
        result.status = base::status_failed;
        result.message = std::move(why);
        workers.kill_all();
        return;
      }
    if (const auto got = stop.take(); got.signal != 0) {
      result.status = 128 + got.signal;
      result.message = runtime::interrupted(got);
      workers.kill_all();
      return;
    }
    for (family::end e{}; workers.next_end(e);) {
      const runtime::verdict v = runtime::judge(e, memory);
      if (v.status == 0) continue;
      result.status = v.status;
      result.message = v.message;
      workers.kill_all();
      return;
    }
  }
}

detail::run_result run_processes(const options& opts, detail::root_task& root) {
  detail::run_result result;
  runtime::check_policy(opts, 1);
  runtime::launch what;
  runtime::begin_launch(what, opts, root);
  what.job.workers = opts.workers != 0 ? opts.workers : what.cpus;
  const transport::shm::near_range all{0, what.job.workers};
  what.job.hosts = &all;
  run_outputs outputs(opts);
  outputs.begin(all.count);
  const trace_rings rings(opts, all);
  what.rings = &rings;
  if (opts.seed == 0 &&
      (opts.delay_us != 0 || opts.force_steal == "random"))  // so that a failure can be repeated
    std::fprintf(stderr, "godwit: seed %llu\n", static_cast<unsigned long long>(what.seed));

  interrupt_guard stop;
  what.memory.create(what.job.workers, runtime::plan_segment(opts, what.job.workers));
  struct unmap {
    transport::shm::segment& s;
    ~unmap() { s.destroy(); }
  } unmap_at_end{what.memory};
  const std::uint64_t global_bytes = runtime::choose_global_bytes(opts);  // of what the segments leave
  what.global_space = runtime::plan_global(opts, global_bytes, what.job.workers);
  what.global.create(global_bytes);
  what.memory.set_window(what.global.base(), what.global.bytes());
  runtime::prepare_global(what.global, opts);
  for (std::uint32_t i = 0; i < all.count; ++i) runtime::prepare_words(what.memory, transport::worker_no{i});

  const std::uint64_t start_ns = base::now_ns();
  runtime::end_threads_of_libraries();
  runtime::warn_of_threads();
  runtime::flush_output();  // or every worker would write it again
  {
    family workers;
    // Worker 0, which starts the root thread, comes last: the others are looking for work by then.
    for (std::uint32_t i = all.count; i-- > 0;)
      if (!runtime::fork_worker(what, transport::worker_no{i}, workers, result)) break;
    if (result.status == 0) supervise(workers, stop, what.memory, result);
#ifndef NDEBUG
    if (result.status == 0) sched::worker::check_host(what.memory, true);
#endif
  }
  runtime::last_tick();

  const auto* words = runtime::common_words(what.memory);
  std::vector<worker_stats> stats;
  for (std::uint32_t i = 0; i < all.count; ++i) {
    stats.push_back(what.memory.at(transport::worker_no{i}, words)->worker.stats);
    rings.count(transport::worker_no{i}, stats.back());
  }
  runtime::keep_stats(std::move(stats));
  outputs.add(rings, all);
  outputs.write(runtime::facts_of(opts, {{runtime::host_name(), 0, all.count}}, start_ns, result));
  if (result.status != 0) return result;

  runtime::take_root_result(what.memory, result);
  return result;
}

bool wants_mpi(const options& opts) {
  base::keep_fixed_layout();
  const base::launcher& l = base::detect_launcher();
  if (opts.substrate != "auto") return opts.substrate == "mpi";
  if (l.what == base::launcher::kind::slurm_without_mpi)
    throw std::invalid_argument(
        std::string("godwit: srun started several tasks, but without an MPI plugin (") + l.evidence +
        "): each would be a run of its own. Use srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list shows what "
        "there is), "
        "or set GODWIT_SUBSTRATE=processes if that is meant");
  return l.what != base::launcher::kind::none && l.size > 1;
}

}  // namespace

namespace detail {

run_result run_workers(int argc, char** argv, const options& defaults, root_task& root) {
  run_result result;
  if (detail::hot().workers != 0) {  // the same on all substrates: the thread that asked for it hears of it
    result.status = base::status_failed;
    result.message = "godwit: run was called inside a run: use spawn or invoke there";
    return result;
  }
  static std::atomic<bool> busy{false};
  if (busy.exchange(true, std::memory_order_seq_cst)) {
    result.status = base::status_failed;
    result.message = "godwit: another thread of this process is inside run: one run at a time";
    return result;
  }
  struct leave {
    ~leave() { busy.store(false, std::memory_order_seq_cst); }
  } leave_at_end;
  try {
    options opts;
    std::string problem;
    try {
      opts = base::parse_options(argc, argv, defaults);
    } catch (const std::invalid_argument& e) {
      if (!base::detect_launcher().one_of_several()) throw;
      problem = e.what();  // all ranks end for it, and one says it
    }
    if (__tsan_init != nullptr)
      throw std::invalid_argument(
          "godwit: this program is built with -fsanitize=thread, which can follow neither threads that "
          "change "
          "their stack nor workers that are processes: build it without (-fsanitize=address,undefined and "
          "valgrind work, docs/debugging.md)");
    base::fit_to_valgrind(opts);
    if (root.needs_threads()) {
      if (opts.substrate == "auto") opts.substrate = "threads";
      if (opts.substrate != "threads")
        throw std::invalid_argument(
            "godwit: this program was compiled with GODWIT_ONLY_THREADS, so substrate=" + opts.substrate +
            " cannot be had: leave --godwit-substrate (GODWIT_SUBSTRATE) away");
    }
    runtime::watch_forks();
    const runtime::standard_descriptors open_meanwhile;
    if (wants_mpi(opts)) return runtime::run_mpi(opts, problem, root);
    if (opts.substrate == "threads") runtime::tell_of_deaths();
    return opts.substrate == "threads" ? runtime::run_threads(opts, root) : run_processes(opts, root);
  } catch (const base::help_requested& help) {
    std::fputs(help.text.c_str(), stdout);
    std::exit(0);
  } catch (const std::invalid_argument& e) {
    result.status = 2;
    result.message = e.what();
  } catch (const std::runtime_error& e) {
    result.status = base::status_failed;
    result.message = e.what();
    // The launcher ends all ranks when the first has ended: let the one that writes the message do so.
    if (base::detect_launcher().one_of_several() && !is_first_process()) {
      base::nap(1'000'000'000);
    }
  }
  return result;
}

int report(const run_result& result) {
  if (result.status != 0) {
    if (is_first_process() || hot().workers != 0) std::fprintf(stderr, "%s\n", result.message.c_str());
    return result.status;
  }
  if (!result.threw) return 0;
  if (!is_first_process()) return 1;
  try {
    throw_failure(result);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "godwit: the root thread ended with an exception: %s\n", what_of(e));
  } catch (...) {
    std::fprintf(stderr, "godwit: the root thread ended with an exception that is not a std::exception\n");
  }
  return 1;
}

void throw_failure(const run_result& result) {
  if (result.status == 2) throw std::invalid_argument(result.message);
  if (result.status != 0) throw run_error(result.message, result.status);
  if (result.thrown) std::rethrow_exception(result.thrown);
  reader r(result.bytes.data(), result.bytes.size());
  throw_encoded(r);
}

}  // namespace detail
}  // namespace godwit
