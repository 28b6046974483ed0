// The cache: checkouts that are begun now and opened later, while the request is under way. Who uses it:
// begun.cpp. See cache.hpp and docs/protocols/global.md, Begun checkouts. Model: models/global.pml with
// BEGUN.
#include "gas/cache.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace godwit::gas {

namespace {
/// More would fill the ring of requests: the rest is fetched when the checkout is completed.
constexpr std::size_t most_requests = transport::far::ring_entries / 2;
/// Of a range in tiny blocks most would not be asked for.
constexpr std::size_t most_pieces = 512;

/// Those that touch become one. They are in the order of their addresses.
void join(std::vector<part>& parts) noexcept {
  std::vector<part> joined;
  for (const part& p : parts) {
    part* const last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && p.host == last->host && p.at == last->at + last->bytes &&
        p.here == last->here + last->bytes)
      last->bytes += p.bytes;
    else
      joined.push_back(p);
  }
  parts = std::move(joined);
}
}  // namespace

std::uint64_t cache::begin(begun_fetch& f, global_address at, std::uint64_t bytes) noexcept {
  f.wanted = net_.host().epoch.load(std::memory_order_acquire);  // GL3
  f.first = at / unit_bytes;
  const std::uint64_t last = (at + bytes - 1) / unit_bytes;
  std::uint64_t asked = 0;
  std::size_t pieces = 0;
  for (std::uint64_t n = f.first; n <= last && f.units.size() < most_in_batch; ++n) {
    const std::uint64_t low = std::max(at, n * unit_bytes), high = std::min(at + bytes, (n + 1) * unit_bytes);
    // Memory that moves is asked for when the checkout is completed: it may go elsewhere meanwhile.
    std::size_t far = 0;
    bool movable = false;
    blocks_.visit_pieces(n * unit_bytes, unit_bytes, [&](const piece& p) {
      movable = movable || p.words != nullptr;
      far += p.is_copy(net_) ? 1 : 0;
    });
    if (pieces + far > most_pieces) break;
    unit* const u = obtain(n, true);
    if (u == nullptr) break;
    ++u->pins;  // GL7
    u->used = ++clock_;
    const unit_range part{static_cast<std::uint16_t>(low - n * unit_bytes),
                          static_cast<std::uint16_t>(high - n * unit_bytes)};
    const bool valid = !is_old(*u, f.wanted) || u->dirty.cover(part) || u->writing.cover(part);
    f.units.push_back({u->changes, !valid && !movable && far != 0});
    unlock(*u);
    if (f.units.back().asked) {
      ++asked;
      pieces += far;
    }
  }
  return asked;
}

void cache::ask(begun_fetch& f, std::byte* room) noexcept {
  std::vector<part> parts;
  for (std::size_t i = 0; i < f.units.size(); ++i) {
    if (!f.units[i].asked) continue;
    f.units[i].epoch = stamp(f.first + i, f.wanted);  // FZ1: before asking
    f.units[i].room = room;
    add_far_parts(parts, (f.first + i) * unit_bytes, unit_bytes, room);
    room += unit_bytes;
  }
  join(parts);
  if (parts.size() > most_requests) {
    // Units of which not all would be asked for are not asked for.
    const global_address end = parts[most_requests].at / unit_bytes * unit_bytes;
    for (std::size_t i = 0; i < f.units.size(); ++i)
      if ((f.first + i) * unit_bytes >= end) f.units[i].asked = false;
    std::erase_if(parts, [&](const part& p) { return p.at >= end; });
  }
  const base::unexposed inside;
  for (const part& p : parts)
    f.requests.push_back({net_.port().begin(transport::far::op::get, worker_no{net_.first_of(p.host)},
                                            net_.at(p.at), p.here, p.bytes),
                          p.here, p.bytes});
}

/// The answers are here, and in their room.
void cache::drain(begun_fetch& f) noexcept {
  const base::unexposed inside;
  for (const begun_fetch::request& r : f.requests) {
    const transport::far::entry& answer = net_.port().await(r.ticket);
    if (r.bytes <= transport::far::inline_bytes) std::memcpy(r.to, answer.data, r.bytes);
    net_.port().forget(r.ticket);
  }
  f.requests.clear();
}

void cache::settle(begun_fetch& f) noexcept {
  const std::uint64_t since = base::fast_ns();
  std::uint64_t units = 0, bytes = 0;
  for (const begun_fetch::request& r : f.requests) bytes += r.bytes;
  drain(f);
  for (std::size_t i = 0; i < f.units.size(); ++i) {
    if (!f.units[i].asked) continue;
    ++units;
    bool busy;
    unit* const u = find(f.first + i, true, busy);
    GODWIT_CHECK(u != nullptr && u->pins != 0, "GL7: a unit that a checkout was begun of stays in the cache");
    // GL9: else what is here came later, or what the host has written meanwhile is in neither.
    if (is_old(*u, f.wanted) && u->changes == f.units[i].changes) {
      const global_address begin = begin_of(*u);
      blocks_.visit_pieces(begin, unit_bytes, [&](const piece& p) {
        if (p.is_copy(net_))
          put_around(*u, p.at - begin, p.at - begin + p.bytes, f.units[i].room + (p.at - begin));
      });
      u->epoch = f.units[i].epoch;
    }
    unlock(*u);
  }
  if (units != 0) count_fetch(units, bytes, since);
}

void cache::end(begun_fetch& f) noexcept {
  drain(f);
  for (std::size_t i = 0; i < f.units.size(); ++i) {
    bool busy;
    unit* const u = find(f.first + i, true, busy);
    GODWIT_CHECK(u != nullptr && u->pins != 0, "GL7: a unit that a checkout was begun of stays in the cache");
    --u->pins;
    unlock(*u);
  }
  f.units.clear();
}

}  // namespace godwit::gas
