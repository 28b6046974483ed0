// The cache: what travels between it and the owners. See cache.hpp and docs/protocols/global.md.
#include "gas/cache.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <span>
#include <vector>

namespace godwit::gas {

void cache::add_far_parts(std::vector<part>& parts, global_address at, std::uint64_t bytes,
                          std::byte* here) noexcept {
  blocks_.visit_pieces(at, bytes, [&](const piece& p) {
    if (!net_.is_near(p.owner)) parts.push_back({net_.host_of(p.owner), p.at, p.bytes, here + (p.at - at)});
  });
}

void cache::count_fetch(std::uint64_t units, std::uint64_t bytes, std::uint64_t since) noexcept {
  s_.stats->global_fetches += units;
  s_.stats->global_fetched_bytes += bytes;
  s_.stats->global_fetch_ns += base::fast_ns() - since;
  if (s_.note != nullptr) s_.note(cache_event::fetch, since, bytes);
}

/// The units stay locked while the request is away: GL1.
void cache::fetch_units(std::uint64_t first, std::uint64_t count) noexcept {
  const std::uint64_t since = base::fast_ns();
  std::vector<part> parts;
  add_far_parts(parts, first * unit_bytes, count * unit_bytes, net_.at(first * unit_bytes));
  fetch(net_, parts);
  count_fetch(count, bytes_of(parts), since);
}

/// Of a unit with dirty or open bytes, which stay as they are: GL2.
void cache::fetch_around(unit& u) noexcept {
  GODWIT_ASSERT(is_locked(u) && u.pins != 0, "GL1: a unit is locked while it is fetched");
  const std::uint64_t since = base::fast_ns();
  const auto room = std::make_unique_for_overwrite<std::byte[]>(unit_bytes);
  std::vector<part> parts;
  add_far_parts(parts, begin_of(u), unit_bytes, room.get());
  fetch(net_, parts);
  unit_range kept[2 * unit_ranges::most];
  auto* const end =
      std::copy(u.writing.begin(), u.writing.end(), std::copy(u.dirty.begin(), u.dirty.end(), kept));
  std::sort(kept, end, [](unit_range x, unit_range y) { return x.low < y.low; });
  auto put = [&](std::uint64_t low, std::uint64_t high) {
    if (low < high) std::memcpy(net_.at(begin_of(u) + low), room.get() + low, high - low);
  };
  for (const part& p : parts) {
    std::uint64_t low = p.at - begin_of(u);
    const std::uint64_t high = low + p.bytes;
    for (const unit_range* k = kept; k != end; ++k) {
      put(low, std::min<std::uint64_t>(k->low, high));
      low = std::max<std::uint64_t>(low, k->high);
    }
    put(low, high);
  }
  count_fetch(1, bytes_of(parts), since);
}

void cache::mark_dirty(unit& u, unit_range r) noexcept {
  GODWIT_ASSERT(is_locked(u) && u.tag.load(std::memory_order_relaxed) != 0,
                "who marks a unit has locked it, and it holds something");
  const bool first = u.dirty.empty();
  if (!u.dirty.join(r)) {
    write_back(u);
    return mark_dirty(u, r);
  }
  if (!first) return;
  const std::uint64_t slot = slot_of(u);
  dirty_word(slot / 64).fetch_or(std::uint64_t{1} << slot % 64, std::memory_order_acq_rel);
  net_.host().dirty_units.fetch_add(1, std::memory_order_acq_rel);
}

/// Its dirty ranges were put when the host's epoch was @p epoch, and are home: GL5.
void cache::mark_clean(unit& u, std::uint64_t epoch) noexcept {
  if (u.dirty.empty()) return;
  if (u.dirty.cover({0, unit_bytes})) u.epoch = std::max(u.epoch, epoch);  // all of it is what we wrote
  u.dirty.count = 0;
  const std::uint64_t slot = slot_of(u);
  GODWIT_ASSERT(net_.host().dirty_units.load(std::memory_order_relaxed) != 0, "a dirty unit is counted");
  dirty_word(slot / 64).fetch_and(~(std::uint64_t{1} << slot % 64), std::memory_order_acq_rel);
  net_.host().dirty_units.fetch_sub(1, std::memory_order_acq_rel);
  ++s_.stats->global_write_backs;
}

/// The units stay locked until the answers are here: GL1.
void cache::write_back(unit* const* units, std::size_t count) noexcept {
  const std::uint64_t since = base::fast_ns();
  const std::uint64_t epoch = net_.host().epoch.load(std::memory_order_acquire);
  std::vector<part> parts;
  for (const unit* u : std::span(units, count)) {
    GODWIT_ASSERT(is_locked(*u), "GL1: a unit is locked while it is written back");
    GODWIT_ASSERT(u->dirty.count <= unit_ranges::most, "no more ranges than there is room for");
    for (const unit_range r : u->dirty)
      add_far_parts(parts, begin_of(*u) + r.low, r.high - r.low, net_.at(begin_of(*u) + r.low));
  }
  write(net_, parts);
  for (unit* u : std::span(units, count)) mark_clean(*u, epoch);
  const std::uint64_t bytes = bytes_of(parts);
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
}

}  // namespace godwit::gas
