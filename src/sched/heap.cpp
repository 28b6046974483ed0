// See heap.hpp.
#include "sched/heap.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/lock.hpp"
#include "stack/give_back.hpp"
#include "transport/shm/segment.hpp"

namespace godwit::sched {

std::uint32_t heap::class_of(std::size_t bytes) noexcept {
  if (bytes <= small_classes * grain) return static_cast<std::uint32_t>((bytes + grain - 1) / grain);
  const unsigned log = static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;  // 2^log < bytes <= 2^(log+1)
  const std::size_t step = std::size_t{1} << (log - 2);
  const std::size_t above = (bytes - (std::size_t{1} << log) + step - 1) / step;  // 1 ... 4
  return static_cast<std::uint32_t>(small_classes + (log - 10) * 4 + above);
}

std::size_t heap::large_bytes_of(std::uint32_t c) noexcept {
  const unsigned log = 10 + (c - small_classes - 1) / 4;
  return (std::size_t{1} << log) + ((c - small_classes - 1) % 4 + 1) * (std::size_t{1} << (log - 2));
}

void heap::init(std::byte* segment_base, std::byte* begin, std::size_t bytes, word* live_head, bool give_back,
                bool scarce) noexcept {
  *this = heap();
  GODWIT_ASSERT(((reinterpret_cast<std::uintptr_t>(segment_base) | reinterpret_cast<std::uintptr_t>(begin)) &
                 (grain - 1)) == 0 &&
                    begin > segment_base,
                "objects are aligned, and 0 is the offset of none");
  base_ = segment_base;
  begin_ = fresh_ = touched_ = begin;
  end_ = begin + bytes;
  live_head_ = live_head;
  give_back_ = give_back;
  scarce_ = scarce;
  limit_ = scarce ? first_limit_if_scarce : first_limit;
}

/// After a pass: of what is in use before the next one.
std::size_t heap::next_limit() const noexcept {
  return scarce_ ? used_ + std::max(used_ / 4, first_limit_if_scarce) : std::max(used_ * 2, first_limit);
}

/// Room behind the last live object is as if it had never been used, if that is a quarter of all: a look at
/// all free objects must be worth it.
void heap::forget_end() noexcept {
  std::byte* end = begin_;
  for (std::uint64_t i = live_; i != 0; i = at(i)->next)
    end = std::max(end, base_ + i + bytes_of(at(i)->size_class));
  if ((fresh_ - end) * 4 <= fresh_ - begin_) return;
  touched_ = std::max(touched_, fresh_);
  fresh_ = end;
  for (std::uint64_t& first : free_) {
    std::uint64_t kept = 0;
    for (std::uint64_t i = first, next; i != 0; i = next) {
      next = at(i)->next;
      if (base_ + i < end) at(i)->next = std::exchange(kept, i);
    }
    first = kept;
  }
}

/// Where objects of class @p c come from: from free ones. 0: there are none. If memory is scarce, those of
/// larger classes will do, whole. Small objects, which stay longer, do not take the room of stacks.
std::uint32_t heap::free_class_for(std::uint32_t c) const noexcept {
  const std::uint32_t end = !scarce_ ? c + 1 : c <= small_classes ? small_classes + 1 : classes;
  for (; c < end; ++c)
    if (free_[c] != 0) return c;
  return 0;
}

object* heap::allocate_slowly(object_kind kind, std::size_t bytes) noexcept {
  if (queue_head_ != nullptr && queue_head_->load(std::memory_order_relaxed) != 0) drain_queue(false);
  if (used_ > limit_) {
    collect();
    limit_ = next_limit();
  }
  std::uint32_t c = class_of(bytes);
  std::size_t size = bytes_of(c);
  GODWIT_ASSERT(bytes >= sizeof(object) && size >= bytes, "the class holds what was asked for, and a head");
  std::uint32_t from = free_class_for(c);
  const bool full = size > static_cast<std::size_t>(end_ - fresh_);
  if (from == 0 && (full || is_worth_a_pass())) {
    if (full && queue_head_ != nullptr) drain_queue(true);
    collect();
    from = free_class_for(c);
  }
  object* o;
  if (from != 0) {
    o = take_free(c = from);
    size = bytes_of(c);
  } else if (size <= static_cast<std::size_t>(end_ - fresh_)) {
    o = reinterpret_cast<object*>(fresh_);
    fresh_ += size;
  } else {
    base::fatal(
        "worker %u: the shared heap is full: %zu MiB in suspended threads, join records and results, %zu "
        "bytes "
        "more needed: raise --godwit-heap-bytes (GODWIT_HEAP_BYTES)",
        detail::hot().worker, used_ >> 20, bytes);
  }
  return made(o, kind, c, size);
}

/// A large object: its pages go back to the system, but the first one stays: it holds the free list's link.
void heap::give_back_pages(object* o) noexcept {
  constexpr std::size_t page = 65536;
  const std::size_t size = bytes_of(o->size_class);
  if (!give_back_ || size < 16 * page) return;
  const auto from = (reinterpret_cast<std::uintptr_t>(o) + sizeof(object) + page - 1) / page * page;
  const auto to = (reinterpret_cast<std::uintptr_t>(o) + size) / page * page;
  transport::shm::segment::discard(reinterpret_cast<void*>(from), to - from);
}

/// The owner's side of the locked queue. Who has the lock may be on another host: only if there is no other
/// way (@p waits) the owner waits for that.
void heap::drain_queue(bool waits) noexcept {
  if (waits)
    base::lock(*queue_lock_, base::holder(), lock_turn_);
  else if (!base::try_lock(*queue_lock_, base::holder()))
    return;
  std::uint64_t r = queue_head_->exchange(0, std::memory_order_relaxed);
  base::unlock(*queue_lock_, base::holder());
  while (r != 0 && r != freed_last) {
    object* o = at(transport::ref_offset(r));
    GODWIT_ASSERT(is_object(o) && o->freed.load(std::memory_order_relaxed) > freed_marked,
                  "the queue holds objects of this heap that others freed");
    r = o->freed.load(std::memory_order_relaxed);
    free(o);
  }
}

void heap::collect() noexcept {
  if (queue_head_ != nullptr) drain_queue(false);
  for (std::uint64_t i = live_; i != 0;) {
    object* o = at(i);
    i = o->next;
    GODWIT_ASSERT(is_object(o) && o->kind <= object_kind::created, "the live list holds objects");
    // Pairs with the remote store of `freed`: whoever freed it has read it before. JH1
    if (o->freed.load(std::memory_order_acquire) == freed_marked) free(o);
  }
  if (scarce_) forget_end();
}

void heap::rest() noexcept {
  if (!is_worth_a_pass()) return;
  collect();
  if (touched_ > fresh_) stack::give_back(fresh_, static_cast<std::size_t>(touched_ - fresh_));
  touched_ = fresh_;
}

void heap::check_invariants() const noexcept {
  std::size_t sum = 0;
  std::uint64_t before = 0;
  const auto cut = static_cast<std::size_t>(fresh_ - base_);
  std::size_t lowest = cut;  // where the first object was cut
  for (std::uint64_t i = live_; i != 0; i = at(i)->next) {
    GODWIT_CHECK(is_object(at(i)), "the live list of the shared heap holds its objects");
    GODWIT_CHECK(at(i)->prev == before, "live list of the shared heap is broken");
    sum += bytes_of(at(i)->size_class);
    if (i < lowest) lowest = i;
    before = i;
    GODWIT_CHECK(sum <= cut, "the live list of the shared heap ends");
  }
  GODWIT_CHECK(sum == used_, "live bytes %zu, counted %zu", sum, used_);
  for (std::uint32_t c = 0; c < classes; ++c)
    for (std::uint64_t i = free_[c]; i != 0; i = at(i)->next) {
      GODWIT_CHECK(is_object(at(i)) && at(i)->size_class == c, "a free list holds objects of its class");
      sum += bytes_of(c);
      if (i < lowest) lowest = i;
      GODWIT_CHECK(sum <= cut, "the free lists of the shared heap end");
    }
  GODWIT_CHECK(sum == cut - lowest, "live or free %zu bytes, cut %zu", sum, cut - lowest);
}

}  // namespace godwit::sched
