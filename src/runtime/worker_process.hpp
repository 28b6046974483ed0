// A worker's life in its own process: from the fork to _exit. See worker_process.cpp.
#pragma once

#include "runtime/global.hpp"
#include "runtime/trace_output.hpp"
#include "sched/worker.hpp"
#include "stack/stack.hpp"
#include "transport/shm/segment.hpp"

#include <godwit/runtime.hpp>

#include <exception>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace godwit::runtime {

/// What the supervisor decided before the fork; inherited by every worker.
struct launch {
  options opts;
  sched::job_shape job;
  std::uint32_t cpus = 0;  ///< for the workers of this host
  std::uint64_t seed = 0;
  detail::root_task* root = nullptr;
  pid_t supervisor = 0;
  stack::range main_stack;
  std::vector<int> bind_to;
  std::uint64_t canary = 0;  ///< of the stack protector, the same in the whole job; 0: that of the fork is
  transport::shm::segment memory;
  transport::shm::window global;
  transport::shm::window own_heap{transport::shm::of_heap};  ///< of this run alone
  transport::shm::window* heap = nullptr;  ///< that, or main's shared one; null: workers have the C library's
  bool warns_of_heaps = false;             ///< worker 0 says so if those are at equal addresses
  gas::space global_space;
  std::exception_ptr thrown;         ///< by the root thread, where workers are threads
  std::optional<trace_rings> rings;  ///< of the workers that this process starts
};

/// What a run is refused for, or a warning where it has begun.
inline constexpr const char* equal_heaps =
    "workers' heaps lie at equal addresses, and this malloc cannot be told to keep them apart: what a thread "
    "owns across a spawn or join (std::vector, std::string...) may silently be another value: use "
    "--godwit-substrate=threads (GODWIT_SUBSTRATE), or keep such values in leaves, with "
    "--godwit-private-heap=0 (GODWIT_PRIVATE_HEAP)";

/// Never returns. @p what is the inherited copy.
[[noreturn]] void worker_main(launch& what, transport::worker_no me);

/// The calling OS thread is worker @p me, whose view of the run's memory is @p memory. @p window: of its host
/// on global memory.
void begin_worker(launch& what, transport::shm::segment& memory, transport::worker_no me, std::byte* window,
                  const sched::worker_hooks& hooks);
/// At the end of a worker, on it: what it has counted, and what it has to complain about.
void finish_worker() noexcept;
/// On the stack of the root thread: run the root of the @p launched run and leave its result where
/// take_root_result finds it. Does not come back.
void root_thread(void* launched) noexcept;
/// An exception left a thread that nobody waits for: print it.
void unseen_error(const detail::payload& error) noexcept;
/// Bind the calling OS thread to the CPU of the @p n -th worker of this host.
void bind_to_cpu(const std::vector<int>& cpus, std::uint32_t n);

/// Flush C and C++ standard output and error, and all other C streams. If some of what was printed to the
/// standard ones is lost, now or earlier, says so. Descriptors that are closed lose nothing: nobody wanted
/// it.
std::string flush_output() noexcept;

}  // namespace godwit::runtime
