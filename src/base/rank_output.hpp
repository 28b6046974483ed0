// Standard output of the ranks of an MPI program: what main prints before and after run appears once.
//
// Every rank executes main, but on one machine main runs once and only threads print from wherever they are.
// So before main, ranks other than 0 turn descriptor 1 to /dev/null; run opens it while the workers live.
// Standard error stays. GODWIT_OUTPUT=all leaves everything as it is. Programs that such a main starts
// inherit the descriptor.
// Called by base/fixed_layout.cpp (constructor) and src/runtime. Test: tests/mpi/layout_check.cpp.
#pragma once

namespace godwit::base {

/// Give stdout the buffering that it would choose for what descriptor 1 is now, in a buffer that is not on
/// the heap: stdio's own has another size for a terminal than for /dev/null, and everything that main
/// allocates later would lie elsewhere in rank 0. Before main, in all ranks; silence_output comes after it.
void settle_output() noexcept;

/// Keep descriptor 1 aside, close-on-exec, and turn it to /dev/null. Before main, by one thread.
void silence_output() noexcept;

/// Flush stdout and std::cout into what descriptor 1 is now, then swap it back to what it was at the start,
/// or to /dev/null again. Nothing happens in a process that was not silenced, or when it is so already.
/// The descriptor is the process's, so a forked worker swaps its own. One thread at a time; few system calls.
void open_output() noexcept;
void close_output() noexcept;

/// In a worker: standard output is written at the end of each line, so that lines of several processes that
/// share it stay whole.
void write_whole_lines() noexcept;

}  // namespace godwit::base
