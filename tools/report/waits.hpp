// What threads waited for besides each other's ends -- locks, events of other threads, time, descriptors --
// and which of it left workers idle.
//
// A worker's own events say only what its last thread did. Where others wait for a lock meanwhile, that is
// why there is nothing to run. So at every moment each thread that waits for a lock explains one idle worker,
// then each that waits for an event, and while no worker is busy, each that waits for what is outside.
// Called by analyze.cpp. Document: docs/report.md. Test: tests/report/waits_test.cpp.
#pragma once

#include "analysis.hpp"

#include <string>
#include <vector>

namespace godwit::report {

/// @p what: of trace::kind::waits; empty: there was none.
wait_for kind_of(const std::string& what);

/// The state of an idle worker that a wait of this kind explains.
state state_of(wait_for kind);

/// A wait that is over, or lasts to the end.
struct one_wait {
  std::uint64_t from, to;  ///< to: when it could go on
  std::uint32_t place;     ///< index into analysis::places
  std::uint32_t woken_by;  ///< index into analysis::names: the code that woke it; nothing: not known
};

/// Divides the idle time in @p a again: time lines, totals and places. Nothing happens without waits.
/// Cost: for each begin and end of idle time or a wait, some steps for each idle worker.
void explain_idleness(analysis& a, std::vector<one_wait> waits);

}  // namespace godwit::report
