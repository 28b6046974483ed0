// Allocation. See memory.hpp.
//
// Local: the calling worker's own heap; what others free comes back through a list that its owner empties
// when it allocates. Shared: addresses are given out by worker 0's host under one lock, fresh ones as long as
// there are any, so that addresses that were freed are noticed rather than reused. Then freed ones, searched
// for extent by extent. When they are reused, a generation is counted up on all hosts, which makes every copy
// of an old descriptor invalid.
#include "gas/memory.hpp"
#include "gas/pieces.hpp"

#include <godwit/global_memory.hpp>

#include "base/check.hpp"
#include "base/lock.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

namespace godwit::gas {

using kind = detail::spread::kind;

namespace {

constexpr std::uint64_t default_cyclic_block = 64 << 10;

std::string show(std::uint64_t bytes) {
  char text[64];
  if (bytes >= 10ull << 30)
    std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  else if (bytes >= 10ull << 20)
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  else
    std::snprintf(text, sizeof text, "%llu bytes", static_cast<unsigned long long>(bytes));
  return text;
}

}  // namespace

bool memory::take_budget(std::uint32_t host, std::uint64_t bytes) {
  const std::uint32_t w = reach_.first_of(host);
  const global_address at = reach_.address_of(&host_->used_bytes);
  const std::uint64_t limit =
      reach_.atomic(w, reach_.address_of(&host_->limit_bytes), atomic_function::load, 8, 0);
  std::uint64_t used = reach_.atomic(w, at, atomic_function::load, 8, 0);
  for (;;) {  // never counted before it is granted: others would be refused for its sake
    if (bytes > limit || used > limit - bytes) return false;
    const std::uint64_t seen = reach_.atomic(w, at, atomic_function::compare_exchange, 8, used + bytes, used);
    if (seen == used) return true;
    used = seen;
  }
}

void memory::give_budget(std::uint32_t host, std::uint64_t bytes) {
  reach_.atomic(reach_.first_of(host), reach_.address_of(&host_->used_bytes), atomic_function::fetch_add, 8,
                0 - bytes);
}

void memory::no_room(std::uint64_t bytes, std::uint32_t host, const char* of_what, const char* remedy) {
  const std::uint32_t w = reach_.first_of(host);
  const std::uint64_t used =
      reach_.atomic(w, reach_.address_of(&host_->used_bytes), atomic_function::load, 8, 0);
  const std::uint64_t limit =
      reach_.atomic(w, reach_.address_of(&host_->limit_bytes), atomic_function::load, 8, 0);
  throw global_bad_alloc("godwit: no room for " + show(bytes) + " of global memory: " + of_what +
                         " (host of worker " + std::to_string(w) + ": " + show(used) + " in use, limit " +
                         show(limit) + "): " + remedy);
}

void memory::drain_returned() noexcept {
  auto& list = reach_.at<home_words>(space::words_low + sizeof(host_words))[me_].returned;
  if (list.load(std::memory_order_relaxed) == 0) return;
  for (std::uint64_t a = list.exchange(0, std::memory_order_acquire); a != 0;) {
    GODWIT_ASSERT(where_.is_local(a) && where_.local_home(a) == me_, "objects come back to their home");
    void* object = reach_.at(a);
    GODWIT_ASSERT(heap::header_of(object)->magic == object_header::dead, "what comes back was freed");
    const global_address at = std::exchange(a, heap::header_of(object)->next);
    retire(at);
  }
}

/// A local object that is dead: free it; with checks, later.
void memory::retire(global_address at) noexcept {
  if (!checks_) return heap_.free(reach_.at(at));
  quarantine_.push_back(at);
  quarantine_bytes_ += heap::header_of(reach_.at(at))->bytes;
  if (quarantine_bytes_ > most_in_quarantine || quarantine_.size() > most_in_quarantine / 64)
    empty_quarantine(most_in_quarantine / 2);
}

/// Oldest first, until at most @p left bytes are there.
void memory::empty_quarantine(std::uint64_t left) noexcept {
  while (!quarantine_.empty() && (quarantine_bytes_ > left || quarantine_.size() > left / 64)) {
    void* object = reach_.at(quarantine_.front());
    quarantine_.pop_front();
    quarantine_bytes_ -= heap::header_of(object)->bytes;
    heap_.free(object);
  }
}

global_address memory::allocate_local(std::uint64_t bytes, std::uint64_t alignment, detail::place where) {
  drain_returned();
  void* p = heap_.allocate(std::max<std::uint64_t>(bytes, 1), alignment);
  if (p == nullptr && !quarantine_.empty()) {
    empty_quarantine(0);
    p = heap_.allocate(std::max<std::uint64_t>(bytes, 1), alignment);
  }
  if (p == nullptr) {
    std::uint64_t used, limit;
    usage(used, limit);
    if (used + bytes > limit)
      no_room(
          bytes, reach_.my_host(), "the host's limit is reached",
          "free some, or raise --godwit-global-limit (GODWIT_GLOBAL_LIMIT) if the machine has more memory");
    no_room(bytes, reach_.my_host(),
            ("worker " + std::to_string(me_) + " has addresses for " + show(where_.local_bytes()) +
             " of local memory")
                .c_str(),
            "use a distribution other than local, or raise --godwit-global-bytes (GODWIT_GLOBAL_BYTES)");
  }
  const global_address at = reach_.address_of(p);
  GODWIT_ASSERT(where_.is_local(at) && where_.local_home(at) == me_, "a worker allocates in its own area");
  if (checks_) {
    mark_shadow(at, std::max<std::uint64_t>(bytes, 1), true);
    sites_[at] = {bytes, where};
  }
  return at;
}

global_address memory::allocate(std::uint64_t bytes, std::uint64_t alignment, const detail::spread& how,
                                detail::place where) {
  if (!std::has_single_bit(alignment) || alignment > space::granule_bytes << 20)
    throw std::invalid_argument(
        "godwit: allocate: the alignment must be a power of two of at most 2^40, not " +
        std::to_string(alignment));
  if (how.what == kind::local && how.home != ~0u && how.home >= where_.homes)
    throw std::invalid_argument("godwit: allocate: there is no worker " + std::to_string(how.home) +
                                " to be the home: the run has " + std::to_string(where_.homes));
  if (bytes > where_.bytes)  // before the size of blocks, which may follow from it
    no_room(bytes, reach_.my_host(), ("the run has addresses for " + show(where_.bytes) + " in all").c_str(),
            "raise --godwit-global-bytes (GODWIT_GLOBAL_BYTES)");
  if (how.what == kind::user && how.block_bytes == 0)
    throw std::invalid_argument("godwit: allocate: a user distribution needs a block size");
  if (how.block_bytes % 16 != 0 || how.block_bytes > std::uint64_t{1} << 46)
    throw std::invalid_argument(
        "godwit: allocate: the block size must be a multiple of 16 bytes, at most 2^46, not " +
        std::to_string(how.block_bytes));
  if (how.what == kind::local && (how.home == ~0u || how.home == me_) && !how.movable)
    return allocate_local(bytes, alignment, where);
  const global_address at = allocate_shared(std::max<std::uint64_t>(bytes, 1), alignment, how);
  if (checks_) sites_[at] = {bytes, where};
  return at;
}

void memory::lock_shared() {
  base::spin_wait w;
  while (reach_.atomic(0, reach_.address_of(&host_->shared_lock), atomic_function::compare_exchange, 8,
                       base::holder(), 0) != 0) {
    if (several_hosts_) reach_.port().idle();
    w.turn();
  }
}
void memory::unlock_shared() {
  reach_.atomic(0, reach_.address_of(&host_->shared_lock), atomic_function::store, 8, 0);
}

std::uint64_t memory::take_granules(std::uint64_t count, std::uint64_t alignment, bool& reused) {
  const std::uint64_t aligned = std::max<std::uint64_t>(alignment >> space::granule_bits, 1);
  const std::uint64_t low = where_.shared_low >> space::granule_bits;  // alignment is of addresses
  const std::uint64_t all = where_.granules();
  auto load = [&](const word& w) {
    return reach_.atomic(0, reach_.address_of(&w), atomic_function::load, 8, 0);
  };
  auto store = [&](const word& w, std::uint64_t v) {
    reach_.atomic(0, reach_.address_of(&w), atomic_function::store, 8, v);
  };
  auto begin_in = [&](std::uint64_t g) { return (g + low + aligned - 1) / aligned * aligned - low; };
  if (count > all) return ~std::uint64_t{0};

  lock_shared();
  const std::uint64_t next = load(host_->next_granule);
  // Free granules [begin, end) in which the wanted ones lie.
  std::uint64_t begin = next, end = all, first = begin_in(next);
  const bool fresh = first + count <= all;
  bool found = fresh;
  if (!fresh) {  // no fresh ones: freed ones, from where the last search ended, then all
    const std::uint64_t rover = load(host_->rover);
    for (const auto& [from, to] : {std::pair{rover, next}, std::pair{std::uint64_t{0}, next}}) {
      begin = from;
      for (std::uint64_t g = from; g < to && !found;) {
        const extent_of e = extent_of::from(load(entry(g)->extent));
        GODWIT_ASSERT(e.granules != 0 && e.granules <= next - g, "extents divide what was handed out");
        g += e.granules;
        if (e.taken) {
          begin = g;
          continue;
        }
        end = g == next ? all : g;  // behind the last extent the fresh ones begin
        first = begin_in(begin);
        found = first + count <= end;
      }
      if (found) break;
    }
  }
  if (found) {
    if (first > begin) store(entry(begin)->extent, extent_of{first - begin, false}.packed());
    store(entry(first)->extent, extent_of{count, true}.packed());
    const std::uint64_t behind = first + count;
    if (end == all && behind > next)
      store(host_->next_granule, behind);
    else if (behind < std::min(end, next))
      store(entry(behind)->extent, extent_of{std::min(end, next) - behind, false}.packed());
    if (!fresh) store(host_->rover, behind);
  }
  GODWIT_ASSERT(!found || (first >= begin && first + count <= end && end <= all),
                "what is handed out lies in what was free");
  unlock_shared();
  reused = found && !fresh;
  return found ? first : ~std::uint64_t{0};
}

global_address memory::allocate_shared(std::uint64_t bytes, std::uint64_t alignment,
                                       const detail::spread& how) {
  descriptor d;
  d.what = static_cast<std::uint32_t>(how.what);
  d.bytes = bytes;
  d.home = how.home == ~0u ? me_ : how.home;
  switch (how.what) {
    case kind::local:
      d.block_bytes = how.block_bytes != 0 ? how.block_bytes : (bytes + 15) / 16 * 16;
      break;
    case kind::blocked: {
      const std::uint64_t equal = (bytes + where_.homes - 1) / where_.homes;
      const std::uint64_t grain = std::clamp<std::uint64_t>(alignment, 64, 4096);
      d.block_bytes = how.block_bytes != 0 ? how.block_bytes : (equal + grain - 1) / grain * grain;
      break;
    }
    case kind::cyclic:
      d.block_bytes = how.block_bytes != 0 ? how.block_bytes : default_cyclic_block;
      break;
    case kind::user:
      d.block_bytes = how.block_bytes;
      break;
  }
  GODWIT_ASSERT(bytes != 0 && d.block_bytes != 0, "an allocation has blocks");
  d.blocks = (bytes + d.block_bytes - 1) / d.block_bytes;
  if (how.what == kind::blocked && d.blocks > where_.homes)
    throw std::invalid_argument("godwit: allocate: " + std::to_string(d.blocks) + " blocks of " +
                                std::to_string(d.block_bytes) + " bytes are more than one for each of the " +
                                std::to_string(where_.homes) + " homes: take larger blocks, or cyclic");

  std::vector<std::uint32_t> homes;
  if (how.what == kind::user) {
    homes.resize(d.blocks);
    for (std::uint64_t b = 0; b < d.blocks; ++b) {
      homes[b] = how.home_of(how.arg, b, d.blocks, where_.homes);
      if (homes[b] >= where_.homes)
        throw std::invalid_argument("godwit: allocate: the distribution puts block " + std::to_string(b) +
                                    " at home " + std::to_string(homes[b]) + ", but the run has " +
                                    std::to_string(where_.homes));
    }
  }

  if (how.what == kind::user) {
    d.table = allocate_local(d.blocks * sizeof(std::uint32_t), 16, {});
    sites_.erase(d.table);
    std::memcpy(reach_.at(d.table), homes.data(), d.blocks * sizeof(std::uint32_t));
  }

  // Who pays how much.
  std::vector<std::uint64_t> share(reach_.host_count());
  auto home = [&](std::uint64_t b) -> std::uint32_t {
    return how.what == kind::local     ? d.home
           : how.what == kind::blocked ? static_cast<std::uint32_t>(b)
           : how.what == kind::cyclic  ? static_cast<std::uint32_t>(b % where_.homes)
                                       : homes[b];
  };
  if (reach_.host_count() == 1 || how.what == kind::local) {
    share[reach_.host_of(d.home)] = bytes;
  } else if (how.what == kind::cyclic) {
    for (std::uint32_t h = 0; h < where_.homes; ++h)
      share[reach_.host_of(h)] +=
          d.blocks / where_.homes * d.block_bytes + (h < d.blocks % where_.homes ? d.block_bytes : 0);
  } else {
    for (std::uint64_t b = 0; b < d.blocks; ++b) share[reach_.host_of(home(b))] += d.block_bytes;
  }
  if (reach_.host_count() > 1 && how.what != kind::local)  // the last block is not all there
    share[reach_.host_of(home(d.blocks - 1))] -= d.blocks * d.block_bytes - bytes;
  for (std::uint32_t h = 0; h < share.size(); ++h)
    if (share[h] != 0 && !take_budget(h, share[h])) {
      for (std::uint32_t before = 0; before < h; ++before)
        if (share[before] != 0) give_budget(before, share[before]);
      free(d.table, d.blocks * sizeof(std::uint32_t), {});
      no_room(
          share[h], h, "the host's limit is reached",
          "free some, or raise --godwit-global-limit (GODWIT_GLOBAL_LIMIT) if the machine has more memory");
    }

  const std::uint64_t data_granules = (bytes + space::granule_bytes - 1) >> space::granule_bits;
  const std::uint64_t owner_granules =
      how.movable ? (d.blocks * sizeof(word) + space::granule_bytes - 1) >> space::granule_bits : 0;
  const std::uint64_t count = data_granules + owner_granules;
  bool reused = false;
  const std::uint64_t first = take_granules(count, alignment, reused);
  if (first == ~std::uint64_t{0}) {
    for (std::uint32_t h = 0; h < share.size(); ++h)
      if (share[h] != 0) give_budget(h, share[h]);
    free(d.table, d.blocks * sizeof(std::uint32_t), {});
    no_room(bytes, reach_.my_host(),
            ("the run has addresses for " + show(where_.bytes - where_.shared_low) + " of distributed memory")
                .c_str(),
            "raise --godwit-global-bytes (GODWIT_GLOBAL_BYTES)");
  }
  d.first = first;
  d.extent.store(extent_of{count, true}.packed(), std::memory_order_relaxed);  // it says so already
  if (how.movable) d.owners = where_.shared_low + ((first + data_granules) << space::granule_bits);

  // Contents first, then the state that makes them valid.
  std::vector<std::byte> entries((count - 1) * sizeof(descriptor));
  for (std::uint64_t i = 1; i < count; ++i) {
    descriptor inside;
    inside.first = first;
    inside.state.store(descriptor::interior, std::memory_order_relaxed);
    std::memcpy(entries.data() + (i - 1) * sizeof inside, static_cast<void*>(&inside), sizeof inside);
  }
  if (count > 1) reach_.put(0, reach_.address_of(entry(first + 1)), entries.data(), entries.size());
  d.state.store(descriptor::none, std::memory_order_relaxed);
  d.generation.store(host_->generation.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  reach_.put(0, reach_.address_of(entry(first)), static_cast<void*>(&d), sizeof d);
  // Now, not before: a copy of an old entry made from here on would pass for a new one. Nobody has the
  // address yet.
  for (std::uint32_t h = 0; reused && h < reach_.host_count(); ++h) {
    const std::uint32_t w = reach_.first_of(h);
    reach_.atomic(w, reach_.address_of(&host_->generation), atomic_function::fetch_add, 8, 1);
    // copies of what was there
    reach_.atomic(w, reach_.address_of(&host_->epoch), atomic_function::fetch_add, 8, 1);
  }
  reach_.atomic(0, reach_.address_of(&entry(first)->state), atomic_function::store, 8, descriptor::live);
  return begin_of(d);
}

void memory::free(global_address at, std::uint64_t bytes, detail::place where) {
  if (at == 0) return;
  if (several_hosts_) release();  // else what is dirty would be written into the next allocation here
  if (where_.is_shared(at)) return free_shared(at, bytes, where);
  if (!where_.is_local(at)) bad_address(at, bytes, "free");
  const std::uint32_t home = where_.local_home(at);
  object_header header;
  const global_address header_at = at - sizeof header;
  reach_.get(home, &header, header_at, sizeof header);
  if (header.magic != object_header::live || header.bytes != std::max<std::uint64_t>(bytes, 1)) {
    if (header.magic == object_header::dead)
      base::fatal("worker %u: global memory at global:0x%llx was freed twice, the second time at %s:%u", me_,
                  static_cast<unsigned long long>(at), where.file, where.line);
    if (header.magic == object_header::live)
      base::fatal(
          "worker %u: global memory at global:0x%llx was allocated as %llu bytes, but freed as %llu at "
          "%s:%u: give "
          "deallocate the same type and number as allocate",
          me_, static_cast<unsigned long long>(at), static_cast<unsigned long long>(header.bytes),
          static_cast<unsigned long long>(bytes), where.file, where.line);
    base::fatal(
        "worker %u: deallocate of global:0x%llx at %s:%u, which is not the beginning of an allocation", me_,
        static_cast<unsigned long long>(at), where.file, where.line);
  }
  if (checks_) mark_shadow(at, header.bytes, false);
  sites_.erase(at);
  const bool mine = home == me_;
  // whoever else frees the same finds it dead, nearly always
  if (mine && !checks_) return heap_.free(reach_.at(at));
  // The word `magic` decides between two that free the same: only one finds it alive.
  const global_address magic_at = header_at + offsetof(object_header, magic);
  if (reach_.atomic(home, magic_at, atomic_function::compare_exchange, 4, object_header::dead,
                    object_header::live) != object_header::live)
    base::fatal("worker %u: global memory at global:0x%llx was freed twice, the second time at %s:%u", me_,
                static_cast<unsigned long long>(at), where.file, where.line);
  if (mine) return retire(at);
  const global_address list =
      space::words_low + sizeof(host_words) + home * sizeof(home_words) + offsetof(home_words, returned);
  std::uint64_t head = reach_.atomic(home, list, atomic_function::load, 8, 0);
  for (;;) {
    reach_.put(home, header_at + offsetof(object_header, next), &head, sizeof head);
    const std::uint64_t seen = reach_.atomic(home, list, atomic_function::compare_exchange, 8, at, head);
    if (seen == head) return;
    head = seen;
  }
}

void memory::free_shared(global_address at, std::uint64_t bytes, detail::place where) {
  descriptor* d = find(at);
  if (d == nullptr || begin_of(*d) != at)
    base::fatal(
        "worker %u: deallocate of global:0x%llx at %s:%u, which is not the beginning of a live allocation: "
        "freed "
        "already, or moved by pointer arithmetic",
        me_, static_cast<unsigned long long>(at), where.file, where.line);
  if (d->bytes != std::max<std::uint64_t>(bytes, 1))
    base::fatal(
        "worker %u: global memory at global:0x%llx was allocated as %llu bytes, but freed as %llu at %s:%u: "
        "give "
        "deallocate the same type and number as allocate",
        me_, static_cast<unsigned long long>(at), static_cast<unsigned long long>(d->bytes),
        static_cast<unsigned long long>(bytes), where.file, where.line);
  const std::uint64_t first = d->first;
  const std::uint64_t count = extent_of::from(d->extent.load(std::memory_order_relaxed)).granules;
  GODWIT_ASSERT(count != 0 && first + count <= where_.granules(), "an allocation lies in the shared part");
  const global_address table = d->table;
  const std::uint64_t table_bytes = d->blocks * sizeof(std::uint32_t);
  std::vector<std::uint64_t> share(reach_.host_count());
  if (reach_.host_count() == 1) {
    share[0] = d->bytes;
  } else if (static_cast<kind>(d->what) == kind::local) {
    share[reach_.host_of(d->home)] = d->bytes;
  } else {
    for (std::uint64_t b = 0; b < d->blocks; ++b)
      share[reach_.host_of(home_of_block(*d, b))] += d->block_bytes;
    share[reach_.host_of(home_of_block(*d, d->blocks - 1))] -= d->blocks * d->block_bytes - d->bytes;
  }
  const global_address state_at = reach_.address_of(&entry(first)->state);
  if (reach_.atomic(0, state_at, atomic_function::compare_exchange, 8, descriptor::freed, descriptor::live) !=
      descriptor::live)
    base::fatal("worker %u: global memory at global:0x%llx was freed twice, the second time at %s:%u", me_,
                static_cast<unsigned long long>(at), where.file, where.line);
  if (!reach_.is_near(0)) d->state.store(descriptor::freed, std::memory_order_release);  // our host's copy
  sites_.erase(at);
  for (std::uint32_t h = 0; h < reach_.host_count(); ++h) {
    if (h == reach_.my_host()) {
      transport::shm::window::discard(reach_.at(at), count << space::granule_bits);
    } else {
      const base::section inside;
      reach_.port().discard(worker_no{reach_.first_of(h)}, reach_.at(at), count << space::granule_bits);
    }
    if (share[h] != 0) give_budget(h, share[h]);
  }
  // Now the addresses may be used again.
  lock_shared();
  reach_.atomic(0, reach_.address_of(&entry(first)->extent), atomic_function::store, 8,
                extent_of{count, false}.packed());
  unlock_shared();
  if (table != 0) free(table, table_bytes, where);
}

}  // namespace godwit::gas
