// The process environment, apart from options. Called by src/runtime in each worker.
#pragma once

namespace godwit::base {

/// Copy the array of environment variables to the heap: it begins on the stack that main got, which workers make
/// read-only, and setenv writes to it. Call once per process, before other threads exist.
void move_environment_to_heap();

}  // namespace godwit::base
