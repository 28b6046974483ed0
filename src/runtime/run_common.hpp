// What both ways to run have in common: run.cpp (forked workers of one process) and run_mpi.cpp (ranks).
#pragma once

#include "runtime/family.hpp"
#include "runtime/stats_output.hpp"
#include "runtime/worker_process.hpp"

#include <godwit/runtime.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace godwit::runtime {

/// As long as it lives, descriptors 0, 1 and 2 are open, to /dev/null where the program closed them: a file
/// that a run opens must not become anybody's standard output.
class standard_descriptors {
 public:
  standard_descriptors() noexcept;
  ~standard_descriptors();
  standard_descriptors(const standard_descriptors&) = delete;
  standard_descriptors& operator=(const standard_descriptors&) = delete;

 private:
  bool opened_[3] = {};
};

/// Fill in what does not depend on the substrate.
void begin_launch(launch& what, const options& opts, detail::root_task& root);
/// Throws std::invalid_argument if the policy cannot be had with so many hosts, or not with the other
/// options.
void check_policy(const options& opts, std::size_t hosts);

transport::shm::layout plan_segment(const options& opts, std::uint32_t workers) noexcept;
/// Make the words of a worker valid before anybody can look at them. In a process that maps them, before the
/// fork.
void prepare_words(const transport::shm::segment& memory, transport::worker_no w) noexcept;
/// Fork worker @p w into @p workers. False: result says why not.
bool fork_worker(launch& what, transport::worker_no w, family& workers, detail::run_result& result);
const sched::segment_words* common_words(const transport::shm::segment& memory) noexcept;

/// Call on_tick's function if it is due. Gives back the milliseconds until it is due again, -1: there is
/// none.
std::string host_name();
/// What the root thread left, from worker 0's memory, into @p result.
void take_root_result(const transport::shm::segment& memory, detail::run_result& result);
int tick(std::uint64_t& next_tick_ns);
void last_tick();
void keep_stats(std::vector<worker_stats> all);
/// What is known at the end; needs last_run_stats.
run_facts facts_of(const options& opts, std::vector<host_facts> hosts, std::uint64_t start_ns,
                   const detail::run_result& result);

/// The substrate threads. See run_threads.cpp. @p threads: room for the stacks of so many at a time, where
/// addresses are not limited.
detail::run_result run_threads(const options& opts, detail::root_task& root, std::uint64_t threads = 0);
/// Inside such a run: so many threads besides the root may exist at a time and each gets a stack when it
/// begins. Local.
std::uint64_t most_threads() noexcept;

/// The substrate mpi: collective over the ranks that the launcher started. See run_mpi.cpp.
/// @p problem: why the options of this rank are bad, else empty.
detail::run_result run_mpi(const options& opts, std::string problem, detail::root_task& root);

}  // namespace godwit::runtime
