// fork() called by a thread: what the child gets, and what it is told when it goes on as a worker.
//
// A worker process runs its threads on memory that it shares with the other workers, so parent and child of a
// plain fork would run on the same stack. Around a fork the thread's frames therefore lie in private memory:
// they are moved there before, the child keeps them (copied on write, as everything else of it), and the
// parent moves them back. The scheduler is not in the child: spawn, join and everything else that needs a
// worker say so and end it. vfork, posix_spawn, system and popen need nothing of this. Where workers are
// threads the memory is private anyway, and only the last part applies. Called by: run.cpp, slow_path.cpp.
// docs/writing-programs.md. Test: tests/api/fork_test.cpp.
#pragma once

namespace godwit::runtime {

/// From now on forks of this process and its children are looked after. Before workers start; once is enough.
void watch_forks() noexcept;

/// This process was made by fork() in a thread.
bool in_forked_child() noexcept;

}  // namespace godwit::runtime
