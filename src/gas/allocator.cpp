// See allocator.hpp.
#include "gas/allocator.hpp"

#include <godwit/global_memory.hpp>

#include "base/lock.hpp"
#include "base/thread_sanitizer.hpp"
#include "gas/heat.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace godwit::gas {

using kind = detail::spread::kind;

namespace {

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

constexpr std::uint64_t most_told = 4096;  // parts: in the trace, and looked at in one go

constexpr const char* raise_global_bytes = "raise --godwit-global-bytes (GODWIT_GLOBAL_BYTES)";

}  // namespace

allocator::allocator(const reach& net, const space& where, directory& blocks, checks& check,
                     bool force_movable)
    : net_(net),
      where_(where),
      blocks_(blocks),
      check_(check),
      force_movable_(force_movable),
      extents_(net, where, blocks) {
  const budget limits{[this](std::uint64_t bytes) { return take_budget(net_.my_host(), bytes); },
                      [this](std::uint64_t bytes) { give_budget(net_.my_host(), bytes); },
                      transport::shm::window::discard, transport::shm::window::populate};
  const global_address begin = where.local_begin(net.me());
  arena_.init(net.at(begin), where.local_bytes(), limits);
  arena_.objects().begin = begin;
  arena_.objects().bytes = where.local_bytes();
}

bool allocator::take_budget(std::uint32_t host, std::uint64_t bytes) const noexcept {
  const std::uint32_t w = net_.first_of(host);
  const std::uint64_t limit = net_.remote_load(w, net_.host().limit_bytes);
  std::uint64_t used = net_.remote_load(w, net_.host().used_bytes);
  do {  // never counted before it is granted: others would be refused for its sake
    if (bytes > limit || used > limit - bytes) return false;
  } while (!net_.remote_compare_exchange(w, net_.host().used_bytes, used, used + bytes));
  return true;
}

void allocator::give_budget(std::uint32_t host, std::uint64_t bytes) const noexcept {
  net_.remote_add(net_.first_of(host), net_.host().used_bytes, 0 - bytes);
}

std::uint32_t allocator::take_budgets(const std::vector<std::uint64_t>& share) const {
  const auto hosts = static_cast<std::uint32_t>(share.size());
  const auto load = [&](const word& w, std::vector<std::uint64_t>& to) {
    to.resize(hosts);
    net_.at_hosts(
        atomic_function::load, w,
        [&](std::uint32_t h) { return share[h] != 0 ? std::optional(atomic_operands()) : std::nullopt; },
        [&](std::uint32_t h, std::uint64_t v) { to[h] = v; });
  };
  std::vector<std::uint64_t> limit, used, paid(hosts);
  load(net_.host().limit_bytes, limit);
  load(net_.host().used_bytes, used);
  net_.at_hosts(
      atomic_function::compare_exchange, net_.host().used_bytes,
      [&](std::uint32_t h) -> std::optional<atomic_operands> {
        if (share[h] == 0 || share[h] > limit[h] || used[h] > limit[h] - share[h]) return std::nullopt;
        return atomic_operands{used[h] + share[h], used[h]};
      },
      [&](std::uint32_t h, std::uint64_t before) { paid[h] = before == used[h] ? share[h] : 0; });
  for (std::uint32_t h = 0; h < hosts; ++h) {
    if (share[h] == paid[h]) continue;
    if (take_budget(h, share[h])) {  // others were faster
      paid[h] = share[h];
    } else {
      give_budgets(paid);
      return h;
    }
  }
  return hosts;
}

void allocator::give_budgets(const std::vector<std::uint64_t>& share) const {
  net_.add_at_hosts(net_.host().used_bytes, [&](std::uint32_t h) { return 0 - share[h]; });
}

void allocator::usage(std::uint64_t& used, std::uint64_t& limit) const noexcept {
  used = net_.host().used_bytes.load(std::memory_order_relaxed);
  limit = net_.host().limit_bytes.load(std::memory_order_relaxed);
}

void allocator::no_room(std::uint64_t bytes, std::uint32_t host, const std::string& of_what,
                        const char* remedy) const {
  const std::uint32_t w = net_.first_of(host);
  const std::uint64_t used = net_.remote_load(w, net_.host().used_bytes);
  const std::uint64_t limit = net_.remote_load(w, net_.host().limit_bytes);
  throw global_bad_alloc("godwit: no room for " + show(bytes) + " of global memory: " + of_what +
                         " (host of worker " + std::to_string(w) + ": " + show(used) + " in use, limit " +
                         show(limit) + "): " + remedy);
}

void allocator::limit_reached(std::uint64_t bytes, std::uint32_t host) const {
  no_room(bytes, host, "the host's limit is reached",
          "free some, or raise --godwit-global-limit (GODWIT_GLOBAL_LIMIT) if the machine has more memory");
}

void allocator::drain_returned() noexcept {
  word& list = net_.home(net_.me()).returned;
  if (list.load(std::memory_order_relaxed) == 0) return;
  for (std::uint64_t a = list.exchange(0, std::memory_order_acquire); a != 0;) {
    GODWIT_ASSERT(where_.is_local(a) && where_.local_home(a) == net_.me(), "objects come back to their home");
    const object_header* header = arena::header_of(net_.at(a));
    GODWIT_ASSERT(header->is.magic == object_header::dead, "what comes back was freed");
    retire(std::exchange(a, header->next));
  }
}

/// A local object that is dead: free it; with checks, later.
void allocator::retire(global_address at) noexcept {
  if (!check_.on()) return arena_.free(net_.at(at));
  quarantine_.push_back(at);
  quarantine_bytes_ += arena::bytes_of(net_.at(at));
  if (quarantine_bytes_ > most_in_quarantine || quarantine_.size() > most_in_quarantine / 64)
    empty_quarantine(most_in_quarantine / 2);
}

/// Oldest first, until at most @p left bytes are there.
void allocator::empty_quarantine(std::uint64_t left) noexcept {
  while (!quarantine_.empty() && (quarantine_bytes_ > left || quarantine_.size() > left / 64)) {
    void* object = net_.at(quarantine_.front());
    quarantine_.pop_front();
    quarantine_bytes_ -= arena::bytes_of(object);
    arena_.free(object);
  }
}

namespace {
/// By its address ThreadSanitizer knows that what was freed was used before what is allocated.
constexpr char freed_before_ = 0;
}  // namespace

global_address allocator::take_object(std::uint64_t bytes, std::uint64_t alignment) {
  drain_returned();
  const std::uint64_t wanted = std::max<std::uint64_t>(bytes, 1);
  void* p = arena_.allocate(wanted, alignment);
  if (p == nullptr && !quarantine_.empty()) {
    empty_quarantine(0);
    p = arena_.allocate(wanted, alignment);
  }
  if (p == nullptr) {
    std::uint64_t used, limit;
    usage(used, limit);
    if (used + bytes > limit) limit_reached(bytes, net_.my_host());
    no_room(bytes, net_.my_host(),
            "worker " + std::to_string(net_.me()) + " has addresses for " + show(where_.local_bytes()) +
                " of local memory",
            "use a distribution other than local, or raise --godwit-global-bytes (GODWIT_GLOBAL_BYTES)");
  }
  const global_address at = net_.address_of(p);
  GODWIT_ASSERT(where_.is_local(at) && where_.local_home(at) == net_.me(),
                "a worker allocates in its own area");
  if (check_.on()) check_.mark_live(at, wanted, true);
  return at;
}

global_address allocator::allocate_local(std::uint64_t bytes, std::uint64_t alignment, detail::place where) {
  const global_address at = take_object(bytes, alignment);
  if (check_.on()) sites_[at] = {bytes, where};
  base::happens_after(&freed_before_);
  return at;
}

void allocator::check_arguments(std::uint64_t bytes, std::uint64_t alignment,
                                const detail::spread& how) const {
  if (!std::has_single_bit(alignment) || alignment > space::granule_bytes << 20)
    throw std::invalid_argument(
        "godwit: allocate: the alignment must be a power of two of at most 2^40, not " +
        std::to_string(alignment));
  if (how.what == kind::local && how.home != ~0u && how.home >= where_.homes)
    throw std::invalid_argument("godwit: allocate: there is no worker " + std::to_string(how.home) +
                                " to be the home: the run has " + std::to_string(where_.homes));
  if (bytes > where_.bytes)  // before the size of blocks, which may follow from it
    no_room(bytes, net_.my_host(), "the run has addresses for " + show(where_.bytes) + " in all",
            raise_global_bytes);
  if (how.what == kind::user && how.block_bytes == 0)
    throw std::invalid_argument("godwit: allocate: a user distribution needs a block size");
  if (how.block_bytes % 16 != 0 || how.block_bytes > std::uint64_t{1} << 46)
    throw std::invalid_argument(
        "godwit: allocate: the block size must be a multiple of 16 bytes, at most 2^46, not " +
        std::to_string(how.block_bytes));
}

global_address allocator::allocate(std::uint64_t bytes, std::uint64_t alignment, const detail::spread& how,
                                   detail::place where) {
  check_arguments(bytes, alignment, how);
  if (how.what == kind::local && (how.home == ~0u || how.home == net_.me()) && !how.movable)
    return allocate_local(bytes, alignment, where);
  detail::spread spread = how;
  if (force_movable_ && how.block_bytes % directory::page_bytes == 0) spread.movable = true;
  const global_address at = allocate_shared(std::max<std::uint64_t>(bytes, 1), alignment, spread);
  if (check_.on()) sites_[at] = {bytes, where};
  base::happens_after(&freed_before_);
  return at;
}

global_address allocator::allocate_shared(std::uint64_t bytes, std::uint64_t alignment,
                                          const detail::spread& how) {
  descriptor d;
  blocks_.divide(d, bytes, alignment, how);
  const std::uint64_t table_bytes = d.blocks * sizeof(std::uint32_t);
  if (how.what == kind::user) {
    const std::vector<std::uint32_t> homes = blocks_.ask_homes(d, how);
    d.table = take_object(table_bytes, 16);
    std::memcpy(net_.at(d.table), homes.data(), table_bytes);
  }
  const std::uint64_t count = d.all_granules();
  const std::vector<std::uint64_t> share = blocks_.bytes_per_host(d);
  const std::uint32_t refused = take_budgets(share);
  const bool paid = refused == share.size();
  extents::taken place;
  if (paid) place = extents_.take(count, alignment);
  if (!place.found) {
    if (paid) give_budgets(share);
    if (d.table != 0) free_local(d.table, table_bytes, {});
    if (!paid) limit_reached(share[refused], refused);
    no_room(bytes, net_.my_host(),
            "the run has addresses for " + show(where_.bytes - where_.shared_low) + " of distributed memory",
            raise_global_bytes);
  }
  d.first = place.first;
  d.extent.store(extent_of{count, true}.packed(), std::memory_order_relaxed);  // the entry says so already
  blocks_.enter(d, place.reused);
  if (d.movable() && net_.seen()) note_homes(d);
  return blocks_.begin_of(d);
}

/// Parts that lie together and have one home are told together.
void allocator::note_homes(const descriptor& d) {
  std::uint64_t told = 0;
  part_event run{part_event::kind::allocated, blocks_.begin_of(d)};
  run.bytes = d.move_bytes;
  const auto tell = [&] {
    if (run.count != 0) net_.note(run);
    run.part += std::exchange(run.count, 0);
    ++told;
  };
  blocks_.each_piece(blocks_.begin_of(d), d.bytes, [&](const piece& p) {
    const std::uint32_t home = told < most_told ? p.home : part_event::no_worker;
    if (home != run.to) tell();
    run.to = home;
    ++run.count;
  });
  tell();
}

void allocator::note_heat(const descriptor& d) {
  const global_address begin = blocks_.begin_of(d);
  std::vector<used_part> used;
  for (std::uint64_t first = 0; first < d.places(); first += most_told) {
    const global_address low = begin + first * d.move_bytes;
    const std::uint64_t bytes = std::min(begin + d.bytes - low, most_told * d.move_bytes);
    std::uint64_t part = first;
    for (const seen_part& s : look_at_parts(net_, blocks_, d, low, bytes, heat_then::goes)) {
      const part_state& is = s.state;
      used_part u{begin, part++, is.near, is.far, ownership::from(is.place.owner, s.p.home).worker, ~0u};
      if (is.other != 0) u.other = net_.first_of(is.other - 1);
      if (is.near == 0 && is.far == 0) continue;
      used.push_back(u);
      if (first != 0 || !net_.seen()) continue;
      net_.note({.what = part_event::kind::used,
                 .allocation = begin,
                 .part = u.part,
                 .to = is.other != 0 ? u.other : part_event::no_worker,
                 .count = is.far,
                 .near = is.near});
    }
    host_words& host = net_.host();
    base::lock(host.used_lock, base::holder());
    keep_most_used(host.used, used);
    base::unlock(host.used_lock, base::holder());
    used.clear();
  }
}

void allocator::note_heat_of_all() {
  const std::uint64_t end = net_.remote_load(0, net_.host().next_granule);
  for (std::uint64_t granule = 0; granule < end;) {
    const extent_of e = extent_of::from(net_.remote_load(0, blocks_.entry(granule)->extent));
    if (e.taken)
      if (const descriptor* d = blocks_.find_movable(where_.granule_begin(granule));
          d != nullptr && blocks_.is_live(*d))
        note_heat(*d);
    granule += e.granules;
  }
}

global_address allocator::reserve(std::uint64_t bytes) {
  const extents::taken place = extents_.take(space::granules_for(bytes), 1);
  if (!place.found)
    no_room(bytes, net_.my_host(),
            "the run has addresses for " + show(where_.bytes - where_.shared_low) + " of distributed memory",
            raise_global_bytes);
  return where_.shared_low + (place.first << space::granule_bits);
}

void allocator::freed_twice(global_address at, const detail::place& where) const {
  base::fatal("worker %u: global memory at global:0x%llx was freed twice, the second time at %s:%u",
              net_.me(), static_cast<unsigned long long>(at), where.file, where.line);
}

void allocator::other_size(global_address at, std::uint64_t allocated, std::uint64_t freed,
                           const detail::place& where) const {
  base::fatal(
      "worker %u: global memory at global:0x%llx was allocated as %llu bytes, but freed as %llu at %s:%u: "
      "give deallocate the same type and number as allocate",
      net_.me(), static_cast<unsigned long long>(at), static_cast<unsigned long long>(allocated),
      static_cast<unsigned long long>(freed), where.file, where.line);
}

void allocator::not_freed(const freed& f, global_address at, std::uint64_t bytes,
                          const detail::place& where) const {
  if (f.how == freed_as::done) return;
  if (f.how == freed_as::twice) freed_twice(at, where);
  if (f.how == freed_as::other_size) other_size(at, f.allocated, bytes, where);
  base::fatal("worker %u: deallocate of global:0x%llx at %s:%u, which is not the beginning of an allocation",
              net_.me(), static_cast<unsigned long long>(at), where.file, where.line);
}

void allocator::free(global_address at, std::uint64_t bytes, detail::place where) {
  base::happens_before(&freed_before_);
  if (where_.is_shared(at)) return free_shared(at, bytes, where);
  if (!where_.is_local(at)) blocks_.bad_address(at, bytes, "free");
  free_local(at, bytes, where);
}

void allocator::free_local(global_address at, std::uint64_t bytes, detail::place where) {
  const std::uint32_t home = where_.local_home(at);
  const returned object = {net_.at<object_header>(at) - 1, &net_.home(home), at, bytes};
  const bool mine = home == net_.me();
  if (!net_.is_near(home)) {
    freed f;
    if (check_.on()) {  // marked before its home may use it again
      f = ask_to_free(home, object, false);
      if (f.how == freed_as::done) check_.mark_live(at, f.allocated, false);
    }
    if (f.how == freed_as::done) f = ask_to_free(home, object, true);
    return not_freed(f, at, bytes, where);
  }
  not_freed(look_at(object.header, bytes), at, bytes, where);
  // Whoever else frees the same finds it dead, nearly always.
  if (mine && !check_.on()) return arena_.free(net_.at(at));
  if (!kill(object.header)) freed_twice(at, where);
  if (check_.on()) check_.mark_live(at, std::max<std::uint64_t>(bytes, 1), false);
  sites_.erase(at);
  if (mine) return retire(at);
  link(object);
}

freed allocator::ask_to_free(std::uint32_t home, const returned& object, bool now) const noexcept {
  const base::unexposed inside;
  const transport::far::entry& e =
      net_.port().call(worker_no{home}, free_call, now ? 1 : 0, 0, std::as_bytes(std::span(&object, 1)));
  freed f;
  std::memcpy(&f, e.data, sizeof f);
  return f;
}

void allocator::free_shared(global_address at, std::uint64_t bytes, detail::place where) {
  descriptor* d = blocks_.find(at);
  if (d == nullptr || blocks_.begin_of(*d) != at)
    base::fatal(
        "worker %u: deallocate of global:0x%llx at %s:%u, which is not the beginning of a live allocation: "
        "freed already, or moved by pointer arithmetic",
        net_.me(), static_cast<unsigned long long>(at), where.file, where.line);
  if (d->bytes != std::max<std::uint64_t>(bytes, 1)) other_size(at, d->bytes, bytes, where);
  // What has to be known when the descriptor is gone.
  const std::uint64_t first = d->first, count = d->all_granules();
  const global_address table = d->table;
  const std::uint64_t table_bytes = d->blocks * sizeof(std::uint32_t);
  std::vector<std::uint64_t> share = blocks_.bytes_per_host(*d);
  const bool movable = d->movable();
  if (movable)
    net_.at_hosts(
        atomic_function::load, blocks_.moved_of(*d).bytes,
        [](std::uint32_t) { return std::optional(atomic_operands()); },
        [&](std::uint32_t h, std::uint64_t moved) { share[h] += moved; });
  if (movable && net_.heat_told()) note_heat(*d);
  blocks_.thaw(*d);  // the next one here would be taken for frozen
  if (!blocks_.remove(*d)) freed_twice(at, where);
  blocks_.forget_everywhere();
  if (movable) blocks_.end_life();
  if (movable && net_.seen()) net_.note({.what = part_event::kind::freed, .allocation = at});
  sites_.erase(at);
  transport::shm::window::discard(net_.at(at), count << space::granule_bits);
  if (net_.several_hosts()) {
    const std::vector<worker_no> others = net_.other_hosts();
    const base::unexposed inside;
    net_.port().discard(others, net_.at(at), count << space::granule_bits);
  }
  give_budgets(share);
  extents_.give(first, count);  // now the addresses may be used again
  if (table != 0) free_local(table, table_bytes, where);
}

void allocator::check_invariants() const {
  arena_.check_invariants();
  if (net_.me() == 0) extents_.check_invariants();
}

std::string allocator::leaks() const {
  std::uint64_t bytes = 0, count = 0;
  const allocation_site* largest = nullptr;
  for (const auto& [at, site] : sites_) {
    // Others may have freed it.
    if (where_.is_local(at) ? arena::header_of(net_.at(at))->is.magic != object_header::live
                            : !blocks_.is_live(*blocks_.entry(where_.granule_of(at))))
      continue;
    bytes += site.bytes;
    ++count;
    if (largest == nullptr || site.bytes > largest->bytes) largest = &site;
  }
  if (count == 0) return {};
  return "godwit: worker " + std::to_string(net_.me()) + ": " + std::to_string(count) +
         " allocations of global memory, " + std::to_string(bytes) +
         " bytes in all, were not freed; the largest, of " + std::to_string(largest->bytes) +
         " bytes, was made at " + (largest->where.file != nullptr ? largest->where.file : "?") + ":" +
         std::to_string(largest->where.line);
}

}  // namespace godwit::gas
