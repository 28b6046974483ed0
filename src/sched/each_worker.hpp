// A call on every worker, handed on along a tree: of hosts, and on each host of parts of its workers.
//
// Called by src/runtime/slow_path.cpp for on_each_worker. Document: docs/protocols/each_worker.md (EW),
// model: models/each_worker.pml. Tests: tests/api/run_test.cpp, tests/sim/run_hosts_test.cpp.
#pragma once

#include "sched/record.hpp"

#include <cstddef>

namespace godwit::sched {

/// Call @p call with a copy of the closure on every worker, here at once. Gives back a record that is
/// complete when all calls are done: to be waited for, and released. Does not migrate.
ref call_on_each_worker(void (*call)(const void*), const void* closure, std::size_t bytes) noexcept;

}  // namespace godwit::sched
