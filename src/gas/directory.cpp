// The directory of shared allocations: whose is which block. See memory.hpp, words.hpp.
//
// Worker 0's host has the descriptors; other hosts copy them when they first need them. Homes follow from the
// descriptor alone. Owners are homes, unless the allocation is movable: then the word of the block, at its
// home, says who the owner is; it carries a version, so that nobody takes an old answer for a newer one.
#include "gas/memory.hpp"

#include "base/check.hpp"

#include <algorithm>

namespace godwit::gas {

using kind = detail::spread::kind;

descriptor* memory::find(global_address at) {
  if (!where_.is_shared(at)) return nullptr;
  const std::uint64_t granule = where_.granule_of(at);
  const bool here = reach_.is_near(0);
  // The state is what was seen with the contents: others of this host may be writing the same copy again.
  auto look = [&](std::uint64_t g, std::uint64_t& state) {
    GODWIT_ASSERT(g < where_.granules(), "the directory has an entry per granule");
    descriptor* d = entry(g);
    const std::uint64_t generation = host_->generation.load(std::memory_order_acquire) + 1;
    state = d->state.load(std::memory_order_acquire);
    if (here || ((state == descriptor::live || state == descriptor::interior) &&
                 d->generation.load(std::memory_order_acquire) == generation))
      return d;
    descriptor copy;
    reach_.get(0, static_cast<void*>(&copy), reach_.address_of(d), sizeof copy);
    std::memcpy(reinterpret_cast<std::byte*>(d) + 16, reinterpret_cast<const std::byte*>(&copy) + 16,
                sizeof copy - 16);
    d->generation.store(generation, std::memory_order_release);
    state = copy.state.load(std::memory_order_relaxed);
    d->state.store(state, std::memory_order_release);
    return d;
  };
  std::uint64_t state = descriptor::none;
  descriptor* d = look(granule, state);
  if (state == descriptor::interior) d = look(d->first, state);
  if (state != descriptor::live) return nullptr;
  // The rest of a freed allocation may still name its first granule, where a smaller one begins now.
  const std::uint64_t owners = d->owners != 0 ? d->blocks * sizeof(word) : 0;
  const std::uint64_t data = (d->bytes + space::granule_bytes - 1) >> space::granule_bits;
  if (granule - d->first >= data + ((owners + space::granule_bytes - 1) >> space::granule_bits))
    return nullptr;
  return d;
}

std::uint32_t memory::home_of_block(const descriptor& d, std::uint64_t block) {
  GODWIT_ASSERT(d.blocks != 0 && d.block_bytes != 0, "an allocation has blocks");
  switch (static_cast<kind>(d.what)) {
    case kind::local:
      return d.home;
    case kind::blocked:
      return static_cast<std::uint32_t>(std::min<std::uint64_t>(block, where_.homes - 1));
    case kind::cyclic:
      return static_cast<std::uint32_t>(block % where_.homes);
    case kind::user:
      break;
  }
  GODWIT_ASSERT(block < d.blocks && where_.is_local(d.table), "the table names a home for each block");
  const std::uint32_t maker = where_.local_home(d.table);
  if (reach_.is_near(maker)) return reach_.at<std::uint32_t>(d.table)[block];
  const std::uint64_t key = d.first << 24 ^ d.generation.load(std::memory_order_relaxed);
  // of allocations long gone, perhaps
  if (user_tables_.size() >= 64 && !user_tables_.contains(key)) user_tables_.clear();
  auto& table = user_tables_[key];
  if (table.empty()) {
    table.resize(d.blocks);
    reach_.get(maker, table.data(), d.table, d.blocks * sizeof(std::uint32_t));
  }
  return table[block];
}

std::uint32_t memory::owner_of_block(const descriptor& d, std::uint64_t block) {
  const std::uint32_t home = home_of_block(d, block);
  GODWIT_ASSERT(home < where_.homes, "a block's home is a worker of the run");
  if (d.owners == 0) return home;  // immovable: never a look-up
  const std::uint64_t entry =
      reach_.atomic(home, d.owners + block * sizeof(word), atomic_function::load, 8, 0);
  // version << 32 | owner + 1
  return entry == 0 ? home : static_cast<std::uint32_t>(entry & 0xffff'ffff) - 1;
}

}  // namespace godwit::gas
