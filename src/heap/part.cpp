// See part.hpp. Orderings:
//   HP1  others' free: the block's link before `returned` (release);  owner: `returned` (acquire) before
// links
#include "heap/part.hpp"

#include "base/check.hpp"
#include "heap/malloc.hpp"
#include "heap/pool.hpp"
#include "heap/record.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace godwit::heap {

static_assert([] {
  for (std::uint64_t n = 0; n <= largest_small; n += n < 3000 ? 1 : 37) {
    const unsigned c = class_of(n);
    if (bytes_of_class(c) < n || class_of(bytes_of_class(c)) != c || bytes_of_class(c) * 4 > n * 5 + 64)
      return false;
  }
  return class_of(largest_small) == class_count - 1;
}());

namespace {

constexpr std::uint64_t most_found_bytes = 64 << 10;  // of one size
constexpr std::uint64_t most_found_blocks = 1024;
constexpr std::uint32_t given_back_at_once = 128;  // at most: they were freed last, and are still at hand
constexpr std::uint64_t carved_at_once = 4 << 10;  // bytes: about a page
span no_blocks;  // stands in where a part has no span. Never written: it has neither blocks nor an owner

/// Spans of a run of blocks of @p bytes.
constexpr std::uint32_t spans_for(std::uint64_t bytes) noexcept { return bytes <= span_bytes / 8 ? 1 : 8; }

void push(span*& list, span& s) noexcept {
  s.previous = nullptr;
  s.next = list;
  if (list != nullptr) list->previous = &s;
  list = &s;
}
void unlink(span*& list, span& s) noexcept {
  if (s.next != nullptr) s.next->previous = s.previous;
  (s.previous != nullptr ? s.previous->next : list) = s.next;
}

/// More of the blocks that have never been handed out. False: there are none.
bool carve(span& s) noexcept {
  if (s.fresh == s.blocks) return false;
  const auto more = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, carved_at_once / s.block_bytes));
  const std::uint32_t end = std::min(s.blocks, s.fresh + more);
  std::byte* at = bytes_of(&s) + std::uint64_t{end} * s.block_bytes;
  while (s.fresh != end) {  // the first one comes first
    at -= s.block_bytes;
    auto* const b = reinterpret_cast<block*>(at);
    b->next = s.free;
    s.free = b;
    ++s.fresh;
  }
  return true;
}

/// Of the own part: its worker frees it.
void free_own(part& p, span& s, block* b) noexcept {
  GODWIT_ASSERT(s.owner == &p && s.kind == run_kind::small, "a part frees blocks of its own");
  b->next = s.free;
  s.free = b;
  if (--s.used == 0) free_last(p, s);
}

/// What others have freed.
void take_returned(part& p) noexcept {
  if (p.returned.load(std::memory_order_relaxed) == nullptr) return;
  for (block* b = p.returned.exchange(nullptr, std::memory_order_acquire); b != nullptr;) {  // HP1
    block* const next = b->next;
    free_own(p, *run_at(b), b);
    b = next;
  }
}

/// Blocks of one size, of other parts, go back to those. Neighbours that belong together go together.
void give_back(part& p, unsigned c, std::uint32_t count) noexcept {
  part::foreign& from = p.found[c];
  from.count -= count;
  while (count != 0) {
    block* const first = from.first;
    part* const owner = run_at(first)->owner;
    block* last = first;
    for (--count; count != 0 && run_at(last->next)->owner == owner; --count) last = last->next;
    from.first = last->next;
    block* head = owner->returned.load(std::memory_order_relaxed);
    do last->next = head;
    while (!owner->returned.compare_exchange_weak(head, first, std::memory_order_release,
                                                  std::memory_order_relaxed));  // HP1
  }
}

std::uint32_t most_found(std::uint64_t bytes) noexcept {
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(most_found_bytes / bytes, 4, most_found_blocks));
}

/// Divisions take longer than all else that a free does: whether @p offset is a multiple of the number whose
/// inverse this is can be told by one multiplication. Source: D. Lemire, O. Kaser, N. Kurz, "Faster remainder
/// by direct computation", 2019.
constexpr std::uint64_t inverse_of(std::uint32_t n) noexcept { return ~std::uint64_t{0} / n + 1; }
constexpr bool is_multiple(std::uint32_t offset, std::uint64_t inverse) noexcept {
  return offset * inverse <= inverse - 1;
}
static_assert([] {
  for (unsigned c = 0; c < class_count; ++c)
    for (std::uint32_t n = static_cast<std::uint32_t>(bytes_of_class(c)), i = 0; i < 8; ++i)
      if (!is_multiple(i * n, inverse_of(n)) || is_multiple(i * n + 1, inverse_of(n)) ||
          is_multiple((i + 1) * n - 1, inverse_of(n)))
        return false;
  return true;
}());

span* new_span(part& p, unsigned c) noexcept {
  const std::uint64_t bytes = bytes_of_class(c);
  span* const s = pool::take(spans_for(bytes));
  if (s == nullptr) return nullptr;
  s->free = nullptr;
  s->used = s->fresh = 0;
  s->block_bytes = static_cast<std::uint32_t>(bytes);
  s->blocks = static_cast<std::uint32_t>((std::uint64_t{s->spans} << span_bits) / bytes);
  s->inverse = inverse_of(s->block_bytes);
  s->size_class = static_cast<std::uint8_t>(c);
  s->full = false;
  s->kind = run_kind::small;
  for (std::uint32_t i = 1; i < s->spans; ++i) {
    s[i].owner = nullptr;
    s[i].spans = i;
    s[i].kind = run_kind::rest;
  }
  s->owner = &p;
  return s;
}

block* first_of(span& s) noexcept {
  block* const b = s.free;
  s.free = b->next;
  ++s.used;
  return b;
}

/// The class's current span has free blocks. False: there is no room.
bool refill(part& p, unsigned c) noexcept {
  span*& current = p.current[c];
  take_returned(p);
  if (current->free != nullptr || carve(*current)) return true;
  if (current != &no_blocks) {
    GODWIT_ASSERT(current->used == current->blocks, "a span without free blocks is full");
    current->full = true;
    current->used = 1;
    current = &no_blocks;
  }
  if (span* const s = p.partial[c]; s != nullptr) {
    unlink(p.partial[c], *s);
    current = s;
    return s->free != nullptr || carve(*s);
  }
  span* const s = new_span(p, c);
  if (s == nullptr) return false;
  current = s;
  return carve(*s);
}

std::uint64_t spans_of(std::uint64_t bytes) noexcept {
  return std::max<std::uint64_t>(1, (bytes + span_bytes - 1) >> span_bits);
}

/// Null, and the reason can be told.
void* refuse(std::uint64_t bytes) noexcept {
  if (here.all == nullptr) return nullptr;
  std::atomic<std::uint64_t>& most = here.all->refused;
  std::uint64_t before = most.load(std::memory_order_relaxed);
  while (before < bytes && !most.compare_exchange_weak(before, bytes, std::memory_order_relaxed)) {
  }
  return nullptr;
}

void* allocate_large(const part& p, std::uint64_t bytes, std::uint64_t alignment) noexcept {
  if (here.all == nullptr || bytes > here.all->largest) return refuse(bytes);
  span* const s = pool::take(spans_of(bytes), alignment);
  if (s == nullptr) return refuse(bytes);
  s->of_main = p.of_main;
  return bytes_of(s);
}

/// Back to the part that it belongs to.
void send_home(block* b, part& owner) noexcept {
  block* head = owner.returned.load(std::memory_order_relaxed);
  do b->next = head;
  while (!owner.returned.compare_exchange_weak(head, b, std::memory_order_release,
                                               std::memory_order_relaxed));  // HP1
}

}  // namespace

void begin_part(part& p) noexcept {
  std::fill(std::begin(p.current), std::end(p.current), &no_blocks);
  for (unsigned c = 0; c < class_count; ++c) p.found[c].most = most_found(bytes_of_class(c));
}

void* allocate_elsewhere(part& p, unsigned c, std::uint64_t bytes) noexcept {
  if (part::foreign& f = p.found[c]; f.first != nullptr) {
    block* const b = f.first;
    f.first = b->next;
    --f.count;
    return b;
  }
  if (!refill(p, c)) return refuse(bytes);
  return first_of(*p.current[c]);
}

void* allocate_slow(part& p, std::uint64_t bytes) noexcept {
  if (bytes > largest_small) return allocate_large(p, bytes, span_bytes);
  const unsigned c = class_of(bytes);
  return p.current[c]->free != nullptr ? first_of(*p.current[c]) : allocate_elsewhere(p, c, bytes);
}

/// The last block that was handed out is back; or the first one of a full span.
void free_last(part& p, span& s) noexcept {
  const unsigned c = s.size_class;
  if (s.full) {
    s.full = false;
    s.used = s.blocks - 1;
    push(p.partial[c], s);
    if (s.used != 0) return;
  }
  if (&s == p.current[c]) return;  // the next block of this size comes from here
  unlink(p.partial[c], s);
  pool::give(&s);
}

namespace {
/// Ends the run if no small block of the run begins there.
void check_small(const span& s, const void* at) noexcept {
  const auto offset = static_cast<std::uint32_t>(static_cast<const std::byte*>(at) - bytes_of(&s));
  if (s.kind != run_kind::small || !is_multiple(offset, s.inverse))
    base::fatal("free of %p, which malloc has not given out, or which was freed before", at);
}
}  // namespace

void free_slow(part& mine, void* at) noexcept {
  span& s = *run_at(at);
  if (s.kind == run_kind::large) return pool::give(&s);
  check_small(s, at);
  auto* const b = static_cast<block*>(at);
  if (s.owner == &mine) return free_own(mine, s, b);
  // What lies in main's parts main made, and nobody else, so a worker does not hand it out again.
  if (mine.of_main || s.owner->of_main) return send_home(b, *s.owner);
  part::foreign& f = mine.found[s.size_class];
  if (f.count == f.most) [[unlikely]]
    give_back(mine, s.size_class, std::min(f.most / 2, given_back_at_once));
  b->next = f.first;
  f.first = b;
  ++f.count;
}

void free_outside(void* at) noexcept {
  if (here.forgotten) return;
  if (here.all->recorded != nullptr) forget_allocation(at);
  if (recorded != nullptr) return free(recorded, at);
  span& s = *run_at(at);
  if (s.kind == run_kind::large) return pool::give(&s);
  check_small(s, at);
  send_home(static_cast<block*>(at), *s.owner);
}

void* allocate_aligned(part& p, std::uint64_t bytes, std::uint64_t alignment) noexcept {
  if (alignment <= 16) return allocate(p, bytes);
  const std::uint64_t whole = std::max(bytes, alignment);
  // A power of two is a class of its own, and its blocks lie at multiples of it.
  if (whole <= largest_small) return allocate_slow(p, std::bit_ceil(whole));
  return allocate_large(p, bytes, alignment);
}

void* allocate_zero(part& p, std::uint64_t bytes) noexcept {
  void* const at = allocate(p, bytes);
  if (at == nullptr) return nullptr;
  if (bytes <= largest_small || span_at(at)->dirty != 0) std::memset(at, 0, bytes);
  return at;
}

std::uint64_t usable_bytes(const void* at) noexcept { return bytes_of_run(*run_at(at)); }

void* reallocate(part& p, void* at, std::uint64_t bytes) noexcept {
  const std::uint64_t had = usable_bytes(at);
  if (bytes <= had && bytes >= had / 2) return at;
  if (bytes > largest_small && bytes > had && bytes <= here.all->largest && had > largest_small &&
      pool::extend(span_at(at), spans_of(bytes)))
    return at;
  void* const to = allocate(p, bytes);
  if (to == nullptr) return bytes <= had ? at : nullptr;
  std::memcpy(to, at, std::min(had, bytes));
  free(&p, at);
  return to;
}

namespace {
/// The first entry of the run of small blocks that @p at lies in; null: it lies in none. Entries may be old
/// where no run of small blocks is, and change there meanwhile.
const span* small_run_at(const void* at) noexcept {
  const span* const s = span_at(at);
  const span* first = s;
  if (s->kind == run_kind::rest && s->spans <= static_cast<std::uint64_t>(s - here.all->table))
    first -= s->spans;
  const bool is_small = first->kind == run_kind::small && first->owner != nullptr && first->block_bytes != 0;
  return is_small && static_cast<std::uint64_t>(s - first) < first->spans ? first : nullptr;
}

/// Among the first blocks of a list: what was freed last is in front.
bool is_in_list(const block* list, const void* at) noexcept {
  constexpr unsigned most_looks = 32;
  for (unsigned looks = 0; list != nullptr && looks < most_looks; list = list->next, ++looks)
    if (list == at) return true;
  return false;
}
}  // namespace

bool is_free(const part& mine, const void* at) noexcept {
  const span* const s = small_run_at(at);
  if (s == nullptr) return span_at(at)->kind != run_kind::large && pool::is_free(span_at(at));
  const std::uint64_t n = static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - bytes_of(s)) /
                          std::max<std::uint32_t>(1, s->block_bytes);
  if (n >= s->fresh) return true;
  const std::byte* const b = bytes_of(s) + n * s->block_bytes;
  if (s->owner != &mine) return is_in_list(mine.found[s->size_class].first, b);
  return is_in_list(s->free, b) || is_in_list(mine.returned.load(std::memory_order_acquire), b);  // HP1
}

void tidy(part& p) noexcept {
  for (unsigned c = 0; c < class_count; ++c)
    if (p.found[c].count != 0) give_back(p, c, p.found[c].count);
  take_returned(p);
  for (span*& current : p.current) {
    if (current == &no_blocks || current->used != 0) continue;
    span* const s = current;
    current = &no_blocks;
    pool::give(s);
  }
}

namespace {
/// All spans of small blocks of @p p, in whatever state.
template <class F>
void each_span(const part& p, F&& f) noexcept {
  const common& all = *here.all;
  for (std::uint64_t i = 0; i < all.fresh; i += all.table[i].spans)
    if (all.table[i].kind == run_kind::small && all.table[i].owner == &p) f(all.table[i]);
}
std::uint64_t used_of(const span& s) noexcept { return s.full ? s.blocks : s.used; }
}  // namespace

std::uint64_t live_bytes(const part& p) noexcept {
  std::uint64_t bytes = 0;
  each_span(p, [&](const span& s) { bytes += used_of(s) * s.block_bytes; });
  for (const block* b = p.returned.load(std::memory_order_acquire); b != nullptr; b = b->next)
    bytes -= run_at(b)->block_bytes;
  for (const part::foreign& f : p.found)  // used in its own part
    for (const block* b = f.first; b != nullptr; b = b->next) bytes -= run_at(b)->block_bytes;
  return bytes;
}

void check_invariants(const part& p) noexcept {
  each_span(p, [&](const span& s) {
    std::uint64_t free = 0;
    for (const block* b = s.free; b != nullptr; b = b->next) {
      GODWIT_CHECK(run_at(b) == &s, "a span's list has its own blocks");
      ++free;
    }
    GODWIT_CHECK(used_of(s) + free == s.fresh, "a block is handed out, or free, or has never been used");
    GODWIT_CHECK(!s.full || free == 0, "a full span has no free block");
    bool listed = p.current[s.size_class] == &s;
    for (const span* i = p.partial[s.size_class]; i != nullptr; i = i->next) listed |= i == &s;
    GODWIT_CHECK(listed != s.full, "a span that is not full can be found");
  });
  for (const part::foreign& f : p.found) {
    std::uint32_t count = 0;
    for (const block* b = f.first; b != nullptr; b = b->next) {
      GODWIT_CHECK(run_at(b)->owner != &p, "what was found is of another part");
      ++count;
    }
    GODWIT_CHECK(count == f.count, "blocks that were found are counted");
  }
}

}  // namespace godwit::heap
