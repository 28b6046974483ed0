// See directory.hpp.
#include "gas/directory.hpp"

#include "base/lock.hpp"
#include "transport/far/routed.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace godwit::gas {

using kind = detail::spread::kind;

namespace {
constexpr std::uint64_t default_block = 64 << 10;  // cyclic, and what moves together
}  // namespace

/// Entry @p granule, from worker 0's host if what is here is too old. One worker of a host at a time fetches
/// a copy, or an old one might be written over a new one (GL10). The state is what was seen with the
/// contents.
descriptor* directory::look(std::uint64_t granule, std::uint64_t& state) noexcept {
  GODWIT_ASSERT(granule < where_.granules(), "the directory has an entry per granule");
  descriptor* d = entry(granule);
  const bool own = net_.is_near(0);
  const auto is_good = [&](std::uint64_t generation) {
    const std::uint64_t seen = d->generation.load(std::memory_order_acquire);  // before the state
    state = d->state.load(std::memory_order_acquire);
    return own || ((state == descriptor::live || state == descriptor::interior) && seen == generation);
  };
  const auto generation_now = [&] { return net_.host().generation.load(std::memory_order_acquire) + 1; };
  if (is_good(generation_now())) return d;
  for (base::spin_wait turns; !base::try_lock(d->asking, base::holder()); turns.turn()) net_.port().idle();
  if (const std::uint64_t generation = generation_now(); !is_good(generation)) {  // before asking
    descriptor copy;
    net_.get(0, static_cast<void*>(&copy), net_.address_of(d), sizeof copy);
    d->state.store(descriptor::none, std::memory_order_relaxed);  // what comes is not that one's
    std::atomic_thread_fence(std::memory_order_release);
    base::settle();
    constexpr std::size_t contents = offsetof(descriptor, first);  // behind the words of the copy
    std::memcpy(reinterpret_cast<std::byte*>(d) + contents,
                reinterpret_cast<const std::byte*>(&copy) + contents, sizeof copy - contents);
    const bool frozen = copy.frozen.load(std::memory_order_relaxed) != 0;
    d->frozen.store(frozen ? generation : 0, std::memory_order_release);  // FZ3
    d->generation.store(generation, std::memory_order_release);
    state = copy.state.load(std::memory_order_relaxed);
    d->state.store(state, std::memory_order_release);
  }
  base::unlock(d->asking, base::holder());
  return d;
}

descriptor* directory::find(global_address at) {
  if (!where_.is_shared(at)) return nullptr;
  const std::uint64_t granule = where_.granule_of(at);
  std::uint64_t state = descriptor::none;
  descriptor* d = look(granule, state);
  if (state == descriptor::interior) d = look(d->first, state);
  if (state != descriptor::live) return nullptr;
  // The rest of a freed allocation may still name its first granule, where a smaller one begins now.
  return granule - d->first < d->all_granules() ? d : nullptr;
}

std::uint32_t directory::home_of_block(const descriptor& d, std::uint64_t block) {
  GODWIT_ASSERT(block < d.blocks && d.block_bytes != 0, "an allocation has blocks");
  switch (static_cast<kind>(d.what)) {
    case kind::local:
      return d.home;
    case kind::blocked:
      return static_cast<std::uint32_t>(block);
    case kind::cyclic:
      return static_cast<std::uint32_t>(block % where_.homes);
    case kind::user:
      break;
  }
  GODWIT_ASSERT(where_.is_local(d.table), "the table names a home for each block");
  const std::uint32_t maker = where_.local_home(d.table);
  if (net_.is_near(maker)) return net_.at<std::uint32_t>(d.table)[block];
  // Others may have got addresses that were used before: what is kept here may be of those who had them.
  const std::uint64_t generation = net_.host().generation.load(std::memory_order_acquire);
  const bool many = user_tables_.size() >= 64 && !user_tables_.contains(d.first);
  if (generation != std::exchange(user_tables_are_of_, generation) || many) user_tables_.clear();
  auto& table = user_tables_[d.first];
  if (table.empty()) {
    table.resize(d.blocks);
    net_.get(maker, table.data(), d.table, d.blocks * sizeof(std::uint32_t));
  }
  return table[block];
}

void directory::take_place(const descriptor& d, global_address at, piece& p) {
  const std::uint64_t i = std::min((at - begin_of(d)) / d.move_bytes, d.places() - 1);
  if (i != d.places() - 1) p.bytes = std::min(p.at + p.bytes, begin_of(d) + (i + 1) * d.move_bytes) - p.at;
  p.words = &words_of(d, i);
  p.home = std::exchange(
      p.owner, ownership::from(p.words->owner.load(std::memory_order_acquire), p.owner).worker);  // MV1
}

bool directory::take_piece(global_address at, std::uint64_t bytes, const descriptor*& d, piece& p) {
  if (where_.is_local(at)) {  // an allocation has one home there
    const std::uint32_t home = where_.local_home(at);
    p = {home, at, std::min(bytes, where_.local_begin(home) + where_.local_bytes() - at)};
    return true;
  }
  if (d == nullptr || at - begin_of(*d) >= d->data_granules() << space::granule_bits) d = find(at);
  if (d == nullptr) return false;
  const std::uint64_t block = (at - begin_of(*d)) / d->block_bytes;
  // Behind the last block there is only what rounding added.
  const bool last = block >= d->blocks - 1;
  const std::uint64_t end =
      begin_of(*d) + (last ? d->data_granules() << space::granule_bits : (block + 1) * d->block_bytes);
  if (at + bytes <= at || end <= at) return false;  // more bytes than addresses, or behind its data
  p = {home_of_block(*d, last ? d->blocks - 1 : block), at, std::min(at + bytes, end) - at};
  p.frozen = is_frozen(*d);
  if (d->movable()) take_place(*d, at, p);
  GODWIT_ASSERT(p.owner < where_.homes && p.bytes != 0, "a piece has an owner");
  return true;
}

piece directory::first_piece(global_address at, std::uint64_t bytes) {
  const descriptor* d = nullptr;
  piece p;
  if (!take_piece(at, bytes, d, p)) bad_address(at, bytes, "reach");
  return p;
}

std::uint32_t directory::home(global_address at) {
  if (where_.is_local(at)) return where_.local_home(at);
  const descriptor* d = find(at);
  if (d == nullptr) bad_address(at, 1, "ask for the home of");
  // The last block's for what lies behind it: an end is an address, too.
  return home_of_block(*d, std::min((at - begin_of(*d)) / d->block_bytes, d->blocks - 1));
}

bool directory::is_near(global_address at, std::uint64_t bytes) {
  if (!net_.several_hosts()) return true;
  bool near = true;
  each_piece(at, bytes, [&](const piece& p) { near = near && p.words == nullptr && net_.is_near(p.owner); });
  return near;
}

/// What moves together lies in one block, since that has one home.
void directory::divide_places(descriptor& d, const detail::spread& how) const {
  d.move_bytes = how.move_bytes != 0    ? how.move_bytes
                 : how.block_bytes != 0 ? how.block_bytes
                                        : default_block;
  if (d.move_bytes % page_bytes != 0)
    throw std::invalid_argument("godwit: allocate: what moves together must be a multiple of " +
                                std::to_string(page_bytes) + " bytes, not " + std::to_string(d.move_bytes) +
                                ": give distribution::movable a size");
  if (how.what == kind::local) return;
  if (how.what == kind::blocked && how.block_bytes == 0)
    d.block_bytes = (d.block_bytes + d.move_bytes - 1) / d.move_bytes * d.move_bytes;
  if (d.block_bytes % d.move_bytes != 0)
    throw std::invalid_argument("godwit: allocate: blocks of " + std::to_string(d.block_bytes) +
                                " bytes cannot be divided into movable parts of " +
                                std::to_string(d.move_bytes) + ": make them a multiple");
}

void directory::divide(descriptor& d, std::uint64_t bytes, std::uint64_t alignment,
                       const detail::spread& how) const {
  d.what = static_cast<std::uint32_t>(how.what);
  d.bytes = bytes;
  d.home = how.home == ~0u ? net_.me() : how.home;
  d.block_bytes = how.block_bytes;
  if (d.block_bytes == 0 && how.what == kind::local) d.block_bytes = (bytes + 15) / 16 * 16;
  if (d.block_bytes == 0 && how.what == kind::cyclic) d.block_bytes = default_block;
  if (d.block_bytes == 0 && how.what == kind::blocked) {
    const std::uint64_t equal = (bytes + where_.homes - 1) / where_.homes;
    const std::uint64_t grain = std::clamp<std::uint64_t>(alignment, 64, 4096);
    d.block_bytes = (equal + grain - 1) / grain * grain;
  }
  if (how.movable) divide_places(d, how);
  GODWIT_ASSERT(bytes != 0 && d.block_bytes != 0, "an allocation has blocks");
  d.blocks = (bytes + d.block_bytes - 1) / d.block_bytes;
  if (how.what == kind::blocked && d.blocks > where_.homes)
    throw std::invalid_argument("godwit: allocate: " + std::to_string(d.blocks) + " blocks of " +
                                std::to_string(d.block_bytes) + " bytes are more than one for each of the " +
                                std::to_string(where_.homes) + " homes: take larger blocks, or cyclic");
}

std::vector<std::uint32_t> directory::ask_homes(const descriptor& d, const detail::spread& how) const {
  std::vector<std::uint32_t> homes(d.blocks);
  for (std::uint64_t b = 0; b < d.blocks; ++b) {
    homes[b] = how.home_of(how.arg, b, d.blocks, where_.homes);
    if (homes[b] >= where_.homes)
      throw std::invalid_argument("godwit: allocate: the distribution puts block " + std::to_string(b) +
                                  " at home " + std::to_string(homes[b]) + ", but the run has " +
                                  std::to_string(where_.homes));
  }
  return homes;
}

std::vector<std::uint64_t> directory::bytes_per_host(const descriptor& d) {
  std::vector<std::uint64_t> share(net_.host_count());
  const auto what = static_cast<kind>(d.what);
  if (!net_.several_hosts() || what == kind::local) {
    share[net_.host_of(d.home)] = d.bytes;
    return share;
  }
  std::uint32_t host = 0;  // as a rule the next one's, too
  const auto share_of = [&](std::uint32_t home) -> std::uint64_t& {
    if (!net_.holds(host, home)) host = net_.host_of(home);
    return share[host];
  };
  if (what == kind::cyclic) {  // of these there may be very many
    for (std::uint32_t h = 0; h < where_.homes; ++h)
      share_of(h) += (d.blocks / where_.homes + (h < d.blocks % where_.homes)) * d.block_bytes;
  } else {
    for (std::uint64_t b = 0; b < d.blocks; ++b) share_of(home_of_block(d, b)) += d.block_bytes;
  }
  share[net_.host_of(home_of_block(d, d.blocks - 1))] -=
      d.blocks * d.block_bytes - d.bytes;  // is not all there
  return share;
}

void directory::enter(descriptor& d, bool reused) {
  // Contents first, then the state that makes them valid.
  const std::uint64_t inner = d.all_granules() - 1;
  std::vector<std::byte> entries(inner * sizeof(descriptor));
  for (std::uint64_t i = 0; i < inner; ++i) {
    descriptor inside{.state{descriptor::interior}, .generation{}, .first = d.first};
    std::memcpy(entries.data() + i * sizeof inside, static_cast<void*>(&inside), sizeof inside);
  }
  descriptor* const own = entry(d.first);
  if (inner != 0) net_.put(0, net_.address_of(own + 1), entries.data(), entries.size());
  base::settle();  // what was stored into d, which is copied as bytes
  if (reused && d.movable() && net_.has_datagrams()) d.life = new_life();  // SW4
  net_.put(0, net_.address_of(own), static_cast<void*>(&d), sizeof d);
  // Now, not before: a copy of an old entry made from here on would pass for a new one. Nobody has the
  // address yet.
  if (reused) {
    forget_everywhere();
    net_.increment_at_hosts(net_.host().reuses);
    net_.increment_at_hosts(net_.host().epoch);  // copies of what was there
    GODWIT_ASSERT(!d.movable() || begins_as_zero(d), "SW3: nobody wrote where freed parts had their words");
  }
  net_.remote_store(0, own->state, descriptor::live);
}

bool directory::remove(descriptor& d) noexcept {
  std::uint64_t state = descriptor::live;
  return net_.remote_compare_exchange(0, d.state, state, descriptor::freed);
}

void directory::forget_everywhere() const noexcept {
  if (!net_.several_hosts()) return;
  net_.increment_at_hosts(net_.host().generation);
  // Each worker once, not all of a host at once: where many evict all the time, there is no such moment.
  for (std::uint32_t n = 0; n < net_.evicting_words(); ++n) {
    std::vector<std::uint64_t> unseen(net_.host_count(), ~std::uint64_t{0});  // bits: still 1 at every look
    for (base::spin_wait turns;; turns.turn()) {
      net_.at_hosts(
          atomic_function::fetch_add, net_.home(n).evicting,
          [&](std::uint32_t h) { return unseen[h] ? std::optional(atomic_operands()) : std::nullopt; },
          [&](std::uint32_t h, std::uint64_t evicting) { unseen[h] &= evicting; });
      if (std::all_of(unseen.begin(), unseen.end(), [](std::uint64_t bits) { return bits == 0; })) break;
      net_.port().idle();
    }
  }
}

bool directory::begins_as_zero(const descriptor& d) const noexcept {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&moved_of(d));
  return std::all_of(bytes, bytes + sizeof(moved_words) + d.places() * sizeof(place_words),
                     [](std::byte b) { return b == std::byte{0}; });
}

std::uint64_t directory::new_life() const noexcept {
  return 1 + net_.atomic(0, net_.address_of(&net_.host().lives), atomic_function::fetch_add, sizeof(word), 1);
}

void directory::end_life() const noexcept {
  if (!net_.has_datagrams()) return;
  const std::uint64_t life = new_life();
  net_.at_hosts(
      atomic_function::max_unsigned, net_.host().life,
      [&](std::uint32_t) {
        return std::optional(atomic_operands{life, 0});
      },
      [](std::uint32_t, std::uint64_t) {});
  // Other hosts' companions have done that themselves. Ours may be carrying out what it looked at before.
  const base::unexposed inside;
  net_.port().call(worker_no{net_.me()}, transport::far::take_over, 0, 0);
}

void directory::freeze(descriptor& d) noexcept {
  net_.remote_store(0, d.frozen, 1);
  net_.increment_at_hosts(net_.host().generation);  // they look again
}

void directory::thaw(descriptor& d) noexcept {
  if (net_.remote_load(0, d.frozen) == 0) return;
  net_.remote_store(0, d.frozen, 0);  // FZ2: first
  net_.increment_at_hosts(net_.host().generation);
  net_.increment_at_hosts(net_.host().thaws);  // FZ2: behind that
}

std::pair<global_address, global_address> directory::whole_parts(const descriptor& d, global_address at,
                                                                 std::uint64_t bytes) const noexcept {
  const global_address begin = begin_of(d);
  return {begin + (at - begin) / d.move_bytes * d.move_bytes,
          begin + std::min(d.bytes, (at + bytes - begin + d.move_bytes - 1) / d.move_bytes * d.move_bytes)};
}

void directory::bad_address(global_address at, std::uint64_t bytes, const char* doing) const {
  if (at < space::null_bytes)
    base::fatal(
        "worker %u: tried to %s %llu bytes at global:0x%llx: a null global_ptr, or one that is an offset to "
        "null: allocate first, or give it a value",
        net_.me(), doing, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(at));
  base::fatal(
      "worker %u: tried to %s %llu bytes at global:0x%llx, which belong to no live allocation: freed "
      "already, of an earlier run, or beyond the end of one",
      net_.me(), doing, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(at));
}

void directory::is_read_only(global_address at, const detail::place& where) const {
  const std::string place =
      where.file != nullptr ? std::string(" at ") + where.file + ":" + std::to_string(where.line) : "";
  base::fatal(
      "worker %u: tried to write at global:0x%llx%s, which is frozen (gw::freeze): its copies on other hosts "
      "would not follow. Thaw it before (gw::thaw)",
      net_.me(), static_cast<unsigned long long>(at), place.c_str());
}

}  // namespace godwit::gas
