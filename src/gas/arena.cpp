// See arena.hpp.
#include "gas/arena.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace godwit::gas {

namespace {
constexpr std::uint64_t grain = 4 << 10;           // of ranges: pages
constexpr std::uint64_t discard_from = 256 << 10;  // smaller ones keep their pages
constexpr std::uint64_t most_kept = 32 << 20;      // until these are together so much
constexpr std::uint64_t largest_small = 16 << 10;
constexpr std::uint64_t most_in_chunk = 1 << 20;  // chunks of a class double until then
constexpr std::uint64_t populated = 64 << 10;     // of a chunk in one go

constexpr unsigned class_of(std::uint64_t bytes) {
  if (bytes <= 1024) return static_cast<unsigned>((bytes + 15) / 16 - 1);
  const auto log = static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;
  const std::uint64_t step = std::uint64_t{1} << (log - 2);
  return 64 + (log - 10) * 4 + static_cast<unsigned>((bytes - (std::uint64_t{1} << log) + step - 1) / step) -
         1;
}
constexpr std::uint64_t block_bytes(unsigned c) {
  if (c < 64) return (c + 1) * std::uint64_t{16};
  const unsigned log = 10 + (c - 64) / 4;
  return (std::uint64_t{1} << log) + ((c - 64) % 4 + 1) * (std::uint64_t{1} << (log - 2));
}
static_assert([] {
  for (std::uint64_t n = 1; n <= largest_small; n += n < 3000 ? 1 : 37)
    if (block_bytes(class_of(n)) < n || class_of(block_bytes(class_of(n))) != class_of(n) ||
        block_bytes(class_of(n)) * 3 > n * 4 + 45)
      return false;
  for (std::uint64_t n = 1; n <= detail::largest_listed; ++n)
    if (class_of(sizeof(object_header) + n) != detail::list_for(n)) return false;
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

/// Some fresh blocks into a list that is empty, as many as fit a page. False: no room.
bool arena::refill(unsigned number) {
  if (classes_ == nullptr) classes_ = std::make_unique<size_class[]>(class_count);
  size_class& c = classes_[number];
  const std::uint64_t each = block_bytes(number);
  if (static_cast<std::uint64_t>(c.end - c.fresh) < each) {
    std::uint64_t bytes = up(std::max(c.next_chunk, each), grain);
    std::byte* chunk = ranges_.take(bytes, 16, 0);
    if (chunk == nullptr) chunk = ranges_.take(bytes = up(each, grain), 16, 0);  // perhaps room for this one
    if (chunk == nullptr) return false;
    c.fresh = c.ready = chunk;
    c.end = chunk + bytes;
    c.next_chunk = std::min(bytes * 2, most_in_chunk);
  }
  const auto left = static_cast<std::uint64_t>(c.end - c.fresh) / each;
  const std::uint64_t count = std::clamp<std::uint64_t>(grain / each, 1, left);
  std::byte* const end = c.fresh + count * each;
  if (end > c.ready) {
    const std::uint64_t bytes =
        std::min<std::uint64_t>(populated, static_cast<std::uint64_t>(c.end - c.ready));
    limits_.populate(c.ready, bytes);
    c.ready += bytes;
  }
  free_block** last = &objects_.free[number];
  for (; c.fresh != end; c.fresh += each) {
    auto* const b = reinterpret_cast<free_block*>(c.fresh);
    *last = b;
    last = &b->next;
  }
  *last = nullptr;
  c.blocks += count;
  return true;
}

/// Null: no room.
std::byte* arena::take_block(std::uint64_t room) {
  const unsigned number = class_of(room);
  free_block*& free = objects_.free[number];
  if (free == nullptr && !refill(number)) return nullptr;
  return reinterpret_cast<std::byte*>(std::exchange(free, free->next));
}

/// In a small block the alignment is made by leaving room; in the ranges the place is chosen.
std::byte* arena::allocate_wide(std::uint64_t bytes, std::uint64_t alignment) {
  constexpr std::uint64_t headers = sizeof(wide_part) + sizeof(object_header);
  wide_part w{bytes, headers + bytes + alignment, 0};
  std::byte* start;
  if (w.block_bytes <= largest_small) {
    start = take_block(w.block_bytes);
    const auto begin = reinterpret_cast<std::uintptr_t>(start);
    w.front = up(begin + headers, alignment) - begin;
  } else {
    w.front = std::min(up(headers, alignment), grain);
    w.block_bytes = std::max(w.front + bytes, largest_small + 1);
    start = ranges_.take(w.block_bytes, alignment, w.front);
    live_ranges_ += start != nullptr ? 1 : 0;
  }
  if (start == nullptr) return nullptr;
  std::byte* const object = start + w.front;
  GODWIT_ASSERT(
      up(reinterpret_cast<std::uintptr_t>(object), alignment) == reinterpret_cast<std::uintptr_t>(object) &&
          object + bytes <= start + up(w.block_bytes, 16),
      "an object is aligned and lies in its block");
  std::memcpy(object - headers, &w, sizeof w);
  return object;
}

void* arena::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes > (std::uint64_t{1} << 46) || alignment > (std::uint64_t{1} << 40)) return nullptr;
  const bool wide = alignment > sizeof(object_header) || sizeof(object_header) + bytes > largest_small;
  std::byte* object;
  if (wide) {
    object = allocate_wide(bytes, std::max<std::uint64_t>(alignment, 16));
    if (object == nullptr) return nullptr;
  } else {
    std::byte* const start = take_block(sizeof(object_header) + bytes);
    if (start == nullptr) return nullptr;
    object = start + sizeof(object_header);
  }
  header_of(object)->is = {object_header::live,
                           wide ? object_header::wide : static_cast<std::uint32_t>(bytes)};
  return object;
}

wide_part arena::wide_part_of(const void* object) noexcept {
  wide_part w;
  std::memcpy(&w, static_cast<const std::byte*>(object) - sizeof(object_header) - sizeof w, sizeof w);
  return w;
}

std::uint64_t arena::bytes_of(void* object) noexcept {
  const std::uint32_t bytes = header_of(object)->is.bytes;
  return bytes != object_header::wide ? bytes : wide_part_of(object).bytes;
}

void arena::free(void* object) noexcept {
  object_header* const h = header_of(object);
  GODWIT_ASSERT(h->is.magic == object_header::live || h->is.magic == object_header::dead,
                "what is freed begins with a header");
  h->is.magic = object_header::dead;
  std::byte* start = reinterpret_cast<std::byte*>(h);
  std::uint64_t bytes = sizeof *h + h->is.bytes;
  if (h->is.bytes == object_header::wide) {
    const wide_part w = wide_part_of(object);
    GODWIT_ASSERT(w.front >= sizeof w + sizeof *h && w.bytes <= w.block_bytes, "the header fits its block");
    start = static_cast<std::byte*>(object) - w.front;
    bytes = w.block_bytes;
  }
  if (bytes > largest_small) {
    GODWIT_ASSERT(live_ranges_ != 0, "what is freed has been counted");
    --live_ranges_;
    return ranges_.give(start, bytes);
  }
  auto* const b = reinterpret_cast<free_block*>(start);
  free_block*& free = objects_.free[class_of(bytes)];
  b->next = free;
  free = b;
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

std::uint64_t arena::live_objects() const {
  std::uint64_t live = live_ranges_;
  for (unsigned number = 0; classes_ != nullptr && number < class_count; ++number) {
    const size_class& c = classes_[number];
    std::uint64_t free = 0;
    for (const free_block* b = objects_.free[number]; b != nullptr; b = b->next) {
      GODWIT_CHECK((reinterpret_cast<std::uintptr_t>(b) & 15) == 0, "blocks are aligned");
      GODWIT_CHECK(++free <= c.blocks, "a block is free once");
    }
    live += c.blocks - free;
  }
  return live;
}

void arena::check_invariants() const {
  ranges_.check_invariants();
  for (unsigned number = 0; classes_ != nullptr && number < class_count; ++number) {
    const size_class& c = classes_[number];
    GODWIT_CHECK(c.fresh <= c.ready && c.ready <= c.end, "a chunk ends behind what is used of it");
  }
  static_cast<void>(live_objects());
}

}  // namespace godwit::gas
