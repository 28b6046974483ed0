// What is known of the parts of movable memory: who has them, and how often they were used there.
//
// Accesses are counted at the owner, beside the use of the place that each takes anyway (places.hpp): by
// workers of its host, by others, and of which other host most come. The last is a vote (Boyer and Moore,
// MJRTY): another host's access is one for it or against it. So a host that makes more than half of them is
// found with two words. With one host there are no uses, and nothing is counted.
//
// Counts that a part loses, because it leaves, is halved or freed, or because the run is over, are added to
// sums of its host (place::forget_heat); so each access is in one of them at the end.
//
// Called by allocator.cpp, auto_balance.cpp, and in src/runtime by balance_path.cpp and run_mpi.cpp. Tests:
// tests/gas/places_test.cpp, tests/global/{rebalance,move_seen}_test.cpp.
#pragma once

#include "gas/parts.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace godwit::gas {

struct seen_part {
  piece p;           ///< all of a part
  part_state state;  ///< done
};

/// By the host that `other` says: it made more than twice as many accesses as the owner's host, and so many
/// more that the messages saved are more than those of a move: four round trips, and one per 4 KiB.
bool is_wanted(const part_state& s, std::uint64_t bytes) noexcept;

/// All parts that hold bytes of the range, which is movable memory. Counts that are halved say more of what
/// was lately. Cost: a message for some hundred parts of another host; those that
/// are under way are waited for.
std::vector<seen_part> look_at_parts(const reach& net, directory& blocks, const descriptor& d,
                                     global_address at, std::uint64_t bytes, heat_then then);

/// How movable memory was used in a run. Plain bytes.
struct heat_sums {
  std::uint64_t near = 0, far = 0;  ///< accesses by the host that had the part, and by others
  used_part used[most_used_parts] = {};

  /// When the run is over.
  static heat_sums of(const host_words& host) noexcept;
  void add(const heat_sums& more);
};
/// Of @p kept and @p more those that were used most, by other hosts above all, into @p kept.
void keep_most_used(std::span<used_part, most_used_parts> kept, std::span<const used_part> more);

}  // namespace godwit::gas
