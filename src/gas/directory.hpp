// The directory: whose are these bytes? It says for each address of global memory what allocation it lies in,
// which worker is the home of its block, and who owns that block now; and it divides a new allocation among
// the homes.
//
// Local memory names its home in the address. The descriptors of distributed allocations lie at worker 0's
// host; other hosts copy them when they first need them. Homes follow from the descriptor alone. Owners are
// homes, unless the allocation is movable: then the words of the place on this host have a hint (places.hpp).
//
// Called by allocator.hpp (which enters and removes), access.hpp and cache.hpp (which ask). Words: words.hpp.
// Document: docs/decisions/0010-global-memory.md. Test: tests/gas/directory_test.cpp.
#pragma once

#include "gas/places.hpp"
#include "gas/reach.hpp"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace godwit::gas {

/// Part of a range: as much as has one owner.
struct piece {
  std::uint32_t owner;  ///< of movable memory a hint
  global_address at;
  std::uint64_t bytes;
  place_words* words = nullptr;  ///< movable: of its place; else null
  std::uint32_t home = 0;        ///< movable: of its place
  bool frozen = false;           ///< see directory::is_frozen

  gas::place place(const reach& net) const noexcept { return {*words, net.is_near(home)}; }
  /// This host's own memory. Of movable memory true for as long as it is not moved.
  bool is_memory(const reach& net) const noexcept {
    return words != nullptr ? in(place(net).state(), still_here) : net.is_near(owner);
  }
  /// What this host has of it is a copy. Movable memory between two hosts is neither: MV11
  bool is_copy(const reach& net) const noexcept {
    return words != nullptr ? in(place(net).state(), is_elsewhere) : !net.is_near(owner);
  }
};

class directory {
 public:
  static constexpr std::uint64_t page_bytes = 4 << 10;  ///< what moves is whole pages

  directory(const reach& net, const space& where) noexcept : net_(net), where_(where) {}

  /// The descriptor of the live shared allocation that @p at lies in, or null. Local, but round trips the
  /// first time.
  descriptor* find(global_address at);
  std::uint32_t home(global_address at);
  /// See is_frozen below. Local, as find.
  bool is_frozen(global_address at) {
    const descriptor* d = find(at);
    return d != nullptr && is_frozen(*d);
  }
  /// Null unless @p at lies in movable memory.
  descriptor* find_movable(global_address at) {
    descriptor* d = find(at);
    return d != nullptr && d->movable() ? d : nullptr;
  }

  /// The beginning of a range, as far as it has one owner.
  piece first_piece(global_address at, std::uint64_t bytes);
  /// Call f(piece) for each piece of a range. False: it does not lie in a live allocation (any more).
  template <class F>
  bool visit_pieces(global_address at, std::uint64_t bytes, F&& f);
  /// The same for ranges that must.
  template <class F>
  void each_piece(global_address at, std::uint64_t bytes, F&& f) {
    if (!visit_pieces(at, bytes, f)) bad_address(at, bytes, "reach");
  }
  /// All of it lies on this host, and stays there: an access needs no round trip.
  bool is_near(global_address at, std::uint64_t bytes);
  [[noreturn]] void bad_address(global_address at, std::uint64_t bytes, const char* doing) const;
  /// Somebody wants to write frozen memory.
  [[noreturn]] void is_read_only(global_address at, const detail::place& where) const;

  /// From the beginning of the first to the end of the last part of movable memory that has bytes of a range.
  std::pair<global_address, global_address> whole_parts(const descriptor& d, global_address at,
                                                        std::uint64_t bytes) const noexcept;

  // Of the allocator.
  /// How an allocation is divided into blocks; it has no place yet. Throws std::invalid_argument if that
  /// cannot be done.
  void divide(descriptor& d, std::uint64_t bytes, std::uint64_t alignment, const detail::spread& how) const;
  /// User distributions: the home of each block, for descriptor::table.
  std::vector<std::uint32_t> ask_homes(const descriptor& d, const detail::spread& how) const;
  /// What each host has of it.
  std::vector<std::uint64_t> bytes_per_host(const descriptor& d);
  /// From now on it can be found, in the granules that it has got. @p reused: others may have copies of what
  /// was there.
  void enter(descriptor& d, bool reused);
  /// It cannot be found any more at worker 0's host. False: somebody else has removed it before.
  bool remove(descriptor& d) noexcept;
  /// GL10: who looks from now on, on any host, asks worker 0's host; who has looked before to give memory of
  /// its cache back is waited for. Behind remove: so nobody gives freed memory back later. Behind a reuse: so
  /// nobody does who has read half of an old entry and half of the new. Cost: a round trip to each host, and
  /// at least one more for each 64 workers of the largest.
  void forget_everywhere() const noexcept;
  /// SW3, movable memory that is removed: datagrams to it that come from now on are dropped, and none is
  /// being carried out. So its words stay zero from when its pages are given back. Cost: as above.
  void end_life() const noexcept;
  // It is not written from now on; it may be again: docs/protocols/frozen.md. Cost: a round trip to worker
  // 0's host, and one or two to each.
  void freeze(descriptor& d) noexcept;
  void thaw(descriptor& d) noexcept;
  /// It is frozen, or was a moment ago. False, too, if this host has not seen it yet. Local.
  bool is_frozen(const descriptor& d) const noexcept {
    const std::uint64_t seen = d.frozen.load(std::memory_order_acquire);
    return seen != 0 && (net_.is_near(0) ||  // FZ3
                         seen == net_.host().generation.load(std::memory_order_acquire) + 1);
  }
  bool is_live(const descriptor& d) const noexcept {
    return net_.remote_load(0, d.state) == descriptor::live;
  }

  global_address begin_of(const descriptor& d) const noexcept {
    return where_.shared_low + (d.first << space::granule_bits);
  }
  /// Of movable memory.
  moved_words& moved_of(const descriptor& d) const noexcept {
    return *net_.at<moved_words>(begin_of(d) + (d.data_granules() << space::granule_bits));
  }
  place_words& words_of(const descriptor& d, std::uint64_t i) const noexcept {
    return reinterpret_cast<place_words*>(&moved_of(d) + 1)[i];
  }
  descriptor* entry(std::uint64_t granule) const noexcept {
    return net_.at<descriptor>(where_.directory_low) + granule;
  }

 private:
  /// Larger than all before, from worker 0's host: a round trip.
  std::uint64_t new_life() const noexcept;
  /// Of the words of movable memory on this host.
  bool begins_as_zero(const descriptor& d) const noexcept;
  void divide_places(descriptor& d, const detail::spread& how) const;
  descriptor* look(std::uint64_t granule, std::uint64_t& state) noexcept;
  std::uint32_t home_of_block(const descriptor& d, std::uint64_t block);
  /// Of movable memory: the place that @p at lies in, as far as @p p reaches.
  void take_place(const descriptor& d, global_address at, piece& p);
  /// first_piece for who knows in which allocation @p at may lie: @p d, or null. False: in none.
  bool take_piece(global_address at, std::uint64_t bytes, const descriptor*& d, piece& p);

  const reach& net_;
  const space& where_;
  /// homes of each block, by first granule, as of the host's generation
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> user_tables_;
  std::uint64_t user_tables_are_of_ = 0;
};

template <class F>
bool directory::visit_pieces(global_address at, std::uint64_t bytes, F&& f) {
  const descriptor* d = nullptr;
  for (piece p; bytes != 0; at += p.bytes, bytes -= p.bytes) {
    if (!take_piece(at, bytes, d, p)) return false;
    f(p);
  }
  return true;
}

}  // namespace godwit::gas
