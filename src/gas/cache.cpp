// Units: found, replaced, opened and closed. What travels: cache_transfer.cpp; what leaves: cache_leave.cpp.
// See cache.hpp and docs/protocols/global.md.
//
// Locks: one per unit, held over the requests for it; and one per set, for changes of tags. A worker waits
// for a unit's lock only while it holds none; further ones it takes by trying. While it waits it serves
// requests of others (way am). A set's lock is taken by who holds no unit's.
#include "gas/cache.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/world.hpp"

#include <algorithm>
#include <span>

namespace godwit::gas {

using detail::access_mode;

namespace {
// of waiting for a way that others hold open: they compute
constexpr std::uint64_t patience_ns = 10'000'000'000;
}  // namespace

unit_range part_of(std::uint64_t number, global_address at, std::uint64_t bytes) noexcept {
  const global_address low = number * unit_bytes;
  const global_address from = std::max(at, low), to = std::min(at + bytes, low + unit_bytes);
  GODWIT_ASSERT(low <= from && from < to && to <= low + unit_bytes, "the range reaches into the unit");
  return {static_cast<std::uint16_t>(from - low), static_cast<std::uint16_t>(to - low)};
}

unit* cache::is_in(unit* set, std::uint64_t number) noexcept {
  for (unsigned w = 0; w < ways; ++w)
    if (set[w].tag.load(std::memory_order_acquire) == number + 1) return set + w;
  return nullptr;
}

bool unit_ranges::cover(unit_range r) const noexcept {
  return std::any_of(begin(), end(), [&](unit_range o) { return o.low <= r.low && r.high <= o.high; });
}

bool unit_ranges::overlap(unit_range r) const noexcept {
  return std::any_of(begin(), end(), [&](unit_range o) { return o.low < r.high && r.low < o.high; });
}

void unit_ranges::take_out(unit_range r) noexcept {
  auto* mine =
      std::find_if(all, all + count, [&](unit_range o) { return o.low == r.low && o.high == r.high; });
  GODWIT_CHECK(mine != all + count, "a checkout for writing is checked in that was not made");
  *mine = all[--count];
}

bool unit_ranges::join(unit_range r) noexcept {
  GODWIT_ASSERT(r.low < r.high && r.high <= unit_bytes, "a range lies in its unit");
  GODWIT_ASSERT(count <= most, "no more ranges than there is room for");
  for (std::uint16_t i = 0; i < count;) {
    if (all[i].low <= r.high && r.low <= all[i].high) {
      r.low = std::min(r.low, all[i].low);
      r.high = std::max(r.high, all[i].high);
      all[i] = all[--count];
    } else {
      ++i;
    }
  }
  if (full()) return false;
  add(r);
  return true;
}

void cache::pause(base::spin_wait& w) noexcept {
  net_.port().idle();
  w.turn();
}

std::uint64_t cache::stamp(std::uint64_t number, std::uint64_t wanted) noexcept {
  const std::uint64_t thaws = net_.host().thaws.load(std::memory_order_acquire);  // FZ1: before looking
  return blocks_.is_frozen(number * unit_bytes) ? frozen_bit | thaws : wanted;
}

void cache::lock(unit& u) noexcept {
  for (base::spin_wait w; !try_lock(u);) pause(w);  // GL8: requests of others are served meanwhile
}

void cache::wait_without_lock(unit& u, part_wait& more) noexcept {
  ++u.pins;  // GL7
  unlock(u);
  GODWIT_ASSERT(held_ == 0, "MV4: who waits for a block has no lock");
  more.wait(begin_of(u));
  lock(u);
  --u.pins;
}

void cache::clean(unit& u) noexcept {
  unit* one = &u;
  for (part_wait more(net_); !u.dirty.empty() && !write_back(&one, 1);) wait_without_lock(u, more);
}

unit* cache::find(std::uint64_t number, bool wait, bool& busy) noexcept {
  busy = false;
  unit* set = set_of(number);
  for (unsigned w = 0; w < ways; ++w) {
    unit& u = set[w];
    if (u.tag.load(std::memory_order_acquire) != number + 1) continue;
    if (!wait && !try_lock(u)) {
      busy = true;
      return nullptr;
    }
    if (wait) lock(u);
    if (u.tag.load(std::memory_order_relaxed) == number + 1) return &u;
    unlock(u);  // it was replaced meanwhile
  }
  return nullptr;
}

/// Locked, neither open nor dirty (GL7): it can be used for another unit afterwards.
void cache::evict(unit& u) noexcept {
  GODWIT_ASSERT(is_locked(u) && u.pins == 0 && u.dirty.empty(), "GL7: who replaces a unit has locked it");
  GODWIT_ASSERT(u.writing.empty(), "GL7: what is open for writing has pins");
  if (u.tag.load(std::memory_order_relaxed) == 0) return;
  const std::uint64_t since = s_.note != nullptr ? base::fast_ns() : 0;
  // GL10: before looking whose memory it is, which may have been freed; who frees waits for us.
  const auto [evicting, us] = net_.my_evicting();
  [[maybe_unused]] std::uint64_t before = evicting.fetch_or(us, std::memory_order_acq_rel);
  GODWIT_ASSERT((before & us) == 0, "GL10: a worker evicts one unit at a time");
  // Pages of other hosts' memory go back to the system; what lies between is our own.
  global_address low = 0, high = 0;  // other hosts' bytes, pieces that touch joined
  auto discard = [&] {
    if (low == high) return;
    base::schedule_point();  // GL10: whose it was a moment ago
    transport::shm::window::discard(net_.at(low), high - low);
  };
  blocks_.visit_pieces(begin_of(u), unit_bytes, [&](const piece& p) {
    if (!p.is_copy(net_)) return;
    if (p.at != high) {
      discard();
      low = p.at;
    }
    high = p.at + p.bytes;
  });
  discard();
  evicting.fetch_and(~us, std::memory_order_release);
  u.tag.store(0, std::memory_order_relaxed);
  u.epoch = 0;
  ++s_.stats->global_evictions;
  if (s_.note != nullptr) s_.note(cache_event::evict, since, unit_bytes);
}

unit* cache::replace(unit* set, std::uint64_t number, bool& any_dirty) noexcept {
  if (is_in(set, number) != nullptr) return nullptr;
  auto age = [](const unit& u) { return u.tag.load(std::memory_order_relaxed) == 0 ? 0 : u.used; };
  unit* best = nullptr;
  for (unsigned w = 0; w < ways; ++w) {
    unit* u = set + w;
    if (!try_lock(*u)) continue;  // GL8: this worker holds the set's lock
    any_dirty = any_dirty || (u->pins == 0 && !u->dirty.empty());
    const bool candidate = u->pins == 0 && u->dirty.empty();  // GL7
    if (candidate && (best == nullptr || age(*u) < age(*best))) std::swap(u, best);
    if (u != nullptr) unlock(*u);
  }
  if (best == nullptr) return nullptr;
  evict(*best);
  best->used = ++clock_;
  best->tag.store(number + 1, std::memory_order_release);
  return best;
}

unit* cache::obtain(std::uint64_t number, bool wait) noexcept {
  unit* set = set_of(number);
  const std::uint64_t since = base::fast_ns();
  for (base::spin_wait spins; base::fast_ns() - since < patience_ns;) {
    bool busy, any_dirty = false;
    if (unit* u = find(number, wait, busy)) return u;
    if (busy) return nullptr;
    if (base::try_lock(set->set_lock, base::holder())) {
      unit* u = replace(set, number, any_dirty);
      base::unlock(set->set_lock, base::holder());
      if (u != nullptr) return u;
    }
    if (!wait) return nullptr;
    if (any_dirty) write_back();
    pause(spins);
  }
  return nullptr;
}

/// A checkout under way. Units [number_of(at), next) are open; those of the batch, from `next` on, are locked
/// and pinned, and will be fetched together.
struct cache::opening {
  const global_address at;
  const std::uint64_t bytes;
  const access_mode mode;
  const std::uint64_t wanted;  ///< epoch
  std::uint64_t next;
  std::size_t batched = 0;
  unit* batch[most_in_batch];

  opening(global_address a, std::uint64_t n, access_mode m, std::uint64_t epoch) noexcept
      : at(a), bytes(n), mode(m), wanted(epoch), next(number_of(a)) {}
};

/// Locked, pinned, and readable if it has to be: enter what is written.
void cache::hand_out(opening& o, unit& u) noexcept {
  GODWIT_ASSERT(is_locked(u) && u.pins != 0, "a unit is opened under its lock");
  if (o.mode != access_mode::read)
    u.writing.add(
        part_of(number_of(begin_of(u)), o.at, o.bytes));  // GL2, GL4. Never joined: taken out as it came
  unlock(u);
}

void cache::open_batch(opening& o) noexcept {
  if (o.batched == 0) return;
  unit* missing[most_in_batch];
  std::uint64_t epochs[most_in_batch];
  std::size_t count = 0;
  for (std::size_t i = 0; i < o.batched; ++i) epochs[i] = stamp(o.next + i, o.wanted);  // FZ1: before asking
  const std::vector<part> left = fetch_units(o.next, o.batched);
  for (std::size_t i = 0; i < o.batched; ++i) {
    unit* const u = o.batch[i];
    if (!any_in(left, begin_of(*u))) {
      u->epoch = epochs[i];
      hand_out(o, *u);
    } else {
      missing[count++] = u;
      unlock(*u);
    }
  }
  for (unit* u : std::span(missing, count)) {
    lock(*u);
    fetch_later(o, *u);
    hand_out(o, *u);
  }
  o.next += o.batched;
  o.batched = 0;
}

/// Locked and pinned: until it is new enough.
void cache::fetch_later(opening& o, unit& u) noexcept {
  for (part_wait more(net_); is_old(u, o.wanted); wait_without_lock(u, more)) {
    const std::uint64_t epoch = stamp(number_of(begin_of(u)), o.wanted);  // FZ1: before asking
    if (fetch_around(u)) {
      u.epoch = epoch;
      return;
    }
  }
}

/// The unit behind the batch, locked; null: there is no room for it, or too many write there.
unit* cache::obtain_for(opening& o) noexcept {
  const std::uint64_t number = o.next + o.batched;
  unit* u = o.batched != 0 ? obtain(number, false) : nullptr;
  if (u == nullptr) {
    open_batch(o);
    u = obtain(number, true);
  }
  const std::uint64_t since = base::fast_ns();
  for (base::spin_wait spins;
       u != nullptr && o.mode != access_mode::read && u->writers == unit_ranges::most;) {
    unlock(*u);  // holders compute, and check in when they are done
    open_batch(o);
    pause(spins);
    u = base::fast_ns() - since < patience_ns ? obtain(number, true) : nullptr;
  }
  return u;
}

/// Open one more unit, or add it to the batch. False: obtain_for says why.
bool cache::open_next(opening& o) noexcept {
  const unit_range part = part_of(o.next + o.batched, o.at, o.bytes);
  unit* u = obtain_for(o);
  if (u == nullptr) return false;
  ++u->pins;
  if (o.mode != access_mode::read) ++u->writers;
  u->used = ++clock_;
  const auto valid = [&] {
    return o.mode == access_mode::write || !is_old(*u, o.wanted) || u->dirty.cover(part) ||
           u->writing.cover(part);
  };
  if (!valid() && u->dirty.empty() && u->writing.empty()) {
    o.batch[o.batched++] = u;
    if (o.batched == most_in_batch) open_batch(o);
    return true;
  }
  if (o.batched != 0) {  // it may have to wait for blocks: MV4
    unlock(*u);
    open_batch(o);
    lock(*u);
  }
  if (!valid())
    fetch_later(o, *u);
  else if (o.mode != access_mode::write)
    ++s_.stats->global_hits;
  hand_out(o, *u);
  ++o.next;
  return true;
}

bool cache::checkout(global_address at, std::uint64_t bytes, access_mode mode, std::uint64_t wanted) {
  GODWIT_ASSERT(bytes != 0, "no bytes need no checkout");
  if (wanted == 0) wanted = net_.host().epoch.load(std::memory_order_acquire);  // GL3: before asking
  opening o(at, bytes, mode, wanted);
  const std::uint64_t first = o.next, last = number_of(at + bytes - 1);
  if (last - first >= s_.unit_count) return false;
  bool enough = true;
  while (enough && o.next + o.batched <= last) enough = open_next(o);
  open_batch(o);
  if (enough) return true;
  for (std::uint64_t n = first; n < o.next; ++n) close(n, part_of(n, at, bytes), mode, false);
  return false;
}

void cache::close(std::uint64_t number, unit_range part, access_mode mode, bool changed) noexcept {
  bool busy;
  unit* u = find(number, true, busy);
  GODWIT_CHECK(u != nullptr && u->pins != 0, "a checkout's unit left the cache");
  if (mode != access_mode::read) {
    if (changed)
      while (!mark_dirty(*u, part)) clean(*u);  // GL4: exactly these bytes
    else
      forget_copy(*u);  // it was never handed out, and a fetch may have left it as it was
    u->writing.take_out(part);
    --u->writers;
  }
  --u->pins;
  unlock(*u);
}

void cache::checkin(global_address at, std::uint64_t bytes, access_mode mode) noexcept {
  for (std::uint64_t n = number_of(at); n <= number_of(at + bytes - 1); ++n)
    close(n, part_of(n, at, bytes), mode, true);
}

template <class F>
void cache::each_present(global_address at, std::uint64_t bytes, F&& f) noexcept {
  for (std::uint64_t n = number_of(at); n <= number_of(at + bytes - 1); ++n) {
    bool busy;
    unit* u = find(n, true, busy);
    if (u == nullptr) continue;
    f(*u, part_of(n, at, bytes));
    unlock(*u);
  }
}

bool cache::read(global_address at, void* to, std::size_t bytes, copies which) noexcept {
  const std::uint64_t wanted = net_.host().epoch.load(std::memory_order_acquire);
  std::size_t copied = 0;
  bool any_dirty = false;
  each_present(at, bytes, [&](const unit& u, unit_range part) {
    any_dirty = any_dirty || u.dirty.overlap(part);
    if ((is_old(u, wanted) || which == copies::own_writes) && !u.dirty.cover(part) && !u.writing.cover(part))
      return;
    const global_address from = begin_of(u) + part.low;
    std::memcpy(static_cast<std::byte*>(to) + (from - at), net_.at(from), part.high - part.low);
    copied += part.high - part.low;
    ++s_.stats->global_hits;
  });
  if (copied == bytes) return true;
  // It will be read at home: what we wrote must be there.
  if (any_dirty)
    each_present(at, bytes, [&](unit& u, unit_range part) {
      if (u.dirty.overlap(part)) clean(u);
    });
  return false;
}

void cache::written(const part& p) noexcept {
  each_present(p.at, p.bytes, [&](unit& u, unit_range r) {
    const auto put = [&](std::uint16_t low, std::uint16_t high) {
      const global_address to = begin_of(u) + low;
      std::memcpy(net_.at(to), p.here + (to - p.at), high - low);
    };
    ++u.changes;  // GL9
    if (p.words == nullptr || in(p.place(net_).state(), is_elsewhere)) return put(r.low, r.high);
    // MV10: it is the memory itself by now, or is to be: others may have written there since. But not what
    // is dirty, which will be written back as it is here.
    u.epoch = 0;
    for (const unit_range d : u.dirty)
      if (d.low < r.high && r.low < d.high) put(std::max(d.low, r.low), std::min(d.high, r.high));
  });
}

void cache::arrive(global_address at, std::uint64_t bytes, const std::byte* from) noexcept {
  for (std::uint64_t n = number_of(at); n <= number_of(at + bytes - 1); ++n) {
    const unit_range r = part_of(n, at, bytes);
    const std::byte* const here = from + (n * unit_bytes + r.low - at);
    for (base::spin_wait spins;; pause(spins)) {
      bool busy;
      if (unit* u = find(n, true, busy)) {
        put_around(*u, r.low, r.high, here);
        unlock(*u);
        break;
      }
      // Nobody enters it while the set is locked: MV10
      unit* const set = set_of(n);
      if (!base::try_lock(set->set_lock, base::holder())) continue;
      const bool absent = !is_in(set, n);
      if (absent) std::memcpy(net_.at(n * unit_bytes + r.low), here, r.high - r.low);
      base::unlock(set->set_lock, base::holder());
      if (absent) break;
    }
  }
}

void cache::drop(global_address at, std::size_t bytes) noexcept {
  each_present(at, bytes, [&](unit& u, unit_range) {
    clean(u);
    forget_copy(u);  // GL6: what comes next goes past the copy, or went
  });
}

void cache::check_invariants() const noexcept {
  std::uint64_t dirty = 0;
  for (std::uint64_t i = 0; i < s_.unit_count; ++i) {
    const unit& u = s_.units[i];
    if (!u.dirty.empty()) ++dirty;
    GODWIT_CHECK(
        u.tag.load(std::memory_order_relaxed) != 0 || (u.pins == 0 && u.dirty.empty() && u.writers == 0),
        "an empty unit of the cache is in use");
    GODWIT_CHECK(u.writers == u.writing.count, "who has a unit open for writing is counted wrongly");
    const bool marked = (dirty_word(i / 64).load(std::memory_order_relaxed) >> i % 64 & 1) != 0;
    GODWIT_CHECK(!u.dirty.empty() == marked, "the map of dirty units is wrong");
  }
  GODWIT_CHECK(dirty == net_.host().dirty_units.load(std::memory_order_relaxed),
               "dirty units counted wrongly");
}

}  // namespace godwit::gas
