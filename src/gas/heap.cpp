// See heap.hpp.
#include "gas/heap.hpp"

#include <algorithm>
#include <new>

namespace godwit::gas {

namespace {
constexpr std::uint64_t grain = 64 << 10;          // of ranges: few, large pieces
constexpr std::uint64_t discard_from = 256 << 10;  // smaller ones keep their pages
constexpr std::uint64_t largest_in_pools = 64 << 10;
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
  auto [first, last] = by_size_.equal_range(i->second);
  by_size_.erase(std::find_if(first, last, [&](const auto& e) { return e.second == i->first; }));
  by_place_.erase(i);
}

void* heap::ranges::do_allocate(std::size_t bytes, std::size_t alignment) {
  bytes = up(std::max<std::size_t>(bytes, 1), grain);
  alignment = std::max<std::size_t>(alignment, grain);
  for (auto i = by_size_.lower_bound(bytes); i != by_size_.end(); ++i) {
    const std::uintptr_t begin = i->second, end = begin + i->first;
    const std::uintptr_t at = up(begin, alignment);
    if (at + bytes > end) continue;
    if (!limits_.take(limits_.arg, bytes)) break;
    erase(by_place_.find(begin));
    if (at > begin) insert(begin, at - begin);
    if (at + bytes < end) insert(at + bytes, end - at - bytes);
    return reinterpret_cast<void*>(at);
  }
  throw std::bad_alloc();
}

void heap::ranges::do_deallocate(void* p, std::size_t bytes, std::size_t) {
  auto at = reinterpret_cast<std::uintptr_t>(p);
  bytes = up(std::max<std::size_t>(bytes, 1), grain);
  limits_.give(limits_.arg, bytes);
  if (bytes >= discard_from) limits_.discard(static_cast<std::byte*>(p), bytes);
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
}

void heap::init(std::byte* begin, std::uint64_t bytes, const budget& limits) {
  ranges_.init(begin, bytes, limits);
  pools_.emplace(std::pmr::pool_options{1 << 16, largest_in_pools}, &ranges_);
}

void* heap::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes > (std::uint64_t{1} << 46) || alignment > (std::uint64_t{1} << 40)) return nullptr;
  // What the pools promise ends at 16: more is made by leaving room.
  const std::uint64_t room = sizeof(object_header) + bytes + (alignment > 16 ? alignment : 0);
  std::byte* block;
  try {
    block = static_cast<std::byte*>(pools_->allocate(room, 16));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  const auto at = up(reinterpret_cast<std::uintptr_t>(block) + sizeof(object_header), std::max<std::uint64_t>(alignment, 16));
  std::byte* object = reinterpret_cast<std::byte*>(at);
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
  pools_->deallocate(static_cast<std::byte*>(object) - h->front, h->block_bytes, 16);
}

}  // namespace godwit::gas
