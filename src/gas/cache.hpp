// The cache of a host: copies of other hosts' global memory, at their own addresses in the window, shared by all its workers.
//
// In units of 16 KiB. A unit's copy is as old as its epoch; a checkout wants the host's epoch of that moment, else the unit
// is fetched again. Bytes that a checkout may write are remembered as ranges, written back by the next release of any worker of
// the host, and never overwritten by a fetch before. Set-associative, least recently used first out.
// Protocol: docs/protocols/global.md. Model: models/global.pml. Test: tests/gas/cache_test.cpp.
#pragma once

#include "gas/reach.hpp"
#include "gas/words.hpp"

#include <godwit/runtime.hpp>

#include <cstdint>

namespace godwit::gas {

inline constexpr std::uint64_t unit_bytes = 16 << 10;

/// For the trace.
enum class cache_event : std::uint32_t { fetch, write_back, evict };

/// Part of a unit, in bytes from its beginning; [0, 0) is free.
struct unit_range {
  std::uint16_t low, high;
};

/// One per unit that may be cached. All fields W/R under `lock` unless said otherwise.
struct alignas(64) unit {
  std::atomic<std::uint32_t> lock;  ///< 0 free, 1 taken. W all of the host
  std::uint32_t pins;               ///< checkouts that have it open
  word tag;                         ///< number of the unit in the space, plus one; 0: empty. Also R without lock, as a hint
  std::uint64_t epoch;              ///< of the host before the last fetch; 0: bytes not valid
  std::uint64_t used;               ///< the cache's clock at the last checkout
  std::uint16_t dirty_count, writing_count;
  std::uint16_t unused[2];
  static constexpr unsigned most_ranges = 16;
  unit_range dirty[most_ranges];    ///< to be written back
  unit_range writing[most_ranges];  ///< checked out for writing
};

/// Who owns the pieces of a range, as the directory says.
struct piece_visitor {
  void (*each)(void* arg, global_address at, std::uint64_t bytes, void (*f)(void* to, std::uint32_t owner, global_address at,
                                                                           std::uint64_t bytes),
               void* to);
  void* arg;
};

struct cache_setup {
  reach* net = nullptr;
  host_words* host = nullptr;
  unit* units = nullptr;
  std::uint64_t unit_count = 0;  ///< a multiple of the ways
  piece_visitor pieces{};
  worker_stats* stats = nullptr;
  void (*note)(cache_event what, std::uint64_t since_ns, std::uint64_t bytes) noexcept = nullptr;
};

class cache {
 public:
  static constexpr unsigned ways = 16;
  /// Units that @p bytes of cache are.
  static std::uint64_t units_of(std::uint64_t bytes) noexcept {
    return (bytes / unit_bytes + ways - 1) / ways * ways;
  }

  void init(const cache_setup& s) noexcept { s_ = s; }

  /// Make the range readable or writable at its place in the window, until checkin. False: more than the cache can hold
  /// beside what is open.
  bool checkout(global_address at, std::uint64_t bytes, detail::access_mode mode);
  void checkin(global_address at, std::uint64_t bytes, detail::access_mode mode) noexcept;

  /// Copy out what is here, if all of it is here and new enough.
  bool read(global_address at, void* to, std::size_t bytes) noexcept;
  /// These bytes were just written at their home: copies that are here follow.
  void written(global_address at, const void* from, std::size_t bytes) noexcept;
  /// The word at @p at is about to be changed at its home: write back, and forget the copy.
  void drop(global_address at, std::size_t bytes) noexcept;

  bool has_dirty() const noexcept { return s_.host->dirty_units.load(std::memory_order_acquire) != 0; }
  /// All ranges that are dirty when this is called are at their homes when it returns.
  void write_back() noexcept;
  void invalidate() noexcept { s_.host->epoch.fetch_add(1, std::memory_order_acq_rel); }

  void check_invariants() const noexcept;

 private:
  cache_setup s_;
};

}  // namespace godwit::gas
