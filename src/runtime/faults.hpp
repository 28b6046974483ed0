// Signals in worker processes: what a fault means, and the expose signal.
//
// A fault is looked up among the ranges that have a meaning (guards of the uni-address region, the
// inherited stack of main, other workers' heap windows) and reported in a sentence that says what to do.
// Test: tests/api/fault_test.cpp.
#pragma once

#include "sched/worker.hpp"
#include "stack/stack.hpp"

namespace godwit::runtime {

/// What a fault address is compared with.
struct fault_map {
  stack::range main_stack;    ///< read-only in workers
  stack::range heap_windows;  ///< of all workers together
  stack::range own_window;
  std::uint64_t window_bytes = 0;
};

/// Install handlers on an alternate stack. In the worker process, once.
void install_handlers(const fault_map& map) noexcept;

}  // namespace godwit::runtime
