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
#include <bit>
#include <memory>
#include <vector>

namespace godwit::gas {

using detail::access_mode;

namespace {
constexpr std::size_t most_in_batch = 256;  // units that are fetched or written back together: 4 MiB
// of waiting for a way that others hold open: they compute
constexpr std::uint64_t patience_ns = 10'000'000'000;

constexpr std::uint64_t number_of(global_address a) noexcept { return a / unit_bytes; }
/// The part of [at, at + bytes) inside unit @p number.
unit_range part_of(std::uint64_t number, global_address at, std::uint64_t bytes) noexcept {
  const global_address low = number * unit_bytes;
  const global_address from = std::max(at, low), to = std::min(at + bytes, low + unit_bytes);
  GODWIT_ASSERT(low <= from && from < to && to <= low + unit_bytes, "the range reaches into the unit");
  return {static_cast<std::uint16_t>(from - low), static_cast<std::uint16_t>(to - low)};
}
}  // namespace

void cache::pause(base::spin_wait& w) noexcept {
  s_.net->port().idle();
  w.turn();
}

void cache::lock(unit& u) noexcept {
  for (base::spin_wait w; !try_lock(u);) pause(w);  // GL8: requests of others are served meanwhile
}

unit* cache::find(std::uint64_t number, bool wait, bool& busy) noexcept {
  busy = false;
  unit* set = s_.units + number % (s_.unit_count / ways) * ways;
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

/// Locked, without pins: it can be used for another unit afterwards, if true.
bool cache::evict(unit& u) noexcept {
  GODWIT_ASSERT(is_locked(u), "who replaces a unit has locked it");
  if (u.pins != 0 || u.dirty_count != 0) return false;  // GL7
  GODWIT_ASSERT(u.writing_count == 0, "GL7: what is open for writing has pins");
  if (u.tag.load(std::memory_order_relaxed) == 0) return true;
  const std::uint64_t since = s_.note != nullptr ? base::fast_ns() : 0;
  // Pages of other hosts' memory go back to the system; what lies between is our own.
  struct state {
    reach* net;
    global_address low = 0, high = 0;  // other hosts' bytes, pieces that touch joined
    void flush() const {
      if (low != high) transport::shm::window::discard(net->at(low), high - low);
    }
  } s{s_.net};
  s_.pieces.visit(
      s_.pieces.arg, begin_of(u), unit_bytes,
      [](void* p, std::uint32_t owner, global_address at, std::uint64_t n) {
        auto& to = *static_cast<state*>(p);
        if (to.net->is_near(owner)) return;
        if (at != to.high) {
          to.flush();
          to.low = at;
        }
        to.high = at + n;
      },
      &s);
  s.flush();
  u.tag.store(0, std::memory_order_relaxed);
  u.epoch = 0;
  ++s_.stats->global_evictions;
  if (s_.note != nullptr) s_.note(cache_event::evict, since, unit_bytes);
  return true;
}

unit* cache::obtain(std::uint64_t number, bool wait) noexcept {
  unit* set = s_.units + number % (s_.unit_count / ways) * ways;
  const std::uint64_t since = base::fast_ns();
  for (base::spin_wait spins; base::fast_ns() - since < patience_ns;) {
    bool busy;
    if (unit* u = find(number, wait, busy)) return u;
    if (busy) return nullptr;
    if (!base::try_lock(set->set_lock, base::holder())) {
      if (!wait) return nullptr;
      pause(spins);
      continue;
    }
    // Under the set's lock no tag of the set appears but by us.
    unit* best = nullptr;
    bool present = false, any_dirty = false;
    for (unsigned w = 0; w < ways; ++w) {
      unit& u = set[w];
      present = present || u.tag.load(std::memory_order_acquire) == number + 1;
    }
    for (unsigned w = 0; w < ways && !present; ++w) {
      unit& u = set[w];
      if (!try_lock(u)) continue;  // GL8: this worker holds the set's lock
      any_dirty = any_dirty || (u.pins == 0 && u.dirty_count != 0);
      const bool candidate = u.pins == 0 && u.dirty_count == 0;  // GL7
      const bool better =
          candidate && (best == nullptr || u.tag.load(std::memory_order_relaxed) == 0 ||
                        (best->tag.load(std::memory_order_relaxed) != 0 && u.used < best->used));
      if (better) {
        if (best != nullptr) unlock(*best);
        best = &u;
      } else {
        unlock(u);
      }
    }
    if (best != nullptr && evict(*best)) {
      best->used = ++clock_;
      best->tag.store(number + 1, std::memory_order_release);
      base::unlock(set->set_lock, base::holder());
      return best;
    }
    if (best != nullptr) unlock(*best);
    base::unlock(set->set_lock, base::holder());
    if (!wait) return nullptr;
    if (any_dirty) write_back();
    pause(spins);
  }
  return nullptr;
}

bool cache::covers(const unit_range* ranges, unsigned count, unit_range r) noexcept {
  return std::any_of(ranges, ranges + count,
                     [&](unit_range o) { return o.low <= r.low && r.high <= o.high; });
}
bool cache::overlaps(const unit_range* ranges, unsigned count, unit_range r) noexcept {
  return std::any_of(ranges, ranges + count, [&](unit_range o) { return o.low < r.high && r.low < o.high; });
}

/// Join with what touches it. False: no room.
bool cache::add(unit_range* ranges, std::uint16_t& count, unit_range r) noexcept {
  GODWIT_ASSERT(r.low < r.high && r.high <= unit_bytes, "a range lies in its unit");
  GODWIT_ASSERT(count <= unit::most_ranges, "no more ranges than there is room for");
  for (std::uint16_t i = 0; i < count;) {
    if (ranges[i].low <= r.high && r.low <= ranges[i].high) {
      r.low = std::min(r.low, ranges[i].low);
      r.high = std::max(r.high, ranges[i].high);
      ranges[i] = ranges[--count];
    } else {
      ++i;
    }
  }
  if (count == unit::most_ranges) return false;
  ranges[count++] = r;
  return true;
}

void cache::mark_dirty(unit& u, unit_range r) noexcept {
  GODWIT_ASSERT(is_locked(u) && u.tag.load(std::memory_order_relaxed) != 0,
                "who marks a unit has locked it, and it holds something");
  const bool first = u.dirty_count == 0;
  GODWIT_ASSERT(u.dirty_count <= unit::most_ranges, "no more ranges than there is room for");
  if (!add(u.dirty, u.dirty_count, r)) {
    unit* one = &u;
    write_back(&one, 1);
    mark_dirty(u, r);
    return;
  }
  if (!first) return;
  const std::uint64_t slot = slot_of(u);
  dirty_map_[slot / 64].fetch_or(std::uint64_t{1} << slot % 64, std::memory_order_acq_rel);
  s_.host->dirty_units.fetch_add(1, std::memory_order_acq_rel);
}

template <class Sink>
std::uint64_t cache::bring(global_address at, std::uint64_t bytes, std::byte* room,
                           const Sink& sink) noexcept {
  struct state {
    cache* self;
    std::vector<part> parts;
  } s{this, {}};
  s_.pieces.visit(
      s_.pieces.arg, at, bytes,
      [](void* p, std::uint32_t owner, global_address a, std::uint64_t n) {
        auto& to = *static_cast<state*>(p);
        auto* net = to.self->s_.net;
        if (net->is_near(owner)) return;
        const std::uint32_t host = net->host_of(owner);
        if (!to.parts.empty() && to.parts.back().host == host &&
            to.parts.back().at + to.parts.back().bytes == a)
          to.parts.back().bytes += n;  // neighbours of one host travel together
        else
          to.parts.push_back({host, a, n});
      },
      &s);
  using transport::far::piece;
  constexpr std::size_t most = transport::far::inline_bytes / sizeof(piece);
  std::stable_sort(s.parts.begin(), s.parts.end(),
                   [](const part& x, const part& y) { return x.host < y.host; });
  std::uint64_t brought = 0;
  piece batch[most];
  const part* of[most];
  std::size_t batched = 0, batch_bytes = 0;
  auto flush = [&](std::uint32_t host) {
    if (batched == 0) return;
    const base::section inside;
    const std::byte* answer = s_.net->port().gather(worker_no{s_.net->first_of(host)}, batch, batched);
    for (std::size_t i = 0; i < batched; ++i) {
      sink(of[i]->at, answer, of[i]->bytes);
      answer += of[i]->bytes;
    }
    batched = batch_bytes = 0;
  };
  for (std::size_t i = 0; i < s.parts.size(); ++i) {
    const part& p = s.parts[i];
    brought += p.bytes;
    if (p.bytes > transport::far::inline_bytes / 2) {
      std::byte* to = room != nullptr ? room : s_.net->at(p.at);
      s_.net->get(s_.net->first_of(p.host), to, p.at, p.bytes);
      if (room != nullptr) sink(p.at, to, p.bytes);
    } else {
      if (batched == most || batch_bytes + p.bytes > transport::far::inline_bytes) flush(p.host);
      batch[batched] = {reinterpret_cast<std::uint64_t>(s_.net->at(p.at)), p.bytes};
      of[batched++] = &p;
      batch_bytes += p.bytes;
    }
    if (i + 1 == s.parts.size() || s.parts[i + 1].host != p.host) flush(p.host);
  }
  return brought;
}

/// The units stay locked while the request is away: GL1.
void cache::fetch(std::uint64_t first, std::uint64_t count) noexcept {
  const std::uint64_t since = base::fast_ns();
  const std::uint64_t bytes = bring(first * unit_bytes, count * unit_bytes, nullptr,
                                    [&](global_address at, const std::byte* data, std::uint64_t n) {
                                      std::memcpy(s_.net->at(at), data, n);
                                    });
  count_fetch(count, bytes, since);
}

/// Of a unit with dirty or open bytes, which stay as they are: GL2.
void cache::fetch_around(unit& u) noexcept {
  GODWIT_ASSERT(is_locked(u) && u.pins != 0, "GL1: a unit is locked while it is fetched");
  const std::uint64_t since = base::fast_ns();
  const auto room = std::make_unique_for_overwrite<std::byte[]>(unit_bytes);
  const std::uint64_t bytes = bring(begin_of(u), unit_bytes, room.get(),
                                    [&](global_address at, const std::byte* data, std::uint64_t n) {
                                      const std::uint64_t begin = at - begin_of(u);
                                      for (std::uint64_t i = 0; i < n;) {
                                        std::uint64_t stop = n;  // of the current gap or kept range
                                        bool keep = false;
                                        auto look = [&](const unit_range* ranges, unsigned count) {
                                          for (unsigned r = 0; r < count; ++r) {
                                            if (ranges[r].low <= begin + i && begin + i < ranges[r].high) {
                                              if (!keep) stop = n;
                                              keep = true;
                                              stop = std::min<std::uint64_t>(stop, ranges[r].high - begin);
                                            } else if (!keep && ranges[r].low > begin + i) {
                                              stop = std::min<std::uint64_t>(stop, ranges[r].low - begin);
                                            }
                                          }
                                        };
                                        look(u.dirty, u.dirty_count);
                                        look(u.writing, u.writing_count);
                                        if (!keep) std::memcpy(s_.net->at(at + i), data + i, stop - i);
                                        i = stop;
                                      }
                                    });
  count_fetch(1, bytes, since);
}

void cache::count_fetch(std::uint64_t units, std::uint64_t bytes, std::uint64_t since) noexcept {
  s_.stats->global_fetches += units;
  s_.stats->global_fetched_bytes += bytes;
  s_.stats->global_fetch_ns += base::fast_ns() - since;
  if (s_.note != nullptr) s_.note(cache_event::fetch, since, bytes);
}

/// Locked, pinned, and readable if it has to be: enter what is written. False: too many write there.
bool cache::open(unit& u, unit_range part, access_mode mode) noexcept {
  GODWIT_ASSERT(is_locked(u) && u.pins != 0, "what is opened is locked and pinned");
  if (mode == access_mode::read) return true;
  if (u.writing_count == unit::most_ranges) return false;
  u.writing[u.writing_count++] = part;  // GL2, GL4. Never joined: each is taken out as it came
  return true;
}

bool cache::checkout(global_address at, std::uint64_t bytes, access_mode mode) {
  const std::uint64_t wanted = s_.host->epoch.load(std::memory_order_acquire);  // GL3: before asking
  GODWIT_ASSERT(bytes != 0, "no bytes need no checkout");
  const std::uint64_t first = number_of(at), last = number_of(at + bytes - 1);
  if (last - first >= s_.unit_count) return false;
  // Units that are being fetched together: neighbours, locked.
  unit* batch[most_in_batch];
  std::size_t batched = 0;
  std::uint64_t batch_first = 0;
  std::uint64_t opened = first;  // [first, opened) are open
  bool enough = true;
  auto finish = [&] {
    if (batched == 0) return;
    GODWIT_ASSERT(opened == batch_first, "units are opened in order");
    fetch(batch_first, batched);
    for (std::size_t i = 0; i < batched; ++i) {
      batch[i]->epoch = wanted;
      open(*batch[i], part_of(batch_first + i, at, bytes), mode);
      unlock(*batch[i]);
    }
    opened = batch_first + batched;
    batched = 0;
  };
  for (std::uint64_t n = first; n <= last && enough; ++n) {
    const unit_range part = part_of(n, at, bytes);
    unit* u = batched != 0 ? obtain(n, false) : nullptr;
    if (u == nullptr) {
      finish();
      u = obtain(n, true);
    }
    const std::uint64_t since = base::fast_ns();
    for (base::spin_wait spins;
         u != nullptr && mode != access_mode::read && u->writing_count == unit::most_ranges;) {
      unlock(*u);  // holders compute, and check in when they are done
      finish();
      pause(spins);
      u = base::fast_ns() - since < patience_ns ? obtain(n, true) : nullptr;
    }
    if (u == nullptr) {
      finish();
      enough = false;
      break;
    }
    ++u->pins;
    u->used = ++clock_;
    const bool valid = mode == access_mode::write || u->epoch >= wanted ||
                       covers(u->dirty, u->dirty_count, part) || covers(u->writing, u->writing_count, part);
    if (valid) {
      finish();
      if (mode != access_mode::write) ++s_.stats->global_hits;
      open(*u, part, mode);
      unlock(*u);
      opened = n + 1;
    } else if (u->dirty_count != 0 || u->writing_count != 0) {
      finish();
      fetch_around(*u);
      u->epoch = wanted;
      open(*u, part, mode);
      unlock(*u);
      opened = n + 1;
    } else {
      if (batched == 0) batch_first = n;
      GODWIT_ASSERT(n == batch_first + batched, "units that are fetched together are neighbours");
      batch[batched++] = u;
      if (batched == most_in_batch) finish();
    }
  }
  finish();
  if (enough) return true;
  for (std::uint64_t n = first; n < opened; ++n) close(n, part_of(n, at, bytes), mode, false);
  return false;
}

void cache::close(std::uint64_t number, unit_range part, access_mode mode, bool changed) noexcept {
  bool busy;
  unit* u = find(number, true, busy);
  GODWIT_CHECK(u != nullptr && u->pins != 0, "a checkout's unit left the cache");
  if (mode != access_mode::read) {
    auto* end = u->writing + u->writing_count;
    auto* mine =
        std::find_if(u->writing, end, [&](unit_range r) { return r.low == part.low && r.high == part.high; });
    GODWIT_CHECK(mine != end, "a checkout for writing is checked in that was not made");
    *mine = u->writing[--u->writing_count];
    if (changed)
      mark_dirty(*u, part);  // GL4: exactly these bytes
    else
      u->epoch = 0;  // it was never handed out, and a fetch may have left it as it was
  }
  --u->pins;
  unlock(*u);
}

void cache::checkin(global_address at, std::uint64_t bytes, access_mode mode) noexcept {
  for (std::uint64_t n = number_of(at); n <= number_of(at + bytes - 1); ++n)
    close(n, part_of(n, at, bytes), mode);
}

bool cache::read(global_address at, void* to, std::size_t bytes) noexcept {
  const std::uint64_t wanted = s_.host->epoch.load(std::memory_order_acquire);
  bool all = true, any_dirty = false, busy;
  for (std::uint64_t n = number_of(at); n <= number_of(at + bytes - 1); ++n) {
    const unit_range part = part_of(n, at, bytes);
    unit* u = find(n, true, busy);
    if (u == nullptr) {
      all = false;
      continue;
    }
    any_dirty = any_dirty || overlaps(u->dirty, u->dirty_count, part);
    if (u->epoch >= wanted || covers(u->dirty, u->dirty_count, part) ||
        covers(u->writing, u->writing_count, part)) {
      std::memcpy(static_cast<std::byte*>(to) + (n * unit_bytes + part.low - at),
                  s_.net->at(n * unit_bytes + part.low), part.high - part.low);
      ++s_.stats->global_hits;
    } else {
      all = false;
    }
    unlock(*u);
  }
  if (all || !any_dirty) return all;
  // It will be read at home: what we wrote must be there.
  for (std::uint64_t n = number_of(at); n <= number_of(at + bytes - 1); ++n) {
    unit* u = find(n, true, busy);
    if (u == nullptr) continue;
    if (overlaps(u->dirty, u->dirty_count, part_of(n, at, bytes))) write_back(&u, 1);
    unlock(*u);
  }
  return false;
}

void cache::written(global_address at, const void* from, std::size_t bytes) noexcept {
  for (std::uint64_t n = number_of(at); n <= number_of(at + bytes - 1); ++n) {
    const unit_range part = part_of(n, at, bytes);
    bool busy;
    unit* u = find(n, true, busy);
    if (u == nullptr) continue;
    std::memcpy(s_.net->at(n * unit_bytes + part.low),
                static_cast<const std::byte*>(from) + (n * unit_bytes + part.low - at), part.high - part.low);
    unlock(*u);
  }
}

void cache::drop(global_address at, std::size_t bytes) noexcept {
  for (std::uint64_t n = number_of(at); n <= number_of(at + bytes - 1); ++n) {
    bool busy;
    unit* u = find(n, true, busy);
    if (u == nullptr) continue;
    if (u->dirty_count != 0) write_back(&u, 1);
    u->epoch = 0;  // GL6: what comes next goes past the copy, or went
    unlock(*u);
  }
}

/// The units stay locked until the answers are here: GL1.
void cache::write_back(unit* const* units, std::size_t count) noexcept {
  const std::uint64_t since = base::fast_ns();
  const std::uint64_t epoch = s_.host->epoch.load(std::memory_order_acquire);
  struct state {
    cache* self;
    std::vector<part> pieces;
  } s{this, {}};
  for (std::size_t i = 0; i < count; ++i) {
    unit& u = *units[i];
    GODWIT_ASSERT(is_locked(u), "GL1: a unit is locked while it is written back");
    GODWIT_ASSERT(u.dirty_count <= unit::most_ranges, "no more ranges than there is room for");
    for (unsigned r = 0; r < u.dirty_count; ++r)
      s_.pieces.visit(
          s_.pieces.arg, begin_of(u) + u.dirty[r].low, u.dirty[r].high - u.dirty[r].low,
          [](void* p, std::uint32_t owner, global_address at, std::uint64_t n) {
            auto& to = *static_cast<state*>(p);
            auto* net = to.self->s_.net;
            if (!net->is_near(owner)) to.pieces.push_back({net->host_of(owner), at, n});
          },
          &s);
  }
  std::sort(s.pieces.begin(), s.pieces.end(),
            [](const part& x, const part& y) { return x.host != y.host ? x.host < y.host : x.at < y.at; });
  std::uint64_t bytes = 0;
  {
    const base::section inside;
    auto& port = s_.net->port();
    std::byte packed[transport::far::inline_bytes];
    for (std::size_t i = 0; i < s.pieces.size();) {
      // All for one host: small ones packed together, neighbours as one, and wait for it at the end.
      const std::uint32_t host = s.pieces[i].host;
      const worker_no target{s_.net->first_of(host)};
      std::size_t used = 0;
      bool puts = false;
      for (; i < s.pieces.size() && s.pieces[i].host == host;) {
        part p = s.pieces[i++];
        while (i < s.pieces.size() && s.pieces[i].host == host && s.pieces[i].at == p.at + p.bytes)
          p.bytes += s.pieces[i++].bytes;
        bytes += p.bytes;
        std::byte* data = s_.net->at(p.at);
        const std::size_t needs = sizeof(transport::far::piece) + (p.bytes + 7) / 8 * 8;
        if (needs > sizeof packed / 2) {
          port.put(target, data, data, p.bytes);
          puts = true;
          continue;
        }
        if (used + needs > sizeof packed) {
          port.scatter(target, packed, used);
          used = 0;
        }
        const transport::far::piece head{reinterpret_cast<std::uint64_t>(data), p.bytes};
        std::memcpy(packed + used, &head, sizeof head);
        std::memcpy(packed + used + sizeof head, data, p.bytes);
        used += needs;
      }
      if (used != 0)
        port.scatter(target, packed, used);  // answered; and requests to one worker keep their order
      else if (puts)
        port.fence(target);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {  // GL5: it is home
    unit& u = *units[i];
    if (u.dirty_count == 0) continue;
    if (u.dirty_count == 1 && u.dirty[0].low == 0 && u.dirty[0].high == unit_bytes)
      u.epoch = std::max(u.epoch, epoch);  // all of it is what we wrote
    u.dirty_count = 0;
    const std::uint64_t slot = slot_of(u);
    GODWIT_ASSERT(s_.host->dirty_units.load(std::memory_order_relaxed) != 0, "a dirty unit is counted");
    dirty_map_[slot / 64].fetch_and(~(std::uint64_t{1} << slot % 64), std::memory_order_acq_rel);
    s_.host->dirty_units.fetch_sub(1, std::memory_order_acq_rel);
    ++s_.stats->global_write_backs;
  }
  s_.stats->global_written_bytes += bytes;
  s_.stats->global_write_back_ns += base::fast_ns() - since;
  if (s_.note != nullptr) s_.note(cache_event::write_back, since, bytes);
}

void cache::write_back() noexcept {
  if (!has_dirty()) return;
  unit* batch[most_in_batch];
  std::size_t batched = 0;
  auto finish = [&] {
    if (batched == 0) return;
    write_back(batch, batched);
    for (std::size_t i = 0; i < batched; ++i) unlock(*batch[i]);
    batched = 0;
  };
  for (std::uint64_t w = 0; w < s_.unit_count / 64; ++w) {
    for (std::uint64_t bits = dirty_map_[w].load(std::memory_order_acquire); bits != 0; bits &= bits - 1) {
      unit& u = s_.units[w * 64 + static_cast<unsigned>(std::countr_zero(bits))];
      if (batched == 0) {
        lock(u);  // GL5: whoever holds it may be writing it back, and that has to be awaited
      } else if (!try_lock(u)) {
        finish();
        lock(u);
      }
      if (u.dirty_count == 0) {
        unlock(u);
        continue;
      }
      batch[batched++] = &u;
      if (batched == most_in_batch) finish();
    }
  }
  finish();
}

void cache::check_invariants() const noexcept {
  std::uint64_t dirty = 0;
  for (std::uint64_t i = 0; i < s_.unit_count; ++i) {
    const unit& u = s_.units[i];
    if (u.dirty_count != 0) ++dirty;
    GODWIT_CHECK(u.tag.load(std::memory_order_relaxed) != 0 ||
                     (u.pins == 0 && u.dirty_count == 0 && u.writing_count == 0),
                 "an empty unit of the cache is in use");
    const bool marked = (dirty_map_[i / 64].load(std::memory_order_relaxed) >> i % 64 & 1) != 0;
    GODWIT_CHECK((u.dirty_count != 0) == marked, "the map of dirty units is wrong");
  }
  GODWIT_CHECK(dirty == s_.host->dirty_units.load(std::memory_order_relaxed), "dirty units counted wrongly");
}

}  // namespace godwit::gas
