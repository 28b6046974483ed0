// See arena.hpp.
#include "gas/arena.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <bit>

namespace godwit::gas {

namespace {
constexpr std::uint64_t grain = 4 << 10;           // of ranges: pages
constexpr std::uint64_t discard_from = 256 << 10;  // smaller ones keep their pages
constexpr std::uint64_t most_kept = 32 << 20;      // until these are together so much
constexpr std::uint64_t largest_small = 16 << 10;
constexpr std::uint64_t most_in_chunk = 1 << 20;  // chunks of a class double until then

constexpr unsigned class_of(std::uint64_t bytes) {
  if (bytes <= 1024) return static_cast<unsigned>((bytes + 15) / 16 - 1);
  const auto log = static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;
  const std::uint64_t step = std::uint64_t{1} << (log - 2);
  return 64 + (log - 10) * 4 + static_cast<unsigned>((bytes - (std::uint64_t{1} << log) + step - 1) / step) -
         1;
}
constexpr std::uint64_t bytes_of(unsigned c) {
  if (c < 64) return (c + 1) * std::uint64_t{16};
  const unsigned log = 10 + (c - 64) / 4;
  return (std::uint64_t{1} << log) + ((c - 64) % 4 + 1) * (std::uint64_t{1} << (log - 2));
}
static_assert([] {
  for (std::uint64_t n = 1; n <= largest_small; n += n < 3000 ? 1 : 37)
    if (bytes_of(class_of(n)) < n || class_of(bytes_of(class_of(n))) != class_of(n) ||
        bytes_of(class_of(n)) * 3 > n * 4 + 45)
      return false;
  return class_of(largest_small) == 79;
}());

constexpr std::uint64_t up(std::uint64_t v, std::uint64_t to) { return (v + to - 1) / to * to; }
}  // namespace

void arena::ranges::init(std::byte* begin, std::uint64_t bytes, const budget& limits) {
  limits_ = limits;
  insert(reinterpret_cast<std::uintptr_t>(begin), bytes / grain * grain);
}

void arena::ranges::insert(std::uintptr_t at, std::uint64_t bytes) {
  by_place_.emplace(at, bytes);
  by_size_.emplace(bytes, at);
}

void arena::ranges::erase(std::map<std::uintptr_t, std::uint64_t>::iterator i) {
  by_size_.erase({i->second, i->first});
  by_place_.erase(i);
}

std::byte* arena::ranges::take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t front) {
  bytes = up(bytes, grain);
  alignment = std::max(alignment, grain);
  front = front / grain * grain;  // smaller ones do not matter to what is aligned to grains
  for (auto i = by_size_.lower_bound({bytes, 0}); i != by_size_.end(); ++i) {
    const std::uintptr_t begin = i->second, end = begin + i->first;
    const std::uintptr_t at = up(begin + front, alignment) - front;
    if (at + bytes > end) continue;
    if (!limits_.take(bytes)) break;
    erase(by_place_.find(begin));
    if (at > begin) insert(begin, at - begin);
    if (at + bytes < end) insert(at + bytes, end - at - bytes);
    return reinterpret_cast<std::byte*>(at);
  }
  return nullptr;
}

void arena::ranges::give(std::byte* p, std::uint64_t bytes) {
  auto at = reinterpret_cast<std::uintptr_t>(p);
  bytes = up(bytes, grain);
  GODWIT_ASSERT(up(at, grain) == at, "ranges are whole grains");
  limits_.give(bytes);
  if (bytes >= discard_from) {
    limits_.discard(p, bytes);
  } else {
    kept_.emplace_back(at, bytes);
    kept_bytes_ += bytes;
  }
  auto next = by_place_.lower_bound(at);
  GODWIT_ASSERT(next == by_place_.end() || at + bytes <= next->first, "what comes back was not free");
  if (next != by_place_.end() && next->first == at + bytes) {
    bytes += next->second;
    auto joined = next++;
    erase(joined);
  }
  if (next != by_place_.begin()) {
    auto before = std::prev(next);
    GODWIT_ASSERT(before->first + before->second <= at, "what comes back was not free");
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
    // else in use again
    if (begin + n <= free_at + free_bytes) limits_.discard(reinterpret_cast<std::byte*>(begin), n);
  }
  kept_.clear();
  kept_bytes_ = 0;
}

/// Null: no room. @p got: of the block.
std::byte* arena::take_block(std::uint64_t room, std::uint64_t& got) {
  const unsigned number = class_of(room);
  size_class& c = classes_[number];
  got = bytes_of(number);
  if (block* b = c.free; b != nullptr) {
    c.free = b->next;
    return reinterpret_cast<std::byte*>(b);
  }
  if (static_cast<std::uint64_t>(c.end - c.fresh) < got) {
    std::uint64_t bytes = up(std::max(c.next_chunk, got), grain);
    std::byte* chunk = ranges_.take(bytes, 16, 0);
    if (chunk == nullptr) chunk = ranges_.take(bytes = up(got, grain), 16, 0);  // perhaps room for this one
    if (chunk == nullptr) return nullptr;
    c.fresh = chunk;
    c.end = chunk + bytes;
    c.next_chunk = std::min(bytes * 2, most_in_chunk);
  }
  std::byte* b = c.fresh;
  c.fresh += got;
  return b;
}

void* arena::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes > (std::uint64_t{1} << 46) || alignment > (std::uint64_t{1} << 40)) return nullptr;
  // In a small block a larger alignment than 16 is made by leaving room; in the ranges the place is chosen.
  alignment = std::max<std::uint64_t>(alignment, 16);
  std::uint64_t room = sizeof(object_header) + bytes + (alignment > 16 ? alignment : 0);
  std::byte* start = nullptr;
  std::byte* object = nullptr;
  if (room <= largest_small) {
    start = take_block(room, room);
    if (start == nullptr) return nullptr;
    object = reinterpret_cast<std::byte*>(
        up(reinterpret_cast<std::uintptr_t>(start) + sizeof(object_header), alignment));
  } else {
    const std::uint64_t front = std::min(up(sizeof(object_header), alignment), grain);
    room = std::max(front + bytes, largest_small + 1);  // says where it came from, too
    start = ranges_.take(room, alignment, front);
    if (start == nullptr) return nullptr;
    object = start + front;
  }
  GODWIT_ASSERT(
      up(reinterpret_cast<std::uintptr_t>(object), alignment) == reinterpret_cast<std::uintptr_t>(object) &&
          object + bytes <= start + up(room, 16),
      "an object is aligned and lies in its block");
  object_header* h = header_of(object);
  h->next = 0;
  h->front = static_cast<std::uint32_t>(object - start);
  h->bytes = bytes;
  h->block_bytes = room;
  h->magic = object_header::live;
  live_bytes_ += bytes;
  ++live_objects_;
  return object;
}

void arena::free(void* object) noexcept {
  object_header* h = header_of(object);
  GODWIT_ASSERT(h->magic == object_header::live || h->magic == object_header::dead,
                "what is freed begins with a header");
  GODWIT_ASSERT(h->front >= sizeof(object_header) && h->bytes <= h->block_bytes, "the header fits its block");
  GODWIT_ASSERT(live_objects_ != 0 && live_bytes_ >= h->bytes, "what is freed has been counted");
  live_bytes_ -= h->bytes;
  --live_objects_;
  h->magic = object_header::dead;
  std::byte* start = static_cast<std::byte*>(object) - h->front;
  const std::uint64_t bytes = h->block_bytes;
  if (bytes > largest_small) return ranges_.give(start, bytes);
  size_class& c = classes_[class_of(bytes)];
  block* b = reinterpret_cast<block*>(start);  // in front of the header, or its link: `magic` stays readable
  b->next = c.free;
  c.free = b;
}

void arena::ranges::check_invariants() const {
  GODWIT_CHECK(by_place_.size() == by_size_.size(), "each free range is in both lists");
  std::uintptr_t end = 0;
  for (const auto& [at, bytes] : by_place_) {
    GODWIT_CHECK(bytes != 0 && up(at, grain) == at && up(bytes, grain) == bytes, "ranges are whole grains");
    GODWIT_CHECK(at > end, "free ranges that touch are joined");
    GODWIT_CHECK(by_size_.contains({bytes, at}), "each free range is in both lists");
    end = at + bytes;
  }
  std::uint64_t kept = 0;
  for (const auto& [at, bytes] : kept_) kept += bytes;
  GODWIT_CHECK(kept == kept_bytes_, "kept bytes are counted");
}

void arena::check_invariants() const {
  ranges_.check_invariants();
  GODWIT_CHECK(live_objects_ != 0 || live_bytes_ == 0, "no bytes are live without an object");
  for (const size_class& c : classes_) {
    GODWIT_CHECK(c.fresh <= c.end, "a chunk ends behind what is used of it");
    for (const block* b = c.free; b != nullptr; b = b->next)
      GODWIT_CHECK((reinterpret_cast<std::uintptr_t>(b) & 15) == 0, "blocks are aligned");
  }
}

}  // namespace godwit::gas
