// What the operating system has done with the calling OS thread so far. Where a program makes time itself
// (world.hpp): nothing. Test: tests/sched/account_test.cpp.
#pragma once

#include <cstdint>

namespace godwit::base {

struct system_time {
  std::uint64_t cpu_ns = 0;     ///< it ran
  std::uint64_t kernel_ns = 0;  ///< of that, in the kernel: system calls, page faults. To some milliseconds
  std::uint64_t faults = 0;     ///< of pages
};
/// Cost: two system calls.
system_time system_time_of_caller() noexcept;

/// It could have run, but others had its CPU. 0 where the kernel does not count that. Cost: three system
/// calls.
std::uint64_t put_aside_ns() noexcept;

}  // namespace godwit::base
