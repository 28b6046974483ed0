// The cache of a host: copies of other hosts' global memory, at their own addresses in the window, shared by
// all its workers.
//
// In units of 16 KiB. A unit's copy is as old as its epoch; a checkout wants the host's epoch of that moment,
// else the unit is fetched again. Bytes that a checkout may write are remembered as ranges, written back by
// the next release of any worker of the host, and never overwritten by a fetch before. Set-associative, least
// recently used first out. Protocol: docs/protocols/global.md. Model: models/global.pml. Tests:
// tests/global/{litmus,checkout}_test.cpp under MPI.
#pragma once

#include "gas/reach.hpp"
#include "gas/words.hpp"
#include "base/lock.hpp"

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
  std::atomic<std::uint32_t> lock;  ///< see base/lock.hpp. W all of the host
  std::uint32_t pins;               ///< checkouts that have it open
  /// number of the unit in the space, plus one; 0: empty. Also R without lock, as a hint
  word tag;
  std::uint64_t epoch;  ///< of the host before the last fetch; 0: bytes not valid
  std::uint64_t used;   ///< the cache's clock at the last checkout
  std::uint16_t dirty_count, writing_count;
  /// of the first unit of a set: whoever changes tags of the set. W all of the host
  std::atomic<std::uint32_t> set_lock;
  static constexpr unsigned most_ranges = 16;
  unit_range dirty[most_ranges];    ///< to be written back
  unit_range writing[most_ranges];  ///< checked out for writing
};

/// Who owns the pieces of a range, as the directory says.
struct piece_visitor {
  using each = void(void* to, std::uint32_t owner, global_address at, std::uint64_t bytes);
  /// False: the range does not lie in a live allocation (any more).
  bool (*visit)(void* arg, global_address at, std::uint64_t bytes, each* f, void* to) = nullptr;
  void* arg = nullptr;
};

struct cache_setup {
  reach* net = nullptr;
  host_words* host = nullptr;
  /// and behind them a bit per unit: has dirty ranges. W under the unit's lock, R all
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
  static std::uint64_t units_of(std::uint64_t bytes) noexcept { return (bytes / unit_bytes + 63) / 64 * 64; }
  /// Room that the table of so many units needs.
  static std::uint64_t table_bytes(std::uint64_t units) noexcept { return units * sizeof(unit) + units / 8; }

  void init(const cache_setup& s) noexcept {
    s_ = s;
    dirty_map_ = reinterpret_cast<word*>(s.units + s.unit_count);
  }

  /// Make the range readable or writable at its place in the window, until checkin. False: more than the
  /// cache can hold beside what is open.
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
  void invalidate() noexcept { s_.host->epoch.fetch_add(1, std::memory_order_acq_rel); }  // GL3

  /// When nobody of the host uses it. Cost: a pass over the table.
  void check_invariants() const noexcept;

 private:
  static global_address begin_of(const unit& u) noexcept {
    return (u.tag.load(std::memory_order_relaxed) - 1) * unit_bytes;
  }
  std::uint64_t slot_of(const unit& u) const noexcept { return static_cast<std::uint64_t>(&u - s_.units); }
  void lock(unit& u) noexcept;
  bool try_lock(unit& u) noexcept { return base::try_lock(u.lock, base::holder()); }
  static bool is_locked(const unit& u) noexcept { return u.lock.load(std::memory_order_relaxed) != 0; }
  void unlock(unit& u) noexcept { base::unlock(u.lock, base::holder()); }
  void pause(base::spin_wait& w) noexcept;

  /// The unit with this number, locked; null: it is not here. @p wait false: also null if it is locked.
  unit* find(std::uint64_t number, bool wait, bool& busy) noexcept;
  /// The same, but makes room for it. Null: everything it could replace is open, or without @p wait busy or
  /// dirty.
  unit* obtain(std::uint64_t number, bool wait) noexcept;
  bool evict(unit& u) noexcept;
  /// Bytes of one host.
  struct part {
    std::uint32_t host;
    global_address at;
    std::uint64_t bytes;
  };
  /// Ask for the bytes of other hosts in a range, small parts together. Large ones go straight into place if
  /// @p room is null, else through it (unit_bytes); all others, and those, to sink(address, data, bytes).
  /// Gives back how many there were.
  template <class Sink>
  std::uint64_t bring(global_address at, std::uint64_t bytes, std::byte* room, const Sink& sink) noexcept;
  void count_fetch(std::uint64_t units, std::uint64_t bytes, std::uint64_t since) noexcept;
  /// Bytes of other hosts in units [first, first + count), all locked, without dirty or open ranges: straight
  /// into place.
  void fetch(std::uint64_t first, std::uint64_t count) noexcept;
  /// One unit, around what must not be overwritten.
  void fetch_around(unit& u) noexcept;
  static bool add(unit_range* ranges, std::uint16_t& count, unit_range r) noexcept;
  static bool covers(const unit_range* ranges, unsigned count, unit_range r) noexcept;
  static bool overlaps(const unit_range* ranges, unsigned count, unit_range r) noexcept;
  void mark_dirty(unit& u, unit_range r) noexcept;
  /// Locked units: their dirty ranges are at home afterwards.
  void write_back(unit* const* units, std::size_t count) noexcept;
  bool open(unit& u, unit_range part, detail::access_mode mode) noexcept;
  /// @p changed: it was handed out, so its bytes may be new.
  void close(std::uint64_t number, unit_range part, detail::access_mode mode, bool changed = true) noexcept;

  cache_setup s_;
  word* dirty_map_ = nullptr;
  std::uint64_t clock_ = 0;
};

}  // namespace godwit::gas
