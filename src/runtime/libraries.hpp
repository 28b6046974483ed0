// Libraries of the program that have threads of their own, which workers that are forked do not have.
//
// Called by: run_processes.cpp, run_mpi.cpp. docs/writing-programs.md. Test: tests/api/libraries_test.cpp.
#pragma once

#include "stack/stack.hpp"

namespace godwit::runtime {

/// Before workers are forked: libraries that know how to end their threads. They start new ones where they
/// are used next.
void end_threads_of_libraries() noexcept;

/// If this process has other threads than the calling one and the initial one: one line on standard error
/// that names them. Once per process. Where there are any it waits up to 20 ms for those that are about to
/// end.
void warn_of_threads() noexcept;

/// The calling OS thread is the only one of this process. False also if the system does not tell.
bool has_one_thread() noexcept;

/// In a forked worker: take away the code of the MPI library that the program calls, if it does, so that a
/// call of MPI is a fault. A worker is no rank: what it sent would corrupt its rank's messages. Gives back
/// where that code lies; empty: there is none, or it is part of the program itself.
stack::range forbid_mpi() noexcept;

}  // namespace godwit::runtime
