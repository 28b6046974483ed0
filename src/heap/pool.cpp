// See pool.hpp.
#include "heap/pool.hpp"

#include "base/check.hpp"
#include "base/lock.hpp"
#include "heap/malloc.hpp"
#include "transport/shm/window.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace godwit::heap::pool {

namespace {

constexpr std::uint64_t most_dirty = (64 << 20) >> span_bits;  // free spans that keep their pages
constexpr unsigned most_looks = 16;  // at runs that may be too short or badly placed

struct locked {
  common& all = *here.all;
  const part* const own = own_part();
  const std::uint32_t me = own != nullptr && !own->of_main
                               ? base::holder_of(static_cast<std::uint32_t>(own - here.all->parts))
                               : base::outsider;
  locked() noexcept { base::lock(all.lock, me); }
  ~locked() { base::unlock(all.lock, me); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;
};

unsigned bin_of(std::uint64_t spans) noexcept {
  return std::min(static_cast<unsigned>(std::bit_width(spans)) - 1, common::bin_count - 1);
}

void erase(common& all, span* first) noexcept {
  GODWIT_ASSERT(first->kind == run_kind::free, "only free runs are in lists");
  if (first->next != nullptr) first->next->previous = first->previous;
  if (first->previous != nullptr)
    first->previous->next = first->next;
  else
    all.bins[bin_of(first->spans)] = first->next;
  all.dirty -= first->dirty;
}

void insert(common& all, span* first, std::uint64_t count, std::uint64_t dirty) noexcept {
  first->kind = run_kind::free;
  first->spans = static_cast<std::uint32_t>(count);
  first->dirty = static_cast<std::uint32_t>(dirty);
  span* const last = first + count - 1;
  last->kind = run_kind::free;
  last->spans = first->spans;
  span*& head = all.bins[bin_of(count)];
  first->previous = nullptr;
  first->next = head;
  if (head != nullptr) head->previous = first;
  head = first;
  all.dirty += dirty;
}

/// The free run that ends in front of @p s, or begins there; null: none.
span* free_before(const common& all, span* s) noexcept {
  return s != all.table && s[-1].kind == run_kind::free ? s - s[-1].spans : nullptr;
}
span* free_at(const common& all, span* s) noexcept {
  return s != all.table + all.fresh && s->kind == run_kind::free ? s : nullptr;
}

/// @p count spans from @p first on are free from now on, with what is free around.
void join(common& all, span* first, std::uint64_t count, std::uint64_t dirty) noexcept {
  for (span* const other : {free_before(all, first), free_at(all, first + count)}) {
    if (other == nullptr) continue;
    erase(all, other);
    first = std::min(first, other);
    count += other->spans;
    dirty += other->dirty;
  }
  insert(all, first, count, dirty);
}

/// How many spans of the free run @p first have to stay in front, for alignment.
std::uint64_t front_of(const span* first, std::uint64_t alignment) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(bytes_of(first));
  return ((0 - at) & (alignment - 1)) >> span_bits;
}

span* find(common& all, std::uint64_t count, std::uint64_t alignment) noexcept {
  for (unsigned bin = bin_of(count); bin < common::bin_count; ++bin) {
    unsigned looks = 0;
    for (span* s = all.bins[bin]; s != nullptr && looks < most_looks; s = s->next, ++looks)
      if (front_of(s, alignment) + count <= s->spans) return s;
  }
  return nullptr;
}

/// The first @p count spans of a run that is in no list.
span* mark_taken(span* first, std::uint64_t count, std::uint64_t dirty) noexcept {
  first->owner = nullptr;
  first->spans = static_cast<std::uint32_t>(count);
  first->dirty = static_cast<std::uint32_t>(std::min(count, dirty));
  first->kind = run_kind::large;
  if (count != 1) {  // who comes behind sees that it is not free
    span& last = first[count - 1];
    last.owner = nullptr;
    last.spans = static_cast<std::uint32_t>(count - 1);
    last.kind = run_kind::rest;
  }
  return first;
}

/// From what has never been used.
span* take_fresh(common& all, std::uint64_t count, std::uint64_t alignment) noexcept {
  span* const begin = all.table + all.fresh;
  const std::uint64_t left = all.count - all.fresh;
  const std::uint64_t front = left != 0 ? front_of(begin, alignment) : 0;
  if (count > left || front > left - count) return nullptr;
  all.fresh += front + count;
  mark_taken(begin + front, count, 0);
  if (front != 0) join(all, begin, front, 0);
  return begin + front;
}

}  // namespace

span* take(std::uint64_t count, std::uint64_t alignment) noexcept {
  if (here.all == nullptr) return nullptr;
  const locked l;
  common& all = l.all;
  alignment = std::max(alignment, span_bytes);
  span* const found = find(all, count, alignment);
  if (found == nullptr) return take_fresh(all, count, alignment);
  const std::uint64_t front = front_of(found, alignment), whole = found->spans, dirty = found->dirty;
  erase(all, found);
  mark_taken(found + front, count, dirty);
  const std::uint64_t behind = whole - front - count;
  if (front != 0) insert(all, found, front, std::min(front, dirty));
  if (behind != 0) insert(all, found + front + count, behind, std::min(behind, dirty));
  return found + front;
}

void give(span* first) noexcept {
  const locked l;
  common& all = l.all;
  const std::uint64_t count = first->spans;
  GODWIT_ASSERT(first->kind == run_kind::small || first->kind == run_kind::large, "what is given was taken");
  first->owner = nullptr;
  first->kind = run_kind::free;  // also where it will lie inside a longer run
  const bool keep = all.dirty + count <= most_dirty;
  if (!keep) {
    const int error = errno;  // free leaves it as it is
    transport::shm::window::discard(bytes_of(first), count << span_bits);
    errno = error;
  }
  join(all, first, count, keep ? count : 0);
}

bool extend(span* first, std::uint64_t count) noexcept {
  const locked l;
  common& all = l.all;
  const std::uint64_t had = first->spans, more = count - had;
  GODWIT_ASSERT(first->kind == run_kind::large && count > had, "a large block grows");
  span* const behind = first + had;
  std::uint64_t dirty = 0;
  if (behind == all.table + all.fresh) {
    if (more > all.count - all.fresh) return false;
    all.fresh += more;
  } else {
    span* const next = free_at(all, behind);
    if (next == nullptr || next->spans < more) return false;
    const std::uint64_t left = next->spans - more;
    dirty = next->dirty;
    erase(all, next);
    if (left != 0) insert(all, first + count, left, std::min(left, dirty));
  }
  mark_taken(first, count, first->dirty + dirty);
  return true;
}

bool is_free(const span* s) noexcept {
  const locked l;
  const common& all = l.all;
  if (s >= all.table + all.fresh) return true;
  for (const span* first : all.bins)
    for (unsigned looks = 0; first != nullptr && looks < most_looks; first = first->next, ++looks)
      if (s >= first && s < first + first->spans) return true;
  return false;
}

void check_invariants() noexcept {
  const locked l;
  const common& all = l.all;
  std::uint64_t free = 0, dirty = 0;
  for (std::uint64_t i = 0; i < all.fresh;) {
    const span& s = all.table[i];
    GODWIT_CHECK(s.spans != 0 && s.spans <= all.fresh - i, "runs fill what has been used");
    GODWIT_CHECK(s.kind != run_kind::none && s.kind != run_kind::rest, "a run begins with its first entry");
    if (s.kind == run_kind::free) {
      GODWIT_CHECK(all.table[i + s.spans - 1].spans == s.spans,
                   "a free run says at both ends how long it is");
      GODWIT_CHECK(i + s.spans == all.fresh || all.table[i + s.spans].kind != run_kind::free,
                   "free runs that touch are joined");
      free += s.spans;
      dirty += s.dirty;
    }
    i += s.spans;
  }
  GODWIT_CHECK(dirty == all.dirty, "pages that are kept are counted");
  for (unsigned bin = 0; bin < common::bin_count; ++bin)
    for (const span* s = all.bins[bin]; s != nullptr; s = s->next) {
      GODWIT_CHECK(s->kind == run_kind::free && bin_of(s->spans) == bin, "a list has runs of its length");
      GODWIT_CHECK(s->next == nullptr || s->next->previous == s, "lists are linked both ways");
      free -= s->spans;
    }
  GODWIT_CHECK(free == 0, "every free run is in its list");
}

}  // namespace godwit::heap::pool
