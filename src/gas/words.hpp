// The words of global memory that workers share, in the service part of the space. Each host has its own, at
// the same addresses; those marked "job" are used on worker 0's host only, where others reach them by
// requests. Zero is how all begin.
#pragma once

#include "base/schedule_points.hpp"
#include "gas/space.hpp"

#include <atomic>

namespace godwit::gas {

using word = base::shared<std::uint64_t>;

/// What a host knows of a part of movable memory that moves by itself, at the same address on every host:
/// docs/protocols/move.md, places.hpp. Zero is how all begin.
struct alignas(32) place_words {
  word owner;  ///< version and worker. W/R all of the host and its companion; a newer one only: MV1
  word local;  ///< state of this host's place and its uses. W/R likewise: MV3
  // Accesses since the part came here: heat.hpp. All of the host count, two at once perhaps as one.
  std::atomic<std::uint32_t> near;  ///< by this host. W/R all of the host and its companion
  std::atomic<std::uint32_t> far;   ///< by others. W/R likewise
  /// of these the host that may have made more than half, plus one. W/R likewise
  std::atomic<std::uint32_t> other;
  /// accesses by it, minus those by further hosts: at least so many are its. W/R likewise
  std::atomic<std::uint32_t> lead;
};
/// In front of the first of an allocation.
struct alignas(64) moved_words {
  /// of the allocation that came to this host, minus those that left. W workers of it; R who frees
  word bytes;
  /// on_move: what is called, 0: nothing. W the host's first worker; R who moves; both under hook_lock
  word hook;
  std::byte closure[detail::move_hook::closure_bytes];  ///< likewise
  word hook_lock;
};

/// A distributed allocation: in the table entry of its first granule. Entries of the others name the first
/// one. W the allocating worker (contents before `state`), then whoever frees it; R all, after `state`
/// (acquire). Hosts other than worker 0's hold copies, fetched when needed, valid as long as `generation` is
/// that of the host.
struct alignas(128) descriptor {
  enum : std::uint64_t { none, live, freed, interior };
  word state;
  word generation;  ///< copies: of the host when it was fetched, plus one
  /// 0: may be written. Else 1; in copies what `generation` was when that was seen: FZ3. W/R as `generation`;
  /// at home W who freezes and thaws
  word frozen{};
  word asking{};            ///< copies, a lock: who fetches it. W all of the host
  std::uint64_t first = 0;  ///< granule where the allocation begins
  std::uint64_t bytes = 0;  ///< as asked for
  std::uint64_t block_bytes = 0;
  std::uint64_t blocks = 0;
  word extent{};             ///< see extent_of. W/R under shared_lock
  global_address table = 0;  ///< user: home of each block, 4 bytes; 0: by arithmetic
  std::uint64_t move_bytes =
      0;                   ///< what moves together, whole pages; a block is a multiple. 0: it never moves
  std::uint32_t what = 0;  ///< detail::spread::kind
  std::uint32_t home = 0;  ///< kind local
  std::uint64_t life = 0;  ///< SW4: drawn from host_words::lives; 0: the addresses are new, or need none

  bool movable() const noexcept { return move_bytes != 0; }
  std::uint64_t places() const noexcept { return (bytes + move_bytes - 1) / move_bytes; }
  /// Granules of the data, and behind them those of the words of its places.
  std::uint64_t data_granules() const noexcept { return space::granules_for(bytes); }
  std::uint64_t all_granules() const noexcept {
    return data_granules() +
           (movable() ? space::granules_for(sizeof(moved_words) + places() * sizeof(place_words)) : 0);
  }
};

/// The granules below next_granule are divided into extents, taken or free; the entry of the first granule of
/// each says how long it is, and which. Free ones are joined when somebody needs more than one.
struct extent_of {
  std::uint64_t granules;
  bool taken;
  std::uint64_t packed() const noexcept { return granules << 1 | (taken ? 1u : 0u); }
  static extent_of from(std::uint64_t w) noexcept { return {w >> 1, (w & 1) != 0}; }
};

/// Debug builds and check_global: what is checked out, on this host.
struct open_checkout {
  word begin, end;  ///< end 0: free entry
  const char* file;
  std::uint32_t line;
  std::uint32_t worker;
  std::uint32_t writes;
};
inline constexpr std::uint32_t most_open_checkouts = 1024;

/// A part of movable memory, used so often since it came to its owner: heat.hpp. near + far 0: none.
struct used_part {
  global_address allocation;
  std::uint64_t part;  ///< its number in it
  std::uint32_t near, far;
  std::uint32_t owner;  ///< worker
  std::uint32_t other;  ///< first worker of the host that may have made more than half of far; ~0: none
};
inline constexpr std::size_t most_used_parts = 8;

struct host_words {
  /// acquires of this host; cached units older than it are stale. W all, R all
  alignas(64) word epoch;
  alignas(64) word dirty_units;  ///< units with bytes to write back. W all, R all
  alignas(64) word used_bytes;   ///< allocated in memory of this host. W all hosts, atomics
  word limit_bytes;              ///< W once, before the workers
  /// of addresses of shared allocations: counts frees, reuses and freezes. W who does it, in all hosts
  word generation;
  word reuses;  ///< of these only those who use addresses again: translations.hpp. W likewise
  /// SW3: drawn from `lives` at worker 0's host by whoever frees movable memory. W all hosts, atomics
  word life, lives;
  word thaws;  ///< of frozen allocations: copies of them that are older are stale. W all hosts
  // Of auto_balance.hpp: when the host looked last, and where it goes on. W/R who looks
  word balanced_ns, balance_granule, balance_part;
  // Of heat.hpp, what is no longer counted at parts. R who supervises, after the run
  alignas(64) word near_uses, far_uses;  ///< W all of the host and its companion, atomics
  word used_lock;                        ///< of `used`. W all of the host
  used_part used[most_used_parts];       ///< most used first; of memory that is freed, or was left at the end
  alignas(64) word check_lock;           ///< of open. W all of the host
  open_checkout open[most_open_checkouts];

  // job
  alignas(64) word shared_lock;  ///< of what follows. W all
  word next_granule;             ///< never used yet. W/R under shared_lock
  word balance_lock;             ///< who looks at parts, or frees: BA1. W all
  word rover;                    ///< extent where the next search begins. W/R under shared_lock
};

/// One for each home, behind host_words.
struct alignas(64) home_words {
  /// objects that others have given back to it: address of the newest, linked by their headers. W all, R
  /// owner
  word returned;
  /// GL10, of this host: bit i of that of home j is 1 while this host's worker 64 j + i gives memory of a
  /// unit back. W that worker; R who frees, or uses addresses again
  word evicting;
};

}  // namespace godwit::gas
