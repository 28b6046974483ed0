// What a handler of a signal must not do -- allocate, start programs, read memory that may be destroyed --
// is done in a copy of the process. Called by: src/runtime/faults.cpp.
// Test: tests/base/copy_of_process_test.cpp.
#pragma once

namespace godwit::base {

/// Call f(argument) in a copy of this process, which the calling OS thread alone runs, and which ends then.
/// Did it give back true? False also if that faults, or takes longer than @p patience_ms of real time, since
/// another OS thread may have had the lock of malloc. Nobody but the caller hears of the copy's end.
/// Not on SPARC: false.
bool done_in_copy(bool (*f)(void* argument), void* argument, int patience_ms) noexcept;

}  // namespace godwit::base
