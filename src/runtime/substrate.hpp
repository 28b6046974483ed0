// The steps of a run, and what a substrate supplies to them.
//
// A substrate is where workers live: forked processes, threads of this process, the ranks of an MPI job.
// run_on takes every run through the same steps and calls the substrate's function of that name in each:
//
//   plan -> memory -> start -> supervise -> collect -> add_events, and end whatever happened
//
// It does itself what all runs have in common: it refuses policies that do not fit, opens files and rings for
// events, chooses the seed, ticks, and writes what people read. The substrates are the files run_NAME.cpp,
// and run.cpp chooses among them. Document: docs/architecture.md. Test:
// tests/runtime/substrate_test.cpp.
#pragma once

#include "runtime/stats_output.hpp"
#include "runtime/trace_output.hpp"
#include "runtime/worker_process.hpp"

#include <godwit/runtime.hpp>

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace godwit::runtime {

/// A run as it looks to a process that supervises workers of it.
struct run_state {
  launch what;                         ///< what the workers inherit
  std::string problem;                 ///< why the options of this process are bad; empty: they are good
  bool speaks = true;                  ///< this process prints, ticks and writes files for the run
  std::uint64_t start_ns = 0;          ///< of its workers
  transport::shm::near_range own;      ///< the workers that this process starts
  std::vector<host_facts> hosts;       ///< as the files name them
  std::uint32_t spares = 0;            ///< spare workers with a row of their own in the trace
  unsigned cpus = 0;                   ///< that all processes of the run may use, after it; 0: as this one
  gas::heat_sums heat;                 ///< of all hosts, after the run; one host: nothing
  std::optional<sim_result> sim;       ///< after the run
  std::optional<run_outputs> outputs;  ///< where this process speaks
  detail::run_result result;

  /// All workers are on this host and this process's.
  void plan_one_host(std::uint32_t workers);
  /// The run cannot go on. It ends in order, with this result.
  void fail(int status, std::string message);
  bool failed() const noexcept { return result.status != 0; }
};

/// The functions of a substrate. Those that throw std::invalid_argument (the options) or std::runtime_error
/// (the machine) do so before the root thread runs, and end the run at once: end() follows, and kills workers
/// that run already. A run that fails later says so by run_state::fail.
class substrate {
 public:
  virtual ~substrate() = default;
  std::string notice;  ///< for people, when there is memory and before the workers start

  /// Which workers there are, on which hosts, and which are this process's: what.job, own, hosts.
  virtual void plan(run_state& r) = 0;
  /// Map the segments of this host's workers and make global memory.
  virtual void memory(run_state& r) = 0;
  /// Start the own workers: worker 0 last, because it starts the root thread.
  virtual void start(run_state& r) = 0;
  /// Until all own workers have ended, or the run has failed, here or elsewhere: then end them. Also called
  /// for a run that failed in start.
  virtual void supervise(run_state& r) = 0;
  /// The counters of all workers, and the result: the same in all processes of the run.
  virtual void collect(run_state& r);
  /// The run is traced: append the events of all workers where r.outputs is.
  virtual void add_events(run_state& r);
  /// Whatever happened: give back what the functions above made, all but r itself and its memory.
  virtual void end(run_state&) noexcept {}

  /// Do @p step in all processes of the run; if it throws in one, throw in all.
  virtual void together(const std::function<void()>& step) { step(); }
};

/// One run on @p s. @p problem: why the options of this process are bad, else empty.
detail::run_result run_on(substrate& s, const options& opts, detail::root_task& root,
                          std::string problem = {});
/// The last step: counters and events, into the files and for people.
void write_outputs(substrate& s, run_state& r);

/// Of workers as threads: the expose signal, and that of profilers.
inline constexpr int usual_open_signals[] = {SIGURG, SIGPROF};

std::unique_ptr<substrate> make_processes(const options& opts);
std::unique_ptr<substrate> make_threads(const options& opts);
/// For a run that ends with its program, in its midst. @p room: for the stacks of so many threads at a time,
/// where addresses are not limited. Workers block all signals but those of faults and @p open_signals.
std::unique_ptr<substrate> make_threads(const options& opts, std::uint64_t room,
                                        std::span<const int> open_signals = usual_open_signals);
/// In such a run, when the program exits: write what other runs write at their end, as it is now. Workers go
/// on, but no more events are noted. Once, from an OS thread that is no worker. Nothing, if there is no run.
void write_outputs_of_midst();
/// In a run on threads: so many besides the root may exist at a time, and each gets a stack when it begins.
/// Local.
std::uint64_t most_threads() noexcept;
/// Virtual time on a machine that options::sim_machine names.
std::unique_ptr<substrate> make_sim(const options& opts);
/// Collective over the ranks that the launcher started.
std::unique_ptr<substrate> make_mpi(const options& opts);

}  // namespace godwit::runtime
