// The cache: what was this host's own memory is another's from now on. Called by companions and workers of
// the host that a part leaves (place_call::leave, places.cpp). See cache.hpp; docs/protocols/move.md, MV10.
#include "gas/cache.hpp"

#include "base/check.hpp"

#include <algorithm>

namespace godwit::gas {

namespace {
/// Units whose bytes go: they and their sets are locked until all go together. A call of the system for each
/// costs more than its pages.
struct leaving_units {
  static constexpr unsigned most = 16;
  std::byte* low = nullptr;
  std::uint64_t bytes = 0;
  unsigned count = 0;
  unit* sets[most];
  unit* units[most];  ///< null: it is not in the cache

  void add(unit* set, unit* u, std::byte* at, std::uint64_t n) noexcept {
    GODWIT_ASSERT(count < most && (count == 0 || at == low + bytes), "they lie together");
    if (count == 0) low = at;
    bytes += n;
    sets[count] = set;
    units[count++] = u;
  }
  void go() noexcept {
    if (bytes != 0) transport::shm::window::discard(low, bytes);
    for (unsigned i = 0; i < count; ++i) {
      if (units[i] != nullptr) base::unlock(units[i]->lock, base::holder());
      base::unlock(sets[i]->set_lock, base::holder());
    }
    bytes = count = 0;
  }
};
}  // namespace

std::uint64_t cache::forget(unit* units, std::uint64_t unit_count, std::byte* window, std::byte* at,
                            std::uint64_t bytes) noexcept {
  const auto begin = static_cast<global_address>(at - window);
  const std::uint64_t last = number_of(begin + bytes - 1);
  leaving_units leaving;
  std::uint64_t n = number_of(begin);
  for (; n <= last; ++n) {
    const unit_range r = part_of(n, begin, bytes);
    unit* const set = set_in(units, unit_count, n);
    // GL8, MV4: who may be a companion, or serve under a unit's lock, waits for none.
    bool locked = base::try_lock(set->set_lock, base::holder());
    if (!locked && leaving.count != 0) {  // perhaps by this caller, if sets are few
      leaving.go();
      locked = base::try_lock(set->set_lock, base::holder());
    }
    if (!locked) break;
    unit* const u = is_in(set, n);
    if (u != nullptr && !base::try_lock(u->lock, base::holder())) {
      base::unlock(set->set_lock, base::holder());
      break;
    }
    if (u != nullptr) forget_copy(*u);
    if (u == nullptr || (u->pins == 0 && u->dirty.empty())) {
      leaving.add(set, u, window + n * unit_bytes + r.low, r.high - r.low);
      if (leaving.count == leaving_units::most) leaving.go();
    } else {  // MV10: open and dirty bytes stay
      base::unlock(u->lock, base::holder());
      base::unlock(set->set_lock, base::holder());
      leaving.go();
    }
  }
  leaving.go();
  return n > last ? bytes : std::max(n * unit_bytes, begin) - begin;
}

place_site site_of_host(const transport::shm::segment& memory, std::byte* window, const space& where,
                        std::uint64_t unit_count) noexcept {
  return {&memory,
          reinterpret_cast<host_words*>(window + space::words_low),
          [](const place_site& site, std::byte* at, std::uint64_t bytes) noexcept {
            return cache::forget(static_cast<unit*>(site.units), site.unit_count, site.window, at, bytes);
          },
          window,
          window + where.units_low,
          unit_count};
}

}  // namespace godwit::gas
