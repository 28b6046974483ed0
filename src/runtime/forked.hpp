// fork() called by a thread: what the child gets, and what it is told when it goes on as a worker.
//
// A worker process runs its threads on memory that it shares with the other workers, so parent and child of a
// plain fork would run on the same stack. Around a fork the thread's frames therefore lie in private memory:
// they are moved there before, the child keeps them (copied on write, as everything else of it), and the
// parent moves them back. The scheduler is not in the child: spawn, join and everything else that needs a
// worker say so and end it. The heap that workers share is mapped privately in the child: neither what it
// writes nor what it frees reaches the run. But it is no snapshot: in pages that the child has not written it
// sees what the run writes. vfork, posix_spawn, system and popen need nothing of this. Where workers
// are threads the memory is private anyway, and only that about the scheduler applies.
// A child that main forks, with objects that it shares with workers, gets a copy of those in the same way.
// Called by: run.cpp, slow_path.cpp, worker_process.cpp, shared_objects.cpp. docs/writing-programs.md.
// Test: tests/api/fork_test.cpp.
#pragma once

#include "transport/shm/window.hpp"

#include <csignal>
#include <sys/types.h>

namespace godwit::runtime {

/// From now on forks of this process and its children are looked after. Before workers start; once is enough.
void watch_forks() noexcept;

/// fork() of a process that becomes a worker: no copy.
pid_t fork_worker() noexcept;

/// A worker: its children get a copy of @p heap.
void keep_from_children(transport::shm::window& heap) noexcept;

/// The signals that the caller of run had blocked: workers that are threads block what is not theirs.
const sigset_t& mask_of_run() noexcept;

/// This process was made by fork() in a thread.
bool in_forked_child() noexcept;

}  // namespace godwit::runtime
