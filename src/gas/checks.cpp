// check_global: mistakes that would otherwise show up as wrong results. See memory.hpp.
#include "gas/memory.hpp"

#include "base/check.hpp"
#include "base/lock.hpp"

#include <algorithm>

namespace godwit::gas {

namespace {
struct check_guard {
  word& lock;
  explicit check_guard(word& w) : lock(w) { base::lock(lock, base::holder()); }
  ~check_guard() { base::unlock(lock, base::holder()); }
};
}  // namespace

/// Local memory: one bit per 16 bytes, at the home's host.
void memory::mark_shadow(global_address at, std::uint64_t bytes, bool live) noexcept {
  const std::uint32_t home = where_.local_home(at);
  const std::uint64_t first = (at - where_.local_low) / space::shadow_grain;
  const std::uint64_t last = (at + bytes - 1 - where_.local_low) / space::shadow_grain;
  for (std::uint64_t word_no = first / 64; word_no <= last / 64; ++word_no) {
    std::uint64_t mask = ~std::uint64_t{0};
    if (word_no == first / 64) mask &= ~std::uint64_t{0} << first % 64;
    if (word_no == last / 64) mask &= ~std::uint64_t{0} >> (63 - last % 64);
    const global_address a = where_.shadow_low + word_no * 8;
    if (live)
      reach_.atomic(home, a, atomic_function::fetch_or, 8, mask);
    else
      reach_.atomic(home, a, atomic_function::fetch_and, 8, ~mask);
  }
}

void memory::check_range(global_address at, std::uint64_t bytes, const char* doing) {
  if (bytes == 0) return;
  if (where_.is_local(at)) {
    const std::uint32_t home = where_.local_home(at);
    if (bytes > where_.local_begin(home) + where_.local_bytes() - at) bad_address(at, bytes, doing);
    const std::uint64_t first = (at - where_.local_low) / space::shadow_grain;
    const std::uint64_t last = (at + bytes - 1 - where_.local_low) / space::shadow_grain;
    std::vector<std::uint64_t> bits(last / 64 - first / 64 + 1);
    reach_.get(home, bits.data(), where_.shadow_low + first / 64 * 8, bits.size() * 8);
    for (std::uint64_t i = first; i <= last; ++i)
      if ((bits[i / 64 - first / 64] >> i % 64 & 1) == 0) bad_address(at, bytes, doing);
    return;
  }
  const descriptor* d = find(at);
  // A copy of the descriptor does not hear of the end: ask.
  if (d == nullptr || at + bytes > begin_of(*d) + d->bytes ||
      (!reach_.is_near(0) &&
       reach_.atomic(0, reach_.address_of(&d->state), atomic_function::load, 8, 0) != descriptor::live))
    bad_address(at, bytes, doing);
}

void memory::note_checkout(global_address at, std::uint64_t bytes, bool writes, const detail::place& where) {
  detail::hot().poll.store(1, std::memory_order_relaxed);  // the next spawn looks whether it is still open
  if (bytes == 0) return;
  const check_guard lock(host_->check_lock);
  open_checkout* free = nullptr;
  for (open_checkout& o : host_->open) {
    const std::uint64_t end = o.end.load(std::memory_order_relaxed);
    if (end == 0) {
      if (free == nullptr) free = &o;
      continue;
    }
    const std::uint64_t begin = o.begin.load(std::memory_order_relaxed);
    if ((writes || o.writes != 0) && begin < at + bytes && at < end)
      base::fatal(
          "worker %u: the checkout of global:0x%llx, %llu bytes, at %s:%u overlaps one of global:0x%llx, "
          "%llu bytes, "
          "which worker %u made at %s:%u and still holds, and one of them writes: order them with a join, or "
          "check "
          "out disjoint ranges",
          me_, static_cast<unsigned long long>(at), static_cast<unsigned long long>(bytes), where.file,
          where.line, static_cast<unsigned long long>(begin), static_cast<unsigned long long>(end - begin),
          o.worker, o.file, o.line);
  }
  if (free == nullptr) return;  // so many at once: the rest goes unchecked
  free->begin.store(at, std::memory_order_relaxed);
  free->file = where.file;
  free->line = where.line;
  free->worker = me_;
  free->writes = writes ? 1 : 0;
  free->end.store(at + bytes, std::memory_order_relaxed);
}

void memory::forget_checkout(global_address at, std::uint64_t bytes, bool writes) noexcept {
  if (bytes == 0) return;
  const check_guard lock(host_->check_lock);
  for (open_checkout& o : host_->open)
    if (o.end.load(std::memory_order_relaxed) == at + bytes &&
        o.begin.load(std::memory_order_relaxed) == at && o.worker == me_ && o.writes == (writes ? 1u : 0u)) {
      o.end.store(0, std::memory_order_relaxed);
      return;
    }
}

#ifndef NDEBUG
void memory::check_invariants() const {
  heap_.check_invariants();
  GODWIT_CHECK(host_->check_lock.load(std::memory_order_relaxed) == 0, "nobody looks at checkouts");
  // What belongs to the host is looked at by its first worker.
  if (me_ != reach_.first_of(reach_.my_host())) return;
  if (several_hosts_) cache_.check_invariants();
  if (me_ != 0) return;
  const std::uint64_t next = host_->next_granule.load(std::memory_order_relaxed);
  GODWIT_CHECK(host_->shared_lock.load(std::memory_order_relaxed) == 0, "nobody allocates");
  GODWIT_CHECK(next <= where_.granules(), "no more granules are handed out than there are");
  for (std::uint64_t g = 0; g < next;) {
    const extent_of e = extent_of::from(entry(g)->extent.load(std::memory_order_relaxed));
    GODWIT_CHECK(e.granules != 0 && e.granules <= next - g, "extents divide what was handed out");
    g += e.granules;
  }
}
#endif

std::string memory::open_checkouts() const {
  for (const open_checkout& o : host_->open)
    if (o.end.load(std::memory_order_relaxed) != 0 && o.worker == me_ && o.file != nullptr)
      return std::string(" made at ") + o.file + ":" + std::to_string(o.line);
  return {};
}

std::string memory::leaks() const {
  std::uint64_t bytes = 0, count = 0;
  const allocation_site* largest = nullptr;
  for (const auto& [at, site] : sites_) {
    // Others may have freed it.
    if (where_.is_local(at)) {
      if (heap::header_of(reach_.at(at))->magic != object_header::live) continue;
    } else if (reach_.atomic(0, reach_.address_of(&entry(where_.granule_of(at))->state),
                             atomic_function::load, 8, 0) != descriptor::live) {
      continue;
    }
    bytes += site.bytes;
    ++count;
    if (largest == nullptr || site.bytes > largest->bytes) largest = &site;
  }
  if (count == 0) return {};
  return "godwit: worker " + std::to_string(me_) + ": " + std::to_string(count) +
         " allocations of global memory, " + std::to_string(bytes) +
         " bytes in all, were not freed; the largest, of " + std::to_string(largest->bytes) +
         " bytes, was made at " + (largest->where.file != nullptr ? largest->where.file : "?") + ":" +
         std::to_string(largest->where.line);
}

}  // namespace godwit::gas
