// See heap.hpp.
#include "sched/heap.hpp"

#include <bit>
#include <sched.h>

#include "base/check.hpp"
#include "base/pause.hpp"
#include "transport/shm/segment.hpp"

namespace godwit::sched {

// Sizes: multiples of 64 up to 1024, then four steps per power of two: at most a quarter is wasted.
std::uint32_t heap::class_of(std::size_t bytes) noexcept {
  if (bytes <= 1024) return static_cast<std::uint32_t>((bytes + 63) / 64);    // 1 ... 16
  const unsigned log = static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;  // 2^log < bytes <= 2^(log+1)
  const std::size_t step = std::size_t{1} << (log - 2);
  const std::size_t above = (bytes - (std::size_t{1} << log) + step - 1) / step;  // 1 ... 4
  return static_cast<std::uint32_t>(16 + (log - 10) * 4 + above);
}

std::size_t heap::bytes_of(std::uint32_t c) noexcept {
  if (c <= 16) return std::size_t{c} * 64;
  const unsigned log = 10 + (c - 17) / 4;
  return (std::size_t{1} << log) + ((c - 17) % 4 + 1) * (std::size_t{1} << (log - 2));
}

void heap::init(std::byte* segment_base, std::byte* begin, std::size_t bytes, word* live_head,
                bool give_back) noexcept {
  *this = heap();
  base_ = segment_base;
  fresh_ = begin;
  end_ = begin + bytes;
  live_head_ = live_head;
  give_back_ = give_back;
}

object* heap::allocate(object_kind kind, std::size_t bytes) noexcept {
  if (queue_head_ != nullptr && queue_head_->load(std::memory_order_relaxed) != 0) drain_queue();
  if (used_ > limit_) {
    collect();
    limit_ = used_ * 2 > first_limit ? used_ * 2 : first_limit;
  }
  const std::uint32_t c = class_of(bytes);
  const std::size_t size = bytes_of(c);
  if (free_[c] == 0 && size > static_cast<std::size_t>(end_ - fresh_)) collect();
  object* o;
  if (free_[c] != 0) {
    o = at(free_[c]);
    free_[c] = o->next;
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
  o->size_class = c;
  o->kind = kind;
  o->freed.store(0, std::memory_order_relaxed);
  o->prev = 0;
  o->next = live_;
  if (live_ != 0) at(live_)->prev = offset(o);
  live_ = offset(o);
  live_head_->store(live_, std::memory_order_relaxed);
  used_ += size;
  if (used_ > high_) high_ = used_;
  return o;
}

void heap::free(object* o) noexcept {
  if (o->prev != 0)
    at(o->prev)->next = o->next;
  else {
    live_ = o->next;
    live_head_->store(live_, std::memory_order_relaxed);
  }
  if (o->next != 0) at(o->next)->prev = o->prev;
  const std::size_t size = bytes_of(o->size_class);
  used_ -= size;
  // Give the pages of a large object back, but keep the first one: it holds the free list's link.
  constexpr std::size_t page = 65536;
  if (give_back_ && size >= 16 * page) {
    const auto from = (reinterpret_cast<std::uintptr_t>(o) + sizeof(object) + page - 1) / page * page;
    const auto to = (reinterpret_cast<std::uintptr_t>(o) + size) / page * page;
    transport::shm::segment::discard(reinterpret_cast<void*>(from), to - from);
  }
  o->next = free_[o->size_class];
  free_[o->size_class] = offset(o);
}

/// The owner's side of the locked queue. Objects are linked by `freed`: ref of the next one, or 1 at the end.
void heap::drain_queue() noexcept {
  for (unsigned spins = 0; queue_lock_->exchange(1, std::memory_order_acquire) != 0;)
    if (++spins % 256 == 0)
      sched_yield();  // the holder may have been descheduled
    else
      base::spin_pause();
  std::uint64_t r = queue_head_->exchange(0, std::memory_order_relaxed);
  queue_lock_->store(0, std::memory_order_release);
  while (r > 1) {
    object* o = at(transport::ref_offset(r));
    r = o->freed.load(std::memory_order_relaxed);
    free(o);
  }
}

void heap::collect() noexcept {
  if (queue_head_ != nullptr) return drain_queue();
  for (std::uint64_t i = live_; i != 0;) {
    object* o = at(i);
    i = o->next;
    // Pairs with the remote store of `freed`: whoever freed it has read it before. H1
    if (o->freed.load(std::memory_order_acquire) != 0) free(o);
  }
}

void heap::check_invariants() const noexcept {
  std::size_t sum = 0;
  std::uint64_t before = 0;
  for (std::uint64_t i = live_; i != 0; i = at(i)->next) {
    GODWIT_CHECK(at(i)->prev == before, "live list of the shared heap is broken");
    sum += bytes_of(at(i)->size_class);
    before = i;
  }
  GODWIT_CHECK(sum == used_, "live bytes %zu, counted %zu", sum, used_);
}

}  // namespace godwit::sched
