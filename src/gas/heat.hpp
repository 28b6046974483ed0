// What is known of the parts of movable memory: who has them, and how often they were used there.
//
// Accesses are counted at the owner, beside the use of the place that each takes anyway (places.hpp): by
// workers of its host, by others, and of which other host most come. The last is a vote (Boyer and Moore,
// MJRTY): another host's access is one for it or against it. So a host that makes more than half of them is
// found with two words. With one host there are no uses, and nothing is counted.
//
// Called by src/runtime/balance_path.cpp. Tests: tests/gas/places_test.cpp, tests/global/rebalance_test.cpp.
#pragma once

#include "gas/parts.hpp"

#include <vector>

namespace godwit::gas {

struct seen_part {
  piece p;           ///< all of a part
  part_state state;  ///< done
};

/// By the host that `other` says: it made more than twice as many accesses as the owner's host, and so many
/// more that the messages saved are more than those of a move: four round trips, and one per 4 KiB.
bool is_wanted(const part_state& s, std::uint64_t bytes) noexcept;

/// All parts that hold bytes of the range, which is movable memory. @p halve: what was counted is halved, so
/// that it says more of what was lately. Cost: a message for some hundred parts of another host; those that
/// are under way are waited for.
std::vector<seen_part> look_at_parts(const reach& net, directory& blocks, const descriptor& d,
                                     global_address at, std::uint64_t bytes, bool halve);

}  // namespace godwit::gas
