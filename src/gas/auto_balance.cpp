// See auto_balance.hpp.
#include "gas/auto_balance.hpp"

#include "base/clock.hpp"
#include "gas/heat.hpp"

#include <algorithm>

namespace godwit::gas {

void auto_balance::look() {
  word& last = net_.host().balanced_ns;
  std::uint64_t before = last.load(std::memory_order_relaxed);
  const std::uint64_t now = base::now_ns();
  if (now - before < every_ns ||
      !last.compare_exchange_strong(before, now, std::memory_order_relaxed, std::memory_order_relaxed))
    return;
  if (!try_lock()) return;                        // another host does; next time
  if (const descriptor* d = next()) look_at(*d);  // BA1: live, and nobody frees it now
  unlock();
}

const descriptor* auto_balance::next() {
  // Only what some worker of this host has used has a descriptor here, and can be wanted here.
  word& at = net_.host().balance_granule;
  const std::uint64_t end = net_.remote_load(0, net_.host().next_granule);
  std::uint64_t granule = at.load(std::memory_order_relaxed);
  for (std::uint64_t n = 0; n < std::min(end, most_granules); ++n) {
    if (granule >= end) granule = 0;
    const descriptor* const d = blocks_.entry(granule);
    at.store(granule, std::memory_order_relaxed);
    // Live first: then what is found is no older, since `generation` is told before (directory.cpp, enter).
    if (d->state.load(std::memory_order_acquire) == descriptor::live && d->movable() && blocks_.is_live(*d) &&
        blocks_.find_movable(where_.granule_begin(granule)) == d)
      return d;
    ++granule;
    net_.host().balance_part.store(0, std::memory_order_relaxed);
  }
  at.store(granule, std::memory_order_relaxed);
  return nullptr;
}

void auto_balance::look_at(const descriptor& d) {
  word& part = net_.host().balance_part;
  const std::uint64_t first = std::min(part.load(std::memory_order_relaxed), d.places() - 1);
  const std::uint64_t count = std::min(most_parts, d.places() - first);
  const global_address low = blocks_.begin_of(d) + first * d.move_bytes;
  const std::uint64_t bytes = std::min(count * d.move_bytes, blocks_.begin_of(d) + d.bytes - low);
  std::vector<byte_range> wanted;
  std::uint64_t sum = 0;
  for (const seen_part& s : look_at_parts(net_, blocks_, d, low, bytes, heat_then::is_halved)) {
    const std::uint32_t owner = ownership::from(s.state.place.owner, s.p.home).worker;
    if (s.state.other != net_.my_host() + 1 || net_.is_near(owner)) continue;
    if (!is_wanted(s.state, s.p.bytes)) continue;
    if (sum != 0 && sum + s.p.bytes > most_bytes) break;
    sum += s.p.bytes;
    wanted.push_back({s.p.at, s.p.bytes});
  }
  if (!wanted.empty()) static_cast<void>(mover_.pull(wanted, net_.me(), patience_ns));
  const bool all = first + count == d.places();
  part.store(all ? 0 : first + count, std::memory_order_relaxed);
  if (all) net_.host().balance_granule.store(d.first + d.all_granules(), std::memory_order_relaxed);
}

}  // namespace godwit::gas
