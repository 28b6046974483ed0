// The table of joins and steals: what the papers compare schedulers by.
//
// One row per godwit variant: time, efficiency, outstanding joins and how long they waited once they could go
// on, steals and what they cost. From the counters of the harness (harness.hpp), which come from
// last_run_stats().
// Source: "Distributed continuation stealing is more scalable than you might think", table II. Used by
// bench/pfor and bench/lcs; scripts/reproduce reads its JSON.
#pragma once

#include <functional>

#include "harness.hpp"

namespace bench {

/// Print the table under @p title and add it to the JSON. @p efficiency gives a variant's, 0...1.
/// Times are means per event, then medians over the rounds; a dash where nothing happened.
void show_joins(program& p, const std::string& title, const std::vector<series>& all,
                const std::function<double(const series&)>& efficiency);

}  // namespace bench
