// What a debugger needs to find lightweight threads in a process: a table of names and numbers,
// godwit_debug_.
//
// It says where the shared memory lies and how its words and objects are laid out, so that
// tools/gdb/godwit.py works without debug information of the library and does not break when a field moves.
// The runtime only writes it (before and after each fork of a worker, or before workers start as threads) and
// never reads it. Not an interface for programs. Called by: worker_process.cpp, run_common.cpp,
// run_threads.cpp. Document: docs/debugging.md. Test: tests/gdb.
#pragma once

#include "runtime/worker_process.hpp"

#include <cstdint>

extern "C" {

struct godwit_debug_entry {
  char name[24];
  std::uint64_t value;
};

struct godwit_debug_info {
  std::uint32_t version;  ///< of this struct and of what the names mean; godwit.py refuses others
  std::uint32_t entries;  ///< 0: this process has not started a run
  char policy[32];        ///< how threads are stolen and joined, options::policy
  godwit_debug_entry entry[128];
};

/// W this process, R debuggers.
extern volatile godwit_debug_info godwit_debug_;
}

namespace godwit::runtime {

inline constexpr std::uint32_t debug_version = 3;
/// Value of the entry `worker` in a process that is no worker: it supervises, or its threads are workers.
inline constexpr std::uint64_t debug_no_worker = ~std::uint64_t{0};

/// Fill in the table of this process. Cost: about a microsecond. Local.
void describe_to_debuggers(const launch& what, std::uint64_t worker) noexcept;

}  // namespace godwit::runtime
