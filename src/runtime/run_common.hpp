// What the substrates have in common besides the steps (substrate.hpp): pieces that two or more of them use.
#pragma once

#include "runtime/family.hpp"
#include "runtime/substrate.hpp"
#include "transport/mpi/companion.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace godwit::runtime {

// Memory.

/// A worker's words at the common address.
sched::segment_words* common_words(const transport::shm::segment& memory) noexcept;
/// Those of worker @p w of this host.
sched::segment_words& words_of(const transport::shm::segment& memory, transport::worker_no w) noexcept;
/// The words that the workers of this host share.
sched::node_words& host_words(const transport::shm::segment& memory) noexcept;
transport::shm::layout plan_segment(const options& opts, std::uint32_t workers) noexcept;
/// Throws std::runtime_error if @p workers workers surely do not fit into the memory that is available:
/// @p each bytes, at least, for each of them, who are @p what ("processes"). @p remedy ends its text. Else
/// they could take the machine down with them.
void refuse_too_many(std::uint32_t workers, std::uint64_t each, const char* what, const char* remedy);
/// Make the words of @p workers valid before anybody can look at them. In a process that maps them, before
/// the fork.
void prepare_words(const transport::shm::segment& memory, transport::shm::near_range workers) noexcept;
/// Where one process makes all memory: after the segments are mapped, their words, and global memory, which
/// gets the addresses that they leave.
void complete_memory(run_state& r);
/// Why workers that are processes could not share a heap in this program, for people. Empty: they could.
std::string why_no_heap();
/// What a heap that workers of a host share could have in this program, in bytes of addresses, if each of so
/// many hosts has one; 0: there can or shall be none.
std::uint64_t possible_heap_bytes(const options& opts, std::uint32_t hosts = 1) noexcept;
/// Do they share one of so many bytes? Throws std::invalid_argument if they must, and cannot.
bool wants_heap(const options& opts, std::uint64_t bytes);
/// The heap of this process's workers, if they share one: their own, or that of main's shared objects.
/// Before the fork. Throws as wants_heap does.
void make_heap(run_state& r);
/// @p in_order: no worker was killed.
void end_heap(run_state& r, bool in_order) noexcept;

// Several hosts.

/// Workers reach other hosts' by @p how.
void go_by(transport::mpi::way how, launch& what) noexcept;
/// How many of each host carry its requests, if there are so many. Throws if the option does not go with it.
std::uint32_t companions_of_host(transport::mpi::way how, const options& opts);

// Workers that are forked.

/// Fork the workers @p own, the first one last. Gives back why not all could be had; empty: they were.
std::string fork_workers(launch& what, transport::shm::near_range own, family& workers);

// While workers run, and afterwards.

/// Call on_tick's function if it is due. Gives back the milliseconds until it is due again, -1: there is
/// none.
int tick(std::uint64_t& next_tick_ns);
void last_tick();
/// The counters of the own workers.
std::vector<worker_stats> own_stats(const run_state& r);
/// What last_run_stats gives from now on.
void keep_stats(std::vector<worker_stats> all);
/// How the root thread ended. Where worker 0's memory is mapped.
const sched::result_words& root_words(const transport::shm::segment& memory) noexcept;
/// Where workers are in this process: how the run ended, and its result.
void collect_in_process(run_state& r);
/// Likewise the hook of fatal errors: the process ends with @p text.
void end_process_saying(const char* text) noexcept;
/// The value or exception that @p root tells of, into @p result. Where the memory that holds it is mapped.
void take_root_result(const transport::shm::segment& memory, const sched::result_words& root,
                      detail::run_result& result);

}  // namespace godwit::runtime
