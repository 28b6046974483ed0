// See extents.hpp.
#include "gas/extents.hpp"

#include "base/lock.hpp"

#include <algorithm>

namespace godwit::gas {

void extents::lock() noexcept {
  std::uint64_t nobody = 0;
  for (base::spin_wait w; !net_.remote_compare_exchange(0, net_.host().shared_lock, nobody, base::holder());
       nobody = 0) {
    if (net_.several_hosts()) net_.port().idle();
    w.turn();
  }
}

/// The first granule from @p granule on whose address is a multiple of @p alignment.
std::uint64_t extents::align(std::uint64_t granule, std::uint64_t alignment) const noexcept {
  const std::uint64_t step = std::max<std::uint64_t>(alignment >> space::granule_bits, 1);
  const std::uint64_t low = where_.shared_low >> space::granule_bits;
  return (granule + low + step - 1) / step * step - low;
}

/// Freed extents from the one at @p from on, those that touch joined; the last one goes on in the fresh
/// granules, from @p next.
bool extents::search(std::uint64_t from, std::uint64_t next, std::uint64_t count, std::uint64_t alignment,
                     gap& found) const noexcept {
  std::uint64_t begin = from;
  for (std::uint64_t g = from; g < next;) {
    const extent_of e = extent_of::from(net_.remote_load(0, entries_.entry(g)->extent));
    GODWIT_ASSERT(e.granules != 0 && e.granules <= next - g, "extents divide what was handed out");
    g += e.granules;
    if (e.taken) {
      begin = g;
      continue;
    }
    found = {begin, g == next ? where_.granules() : g, align(begin, alignment)};
    if (found.first + count <= found.end) return true;
  }
  return false;
}

extents::taken extents::take(std::uint64_t count, std::uint64_t alignment) noexcept {
  const std::uint64_t all = where_.granules();
  if (count > all) return {};
  lock();
  const host_words& words = net_.host();
  const std::uint64_t next = net_.remote_load(0, words.next_granule);
  gap in{next, all, align(next, alignment)};
  const bool fresh = in.first + count <= all;
  const bool found = fresh || search(net_.remote_load(0, words.rover), next, count, alignment, in) ||
                     search(0, next, count, alignment, in);
  if (found) {
    const std::uint64_t behind = in.first + count;
    GODWIT_ASSERT(in.begin <= in.first && behind <= in.end && in.end <= all,
                  "what is handed out lies in what was free");
    if (in.first > in.begin) mark(in.begin, {in.first - in.begin, false});
    mark(in.first, {count, true});
    if (in.end == all && behind > next)
      net_.remote_store(0, words.next_granule, behind);
    else if (const std::uint64_t end = std::min(in.end, next); behind < end)
      mark(behind, {end - behind, false});
    if (!fresh) net_.remote_store(0, words.rover, behind);
  }
  unlock();
  return {found, found && !fresh, in.first};
}

void extents::give(std::uint64_t first, std::uint64_t count) noexcept {
  GODWIT_ASSERT(count != 0 && first + count <= where_.granules(), "an extent lies in the shared part");
  lock();
  mark(first, {count, false});
  unlock();
}

void extents::check_invariants() const {
  const std::uint64_t next = net_.remote_load(0, net_.host().next_granule);
  GODWIT_CHECK(net_.remote_load(0, net_.host().shared_lock) == 0, "nobody allocates");
  GODWIT_CHECK(next <= where_.granules(), "no more granules are handed out than there are");
  for (std::uint64_t g = 0; g < next;) {
    const extent_of e = extent_of::from(net_.remote_load(0, entries_.entry(g)->extent));
    GODWIT_CHECK(e.granules != 0 && e.granules <= next - g, "extents divide what was handed out");
    g += e.granules;
  }
}

}  // namespace godwit::gas
