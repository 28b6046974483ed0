// The cache: what travels between it and the owners. See cache.hpp and docs/protocols/global.md.
#include "gas/cache.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "gas/translations.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <span>
#include <vector>

namespace godwit::gas {

void cache::add_far_parts(std::vector<part>& parts, global_address at, std::uint64_t bytes,
                          std::byte* here) noexcept {
  blocks_.visit_pieces(at, bytes, [&](const piece& p) {
    if (p.is_memory(net_)) return;
    parts.emplace_back(net_, p, here + (p.at - at));
    if (p.words != nullptr) net_.hints().look_up(net_, parts.back());
    // What is about to leave or to come is not to be had before it has: MV11
    if (p.words != nullptr && !p.is_copy(net_)) parts.back().host = net_.my_host();
  });
}

bool cache::any_in(const std::vector<part>& parts, global_address unit_begin) noexcept {
  return std::any_of(parts.begin(), parts.end(), [&](const part& p) {
    return p.at < unit_begin + unit_bytes && unit_begin < p.at + p.bytes;
  });
}

void cache::count_fetch(std::uint64_t units, std::uint64_t bytes, std::uint64_t since) noexcept {
  s_.stats->global_fetches += units;
  s_.stats->global_fetched_bytes += bytes;
  s_.stats->global_fetch_ns += base::fast_ns() - since;
  if (s_.note != nullptr) s_.note(cache_event::fetch, since, bytes);
}

/// The units stay locked while the request is away: GL1.
std::vector<part> cache::fetch_units(std::uint64_t first, std::uint64_t count) noexcept {
  const std::uint64_t since = base::fast_ns();
  std::vector<part> parts, left;
  add_far_parts(parts, first * unit_bytes, count * unit_bytes, net_.at(first * unit_bytes));
  fetch(net_, parts, left);
  count_fetch(count, bytes_of(parts), since);
  return left;
}

void cache::put_around(unit& u, std::uint64_t low, std::uint64_t high, const std::byte* from) noexcept {
  GODWIT_ASSERT(is_locked(u), "GL2, MV10: a unit's ranges are looked at under its lock");
  unit_range kept[2 * unit_ranges::most];
  auto* const end =
      std::copy(u.writing.begin(), u.writing.end(), std::copy(u.dirty.begin(), u.dirty.end(), kept));
  std::sort(kept, end, [](unit_range x, unit_range y) { return x.low < y.low; });
  std::uint64_t at = low;
  auto put_up_to = [&](std::uint64_t to) {
    if (at < to) std::memcpy(net_.at(begin_of(u) + at), from + (at - low), to - at);
  };
  for (const unit_range* k = kept; k != end; ++k) {
    put_up_to(std::min<std::uint64_t>(k->low, high));
    at = std::max<std::uint64_t>(at, k->high);
  }
  put_up_to(high);
}

/// Of a unit with dirty or open bytes, which stay as they are: GL2.
bool cache::fetch_around(unit& u) noexcept {
  GODWIT_ASSERT(is_locked(u) && u.pins != 0, "GL1: a unit is locked while it is fetched");
  const std::uint64_t since = base::fast_ns();
  const auto room = std::make_unique_for_overwrite<std::byte[]>(unit_bytes);
  std::vector<part> parts, left;
  add_far_parts(parts, begin_of(u), unit_bytes, room.get());
  fetch(net_, parts, left);
  if (!left.empty()) return false;
  for (const part& p : parts)
    put_around(u, p.at - begin_of(u), p.at - begin_of(u) + p.bytes, room.get() + (p.at - begin_of(u)));
  count_fetch(1, bytes_of(parts), since);
  return true;
}

bool cache::mark_dirty(unit& u, unit_range r) noexcept {
  GODWIT_ASSERT(is_locked(u) && u.tag.load(std::memory_order_relaxed) != 0,
                "who marks a unit has locked it, and it holds something");
  const bool first = u.dirty.empty();
  if (!u.dirty.join(r)) return false;
  if (!first) return true;
  const std::uint64_t slot = slot_of(u);
  dirty_word(slot / 64).fetch_or(std::uint64_t{1} << slot % 64, std::memory_order_acq_rel);
  net_.host().dirty_units.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

/// Its dirty ranges were put when the host's epoch was @p epoch, and are home: GL5.
void cache::mark_clean(unit& u, std::uint64_t epoch) noexcept {
  if (u.dirty.empty()) return;
  if (u.dirty.cover({0, unit_bytes}) && is_old(u, epoch)) u.epoch = epoch;  // all of it is what we wrote
  u.dirty.count = 0;
  ++u.changes;  // GL9
  const std::uint64_t slot = slot_of(u);
  GODWIT_ASSERT(net_.host().dirty_units.load(std::memory_order_relaxed) != 0, "a dirty unit is counted");
  dirty_word(slot / 64).fetch_and(~(std::uint64_t{1} << slot % 64), std::memory_order_acq_rel);
  net_.host().dirty_units.fetch_sub(1, std::memory_order_acq_rel);
  ++s_.stats->global_write_backs;
}

/// The units stay locked until the answers are here: GL1.
bool cache::write_back(unit* const* units, std::size_t count) noexcept {
  const std::uint64_t since = base::fast_ns();
  const std::uint64_t epoch = net_.host().epoch.load(std::memory_order_acquire);
  std::vector<part> parts, left;
  for (const unit* u : std::span(units, count)) {
    GODWIT_ASSERT(is_locked(*u), "GL1: a unit is locked while it is written back");
    GODWIT_ASSERT(u->dirty.count <= unit_ranges::most, "no more ranges than there is room for");
    for (const unit_range r : u->dirty)
      add_far_parts(parts, begin_of(*u) + r.low, r.high - r.low, net_.at(begin_of(*u) + r.low));
  }
  write(net_, parts, left);
  for (unit* u : std::span(units, count))
    if (!any_in(left, begin_of(*u))) mark_clean(*u, epoch);  // MV11
  const std::uint64_t bytes = bytes_of(parts);
  s_.stats->global_written_bytes += bytes;
  s_.stats->global_write_back_ns += base::fast_ns() - since;
  if (s_.note != nullptr) s_.note(cache_event::write_back, since, bytes);
  return left.empty();
}

void cache::write_back() noexcept {
  if (!has_dirty()) return;
  for (part_wait more(net_); !write_back_once();) more.wait(0);
}

/// False: some could not be written back now, and are dirty still.
bool cache::write_back_once() noexcept {
  unit* batch[most_in_batch];
  std::size_t batched = 0;
  bool all = true;
  auto finish = [&] {
    if (batched == 0) return;
    if (!write_back(batch, batched)) all = false;
    for (std::size_t i = 0; i < batched; ++i) unlock(*batch[i]);
    batched = 0;
  };
  for (std::uint64_t w = 0; w < s_.unit_count / 64; ++w) {
    for (std::uint64_t bits = dirty_word(w).load(std::memory_order_acquire); bits != 0; bits &= bits - 1) {
      unit& u = s_.units[w * 64 + static_cast<unsigned>(std::countr_zero(bits))];
      if (batched == 0) {
        lock(u);  // GL5: whoever holds it may be writing it back, and that has to be awaited
      } else if (!try_lock(u)) {
        finish();
        lock(u);
      }
      if (u.dirty.empty()) {
        unlock(u);
        continue;
      }
      batch[batched++] = &u;
      if (batched == most_in_batch) finish();
    }
  }
  finish();
  return all;
}

}  // namespace godwit::gas
