// Signals in worker processes: what a fault means, and the expose signal.
//
// A fault is looked up among the ranges that have a meaning (guards of the uni-address region, the
// inherited stack of main, other workers' private heaps) and reported in a sentence that says what to do.
// Test: tests/api/fault_test.cpp.
#pragma once

#include "sched/worker.hpp"
#include "stack/stack.hpp"

#include <csignal>

namespace godwit::runtime {

/// What a fault address is compared with.
struct fault_map {
  stack::range main_stack;     ///< read-only in workers
  stack::range private_heaps;  ///< of all workers together
  stack::range own_private_heap;
  std::uint64_t private_heap_bytes = 0;
  stack::range mpi_code;     ///< libraries.hpp, forbid_mpi
  stack::range shared_heap;  ///< what threads of this host allocate
  stack::range hosts_heaps;  ///< of all hosts: side by side, each as large
};

/// Install handlers on an alternate stack. In the worker process, once.
void install_handlers(const fault_map& map) noexcept;

/// A thread @p did something, as "freed", to heap memory of @p host, and is at another one. Ends the run.
[[noreturn]] void end_for_foreign_heap(const char* did, std::uintptr_t address, std::size_t host) noexcept;

/// In a process that a thread made by fork: what install_handlers changed means again what it meant in the
/// process that called run.
void forget_handlers() noexcept;

// Workers that are threads of one process:

/// Deaths of this process that a thread brings about -- signals, exit -- are told, with the exit status that
/// they have where workers are processes. Not called where threads are pthreads of another program
/// (integrations/pthread), which may end as it likes.
void tell_of_deaths() noexcept;

/// For the process, until restore_meanings: what faults outside workers meant, they mean again afterwards.
void install_handlers_of_process() noexcept;
void restore_meanings() noexcept;
/// For the calling thread: where its handlers run.
class alternate_stack {
 public:
  alternate_stack() noexcept;
  ~alternate_stack();
  alternate_stack(const alternate_stack&) = delete;
  alternate_stack& operator=(const alternate_stack&) = delete;

 private:
  std::byte* low_ = nullptr;
  stack_t before_{};
};

}  // namespace godwit::runtime
