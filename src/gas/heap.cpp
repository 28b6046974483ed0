// See heap.hpp.
#include "gas/heap.hpp"

#include <algorithm>
#include <new>

namespace godwit::gas {

namespace {
constexpr std::uint64_t grain = 4 << 10;           // of ranges: pages
constexpr std::uint64_t discard_from = 256 << 10;  // smaller ones keep their pages
constexpr std::uint64_t most_kept = 32 << 20;      // until these are together so much
constexpr std::uint64_t largest_in_pools = 16 << 10;
constexpr std::size_t blocks_per_chunk = 4096;     // at most: chunks of 64 MiB. They double until then
constexpr std::uint64_t up(std::uint64_t v, std::uint64_t to) { return (v + to - 1) / to * to; }
}  // namespace

void heap::ranges::init(std::byte* begin, std::uint64_t bytes, const budget& limits) {
  limits_ = limits;
  insert(reinterpret_cast<std::uintptr_t>(begin), bytes / grain * grain);
}

void heap::ranges::insert(std::uintptr_t at, std::uint64_t bytes) {
  by_place_.emplace(at, bytes);
  by_size_.emplace(bytes, at);
}

void heap::ranges::erase(std::map<std::uintptr_t, std::uint64_t>::iterator i) {
  by_size_.erase({i->second, i->first});
  by_place_.erase(i);
}

std::byte* heap::ranges::take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t front) {
  bytes = up(bytes, grain);
  alignment = std::max(alignment, grain);
  front = front / grain * grain;  // smaller ones do not matter to what is aligned to grains
  for (auto i = by_size_.lower_bound({bytes, 0}); i != by_size_.end(); ++i) {
    const std::uintptr_t begin = i->second, end = begin + i->first;
    const std::uintptr_t at = up(begin + front, alignment) - front;
    if (at + bytes > end) continue;
    if (!limits_.take(limits_.arg, bytes)) break;
    erase(by_place_.find(begin));
    if (at > begin) insert(begin, at - begin);
    if (at + bytes < end) insert(at + bytes, end - at - bytes);
    return reinterpret_cast<std::byte*>(at);
  }
  return nullptr;
}

void heap::ranges::give(std::byte* p, std::uint64_t bytes) {
  auto at = reinterpret_cast<std::uintptr_t>(p);
  bytes = up(bytes, grain);
  limits_.give(limits_.arg, bytes);
  if (bytes >= discard_from) {
    limits_.discard(p, bytes);
  } else {
    kept_.emplace_back(at, bytes);
    kept_bytes_ += bytes;
  }
  auto next = by_place_.lower_bound(at);
  if (next != by_place_.end() && next->first == at + bytes) {
    bytes += next->second;
    auto joined = next++;
    erase(joined);
  }
  if (next != by_place_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == at) {
      at = before->first;
      bytes += before->second;
      erase(before);
    }
  }
  insert(at, bytes);
  if (kept_bytes_ < most_kept) return;
  for (const auto& [begin, n] : kept_) {
    const auto after = by_place_.upper_bound(begin);
    if (after == by_place_.begin()) continue;
    const auto& [free_at, free_bytes] = *std::prev(after);
    if (begin + n <= free_at + free_bytes) limits_.discard(reinterpret_cast<std::byte*>(begin), n);  // else in use again
  }
  kept_.clear();
  kept_bytes_ = 0;
}

void* heap::ranges::do_allocate(std::size_t bytes, std::size_t alignment) {
  std::byte* p = take(std::max<std::size_t>(bytes, 1), alignment, 0);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

void heap::ranges::do_deallocate(void* p, std::size_t bytes, std::size_t) {
  give(static_cast<std::byte*>(p), std::max<std::size_t>(bytes, 1));
}

void heap::init(std::byte* begin, std::uint64_t bytes, const budget& limits) {
  ranges_.init(begin, bytes, limits);
  pools_.emplace(std::pmr::pool_options{blocks_per_chunk, largest_in_pools}, &ranges_);
}

void* heap::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes > (std::uint64_t{1} << 46) || alignment > (std::uint64_t{1} << 40)) return nullptr;
  // In the pools, which promise 16, a larger alignment is made by leaving room; in the ranges the place is chosen.
  alignment = std::max<std::uint64_t>(alignment, 16);
  std::uint64_t room = sizeof(object_header) + bytes + (alignment > 16 ? alignment : 0);
  std::byte* block = nullptr;
  std::byte* object = nullptr;
  if (room <= largest_in_pools) {
    try {
      block = static_cast<std::byte*>(pools_->allocate(room, 16));
      object = reinterpret_cast<std::byte*>(up(reinterpret_cast<std::uintptr_t>(block) + sizeof(object_header), alignment));
    } catch (const std::bad_alloc&) {  // no room for another chunk; perhaps for this one object
    }
  }
  if (block == nullptr) {
    const std::uint64_t front = std::min(up(sizeof(object_header), alignment), grain);
    room = std::max(front + bytes, largest_in_pools + 1);  // says where it came from, too
    block = ranges_.take(room, alignment, front);
    if (block == nullptr) return nullptr;
    object = block + front;
  }
  object_header* h = header_of(object);
  h->next = 0;
  h->front = static_cast<std::uint32_t>(object - block);
  h->bytes = bytes;
  h->block_bytes = room;
  h->magic = object_header::live;
  live_bytes_ += bytes;
  ++live_objects_;
  return object;
}

void heap::free(void* object) noexcept {
  object_header* h = header_of(object);
  live_bytes_ -= h->bytes;
  --live_objects_;
  h->magic = object_header::dead;
  std::byte* block = static_cast<std::byte*>(object) - h->front;
  if (h->block_bytes <= largest_in_pools)
    pools_->deallocate(block, h->block_bytes, 16);
  else
    ranges_.give(block, h->block_bytes);
}

}  // namespace godwit::gas
