// Is the caller a worker's OS thread? On x86-64 an OS thread that a thread starts has its worker's register.
// Called by: background_run.cpp, slow_path.cpp. Tests: tests/threads/background_test.cpp,
// tests/io/poll_test.cpp.
#pragma once

namespace godwit::runtime {

/// In a run. On other substrates than threads the answer is always yes. A system call only where it is no.
bool caller_is_worker() noexcept;

}  // namespace godwit::runtime
