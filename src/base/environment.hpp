// The process's environment block, whose home is base (as getenv's is).
//
// Called by src/runtime/worker_process.cpp in every worker. Test: tests/base/environment_test.cpp.
#pragma once

namespace godwit::base {

/// Move the array of environment pointers from the initial stack to the heap, so that getenv and setenv go on
/// working when that stack becomes read-only. Local.
void move_environment();

/// It has this variable, which is a switch that is on ("1", "yes"...).
bool environment_asks(const char* variable);

}  // namespace godwit::base
