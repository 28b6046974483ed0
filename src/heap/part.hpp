// Small blocks, and blocks of any size: what malloc and its family do with a part.
//
// A worker allocates from the spans of its own part, without a lock. It frees what is its own into the span's
// list; what belongs to another part goes to that part's `returned`, which its worker takes as a whole when a
// span has no free blocks left. Large blocks are runs of the pool.
// Called by malloc.cpp. Protocol: docs/protocols/heap.md, HP1. Test: tests/heap/part_test.cpp.
#pragma once

#include "heap/layout.hpp"

namespace godwit::heap {

/// Steps of 16 bytes up to 128, then four per doubling.
constexpr unsigned class_of(std::uint64_t bytes) noexcept {
  if (bytes <= 128) return bytes == 0 ? 0 : static_cast<unsigned>((bytes - 1) >> 4);
  const unsigned log = 63 - static_cast<unsigned>(__builtin_clzll(bytes - 1));  // 2^log < bytes <= 2^(log+1)
  return 8 + (log - 7) * 4 + static_cast<unsigned>(((bytes - 1) >> (log - 2)) & 3);
}
constexpr std::uint64_t bytes_of_class(unsigned c) noexcept {
  if (c < 8) return (c + 1) * std::uint64_t{16};
  const unsigned log = 7 + (c - 8) / 4;
  return (std::uint64_t{1} << log) + ((c - 8) % 4 + 1) * (std::uint64_t{1} << (log - 2));
}

/// Sizes up to here find their class in a table.
inline constexpr std::uint64_t largest_by_table = 4096;
struct class_table {
  std::uint8_t of[largest_by_table / 16 + 1];
  constexpr class_table() : of() {
    for (unsigned i = 0; i < sizeof of; ++i) of[i] = static_cast<std::uint8_t>(class_of(i * 16));
  }
};
inline constexpr class_table classes;

/// A part without blocks. Before its worker runs.
void begin_part(part& p) noexcept;
inline bool has_begun(const part& p) noexcept { return p.current[0] != nullptr; }

/// Main's and the workers' parts, as far as they have begun.
template <class F>
void each_part(F&& f) noexcept {
  common& all = *here.all;
  for (part* p = all.mains; p < all.mains + mains_count; ++p)
    if (has_begun(*p)) f(*p);
  for (part* p = all.parts; p < all.parts + all.part_count; ++p) f(*p);
}

/// Null: there is no room. Aligned to 16 bytes.
void* allocate_slow(part& p, std::uint64_t bytes) noexcept;
/// A block of class @p c, of whose current span no block is known to be free.
void* allocate_elsewhere(part& p, unsigned c, std::uint64_t bytes) noexcept;
[[gnu::always_inline]] inline void* allocate(part& p, std::uint64_t bytes) noexcept {
  if (bytes > largest_by_table) [[unlikely]]
    return allocate_slow(p, bytes);
  const unsigned c = classes.of[(bytes + 15) >> 4];
  span* const s = p.current[c];
  block* const b = s->free;
  if (b == nullptr) [[unlikely]]
    return allocate_elsewhere(p, c, bytes);
  s->free = b->next;
  ++s->used;
  return b;
}

void free_slow(part& mine, void* at) noexcept;
void free_last(part& mine, span& s) noexcept;
/// By who has no part; or whose allocations are recorded.
void free_outside(void* at) noexcept;
/// @p mine: the caller's part; null: it has none.
[[gnu::always_inline]] inline void free(part* mine, void* at) noexcept {
  span* const s = span_at(at);
  if (s->owner != mine || mine == nullptr) [[unlikely]]
    return mine == nullptr ? free_outside(at) : free_slow(*mine, at);
  auto* const b = static_cast<block*>(at);
  b->next = s->free;
  s->free = b;
  if (--s->used == 0) [[unlikely]]
    free_last(*mine, *s);
}

/// Aligned to @p alignment, a power of two.
void* allocate_aligned(part& p, std::uint64_t bytes, std::uint64_t alignment) noexcept;
/// All its bytes are zero.
void* allocate_zero(part& p, std::uint64_t bytes) noexcept;
/// The bytes of @p at, as many as fit, now here. Null: no room, and @p at is as before.
void* reallocate(part& p, void* at, std::uint64_t bytes) noexcept;
/// Of the block that begins at @p at.
std::uint64_t usable_bytes(const void* at) noexcept;

/// Nobody has a block at @p at, any address of the heap, as far as @p mine, the caller's part, can tell at
/// small cost: what another worker freed, or this one long ago, may not be found. True is sure, as long as
/// whoever is asked about would have had the block before.
bool is_free(const part& mine, const void* at) noexcept;

/// What others have freed is free. Free spans go back to the pool.
void tidy(part& p) noexcept;

/// Bytes of blocks that are handed out. When nobody allocates.
std::uint64_t live_bytes(const part& p) noexcept;
/// Likewise. Ends the run if the lists are broken.
void check_invariants(const part& p) noexcept;

}  // namespace godwit::heap
