// The cache of a host: copies of other hosts' global memory, at their own addresses in the window, shared by
// all its workers.
//
// In units of 16 KiB. A unit's copy is as old as its epoch; a checkout wants the host's epoch of that moment,
// else the unit is fetched again. Bytes that a checkout may write are remembered as ranges, written back by
// the next release of any worker of the host, and never overwritten by a fetch before. Set-associative, least
// recently used first out, roughly: each worker counts for itself. Protocol: docs/protocols/global.md. Model:
// models/global.pml. Tests: tests/global/{litmus,checkout}_test.cpp under MPI.
#pragma once

#include "base/check.hpp"
#include "base/lock.hpp"
#include "gas/directory.hpp"
#include "gas/parts.hpp"

#include <godwit/runtime.hpp>

namespace godwit::gas {

inline constexpr std::uint64_t unit_bytes = 16 << 10;
/// Of the unit that a byte lies in.
constexpr std::uint64_t number_of(global_address a) noexcept { return a / unit_bytes; }

/// For the trace.
enum class cache_event : std::uint32_t { fetch, write_back, evict };

/// Part of a unit, in bytes from its beginning.
struct unit_range {
  std::uint16_t low, high;
};

/// The part of [at, at + bytes) inside unit @p number.
unit_range part_of(std::uint64_t number, global_address at, std::uint64_t bytes) noexcept;

/// Some parts of one unit. All zero: none.
struct unit_ranges {
  static constexpr unsigned most = 16;
  std::uint16_t count;
  unit_range all[most];

  const unit_range* begin() const noexcept { return all; }
  const unit_range* end() const noexcept { return all + count; }
  bool empty() const noexcept { return count == 0; }
  bool full() const noexcept { return count == most; }
  /// One of them covers it.
  bool cover(unit_range r) const noexcept;
  bool overlap(unit_range r) const noexcept;
  /// One more, to be taken out as it came. Not full.
  void add(unit_range r) noexcept {
    GODWIT_CHECK(!full(), "a range has room among the others of its unit");
    all[count++] = r;
  }
  void take_out(unit_range r) noexcept;
  /// Join it with what touches it. False: no room.
  bool join(unit_range r) noexcept;
};

/// One per unit that may be cached. All fields W/R under `lock` unless said otherwise.
struct alignas(64) unit {
  std::atomic<std::uint32_t> lock;  ///< see base/lock.hpp. W all of the host
  std::uint32_t pins;               ///< checkouts that have it open
  /// number of the unit in the space, plus one; 0: empty. Also R without lock, as a hint
  word tag;
  /// of the host before the last fetch; 0: bytes not valid. Of frozen memory: see cache::stamp
  std::uint64_t epoch;
  std::uint64_t used;  ///< clock_, at the last checkout, of the worker that made it
  /// of the first unit of a set: whoever changes tags of the set. W all of the host
  std::atomic<std::uint32_t> set_lock;
  unit_ranges dirty;    ///< to be written back
  unit_ranges writing;  ///< checked out for writing
  /// checkouts that have it open for writing, or are about to: so many have room in `writing`
  std::uint16_t writers;
  /// counts what makes answers too old that are under way to checkouts that were begun: GL9
  std::uint32_t changes;
};

/// What a checkout that was begun has asked for. Made by cache::begin, over with cache::end.
struct begun_fetch {
  struct asked_unit {
    std::uint32_t changes;  ///< of the unit when it was pinned
    bool asked;
    std::uint64_t epoch = 0;    ///< asked: of what comes
    std::byte* room = nullptr;  ///< asked: where its bytes come to
  };
  struct request {
    std::uint64_t ticket;
    std::byte* to;
    std::uint64_t bytes;
  };
  std::uint64_t first = 0;        ///< number of the first unit that is pinned
  std::vector<asked_unit> units;  ///< that one, and those behind it
  std::uint64_t wanted = 0;       ///< epoch
  std::vector<request> requests;
};

/// An event for the trace; may be null.
using cache_note = void (*)(cache_event what, std::uint64_t since_ns, std::uint64_t bytes) noexcept;

struct cache_setup {
  unit* units;               ///< the host's, and behind them a bit per unit, see dirty_word
  std::uint64_t unit_count;  ///< a multiple of the ways
  worker_stats* stats;
  cache_note note;
};

class cache {
 public:
  static constexpr unsigned ways = 16;
  /// Units that @p bytes of cache are.
  static std::uint64_t units_of(std::uint64_t bytes) noexcept { return (bytes / unit_bytes + 63) / 64 * 64; }
  /// Room that the table of so many units needs.
  static std::uint64_t table_bytes(std::uint64_t units) noexcept { return units * sizeof(unit) + units / 8; }

  cache(const reach& net, directory& blocks, const cache_setup& s) noexcept
      : net_(net), blocks_(blocks), s_(s) {}

  /// Make the range readable or writable at its place in the window, until checkin. False: more than the
  /// cache can hold beside what is open. @p wanted: copies as old as this epoch will do; 0: the host's.
  bool checkout(global_address at, std::uint64_t bytes, detail::access_mode mode, std::uint64_t wanted = 0);
  void checkin(global_address at, std::uint64_t bytes, detail::access_mode mode) noexcept;

  // A checkout that was begun, cache_begun.cpp: begin, ask, then settle and checkout, and in any case end.
  /// Keep the units of the range, as far as there is room, and see which are to be fetched; how many.
  std::uint64_t begin(begun_fetch& f, global_address at, std::uint64_t bytes) noexcept;
  /// Ask for those; into @p room, so many units of the window. Does not wait for answers.
  void ask(begun_fetch& f, std::byte* room) noexcept;
  /// Wait for the answers, and let the units have them that they are still good for: GL9.
  void settle(begun_fetch& f) noexcept;
  /// The room is not needed any more when it returns.
  void end(begun_fetch& f) noexcept;

  enum class copies { new_enough, own_writes };
  /// Copy out what is here, if all of it is here and @p which.
  bool read(global_address at, void* to, std::size_t bytes, copies which = copies::new_enough) noexcept;
  /// These bytes of a piece were just written at their owner: copies that are here follow.
  void written(const part& p) noexcept;
  /// The word at @p at is about to be changed at its home: write back, and forget the copy.
  void drop(global_address at, std::size_t bytes) noexcept;
  /// These bytes of places are this host's from now on: from @p from into the window, but not over what was
  /// written here: GL2, MV10
  void arrive(global_address at, std::uint64_t bytes, const std::byte* from) noexcept;
  /// What was this host's own memory is another's: what is here of it are copies, and only what is open or
  /// dirty stays. Never waits. Gives back of how many bytes from @p at on it is so: of fewer if somebody else
  /// is using the next ones now. For companions, too: @p units is the host's table.
  static std::uint64_t forget(unit* units, std::uint64_t unit_count, std::byte* window, std::byte* at,
                              std::uint64_t bytes) noexcept;

  bool has_dirty() const noexcept { return net_.host().dirty_units.load(std::memory_order_acquire) != 0; }
  /// All ranges that are dirty when this is called are at their homes when it returns.
  void write_back() noexcept;
  void invalidate() noexcept { net_.host().epoch.fetch_add(1, std::memory_order_acq_rel); }  // GL3

  /// When nobody of the host uses it. Cost: a pass over the table.
  void check_invariants() const noexcept;

 private:
  struct opening;

  static constexpr std::uint64_t frozen_bit = std::uint64_t{1} << 63;
  /// The epoch of a unit that is about to be asked for: @p wanted, or, of frozen memory, the thaws so far,
  /// with frozen_bit: docs/protocols/frozen.md
  std::uint64_t stamp(std::uint64_t number, std::uint64_t wanted) noexcept;
  /// What is here of a locked unit is not what who wants this epoch may see.
  bool is_old(const unit& u, std::uint64_t wanted) const noexcept {
    if (u.epoch < frozen_bit) return u.epoch < wanted;
    return u.epoch != (frozen_bit | net_.host().thaws.load(std::memory_order_acquire));
  }
  static global_address begin_of(const unit& u) noexcept {
    return (u.tag.load(std::memory_order_relaxed) - 1) * unit_bytes;
  }
  static unit* set_in(unit* units, std::uint64_t unit_count, std::uint64_t number) noexcept {
    return units + number % (unit_count / ways) * ways;
  }
  /// Null: it is not there. Under the set's lock no tag of the set appears but by who holds it.
  static unit* is_in(unit* set, std::uint64_t number) noexcept;
  unit* set_of(std::uint64_t number) const noexcept { return set_in(s_.units, s_.unit_count, number); }
  /// Which units have dirty ranges: word @p i of one bit per unit. W under the unit's lock, R all.
  word& dirty_word(std::uint64_t i) const noexcept {
    return reinterpret_cast<word*>(s_.units + s_.unit_count)[i];
  }
  std::uint64_t slot_of(const unit& u) const noexcept { return static_cast<std::uint64_t>(&u - s_.units); }
  void lock(unit& u) noexcept;
  /// Somebody else's step is awaited: without the lock of @p u, which stays the unit that it is. MV4
  void wait_without_lock(unit& u, part_wait& more) noexcept;
  /// Comes back with nothing of @p u dirty; unlocked meanwhile if its owners are not to be had at once.
  void clean(unit& u) noexcept;
  bool try_lock(unit& u) noexcept {
    const bool mine = base::try_lock(u.lock, base::holder());
    held_ += mine ? 1 : 0;
    return mine;
  }
  static bool is_locked(const unit& u) noexcept { return u.lock.load(std::memory_order_relaxed) != 0; }
  void unlock(unit& u) noexcept {
    --held_;
    base::unlock(u.lock, base::holder());
  }
  void pause(base::spin_wait& w) noexcept;

  /// The unit with this number, locked; null: it is not here. @p wait false: also null if it is locked.
  unit* find(std::uint64_t number, bool wait, bool& busy) noexcept;
  /// The same, but makes room for it. Null: everything it could replace is open, or without @p wait busy or
  /// dirty.
  unit* obtain(std::uint64_t number, bool wait) noexcept;
  /// The least recently used unit of a locked set becomes this one, if it is not here. Locked; null: none can
  /// be replaced.
  unit* replace(unit* set, std::uint64_t number, bool& any_dirty) noexcept;
  /// Call f(unit, part of it) for those that are here of a range, each locked meanwhile.
  template <class F>
  void each_present(global_address at, std::uint64_t bytes, F&& f) noexcept;
  void evict(unit& u) noexcept;
  unit* obtain_for(opening& o) noexcept;
  bool open_next(opening& o) noexcept;
  void open_batch(opening& o) noexcept;
  void fetch_later(opening& o, unit& u) noexcept;
  void hand_out(opening& o, unit& u) noexcept;
  /// @p changed: it was handed out, so its bytes may be new.
  void close(std::uint64_t number, unit_range part, detail::access_mode mode, bool changed) noexcept;

  void drain(begun_fetch& f) noexcept;

  // cache_transfer.cpp
  /// What other hosts own of a range, at its place in the memory that begins at @p here.
  void add_far_parts(std::vector<part>& parts, global_address at, std::uint64_t bytes,
                     std::byte* here) noexcept;
  void count_fetch(std::uint64_t units, std::uint64_t bytes, std::uint64_t since) noexcept;
  /// Bytes of other hosts in units [first, first + count), all locked, without dirty or open ranges: straight
  /// into place. Gives back what was not to be had now.
  std::vector<part> fetch_units(std::uint64_t first, std::uint64_t count) noexcept;
  /// One unit, around what must not be overwritten. False: some of it was not to be had now.
  bool fetch_around(unit& u) noexcept;
  /// Bytes [low, high) of a locked unit, from @p from, into place around what must not be overwritten.
  void put_around(unit& u, std::uint64_t low, std::uint64_t high, const std::byte* from) noexcept;
  /// What was fetched from here on may be older than what the host has written, or than what it has.
  static void forget_copy(unit& u) noexcept {
    u.epoch = 0;
    ++u.changes;  // GL9
  }
  /// False: no room for one more range.
  bool mark_dirty(unit& u, unit_range r) noexcept;
  void mark_clean(unit& u, std::uint64_t epoch) noexcept;
  bool write_back_once() noexcept;
  /// Locked units: their dirty ranges are at home afterwards. False: of some of them not all, these stay
  /// dirty.
  bool write_back(unit* const* units, std::size_t count) noexcept;

  /// One of them reaches into the unit that begins at @p unit_begin.
  static bool any_in(const std::vector<part>& parts, global_address unit_begin) noexcept;

  static constexpr std::size_t most_in_batch = 256;  ///< units fetched or written back together: 4 MiB

  const reach& net_;
  directory& blocks_;
  const cache_setup s_;
  /// checkouts of units by this worker. Whoever makes more keeps its units longer; a clock of the host would
  /// be a line that all its workers write at each checkout
  std::uint64_t clock_ = 0;
  unsigned held_ = 0;  ///< locks of units that this worker has
};

/// Where the calls of places.hpp are carried out on this host.
place_site site_of_host(const transport::shm::segment& memory, std::byte* window, const space& where,
                        std::uint64_t unit_count) noexcept;

}  // namespace godwit::gas
