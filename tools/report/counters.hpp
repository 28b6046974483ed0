// Counters of godwit::worker_stats by name: what to call them, their unit, what they mean.
//
// A counter that is not in the table is shown by its own name, with the unit that its name ends in. Used by
// page.cpp.
#pragma once

#include "input.hpp"

namespace godwit::report {

/// [{ "name", "label", "unit": "ns" | "bytes" | "", "what", "total", "values": [per worker] }, ...], without
/// those that are zero everywhere. Maxima (stack, heap, span) are not summed.
nlohmann::json counter_rows(const nlohmann::json& stats);

}  // namespace godwit::report
