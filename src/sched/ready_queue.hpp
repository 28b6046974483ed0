// The owner's side of a worker's ready queue, and what goes with it, to be inlined where threads come and go:
// join.cpp, continuation.cpp. docs/protocols/join.md. (Thieves: pop_ready_of in far_calls.cpp.)
#pragma once

#include "base/cpu.hpp"
#include "base/check.hpp"
#include "sched/worker.hpp"

namespace godwit::sched {

/// A counter that the monitor reads meanwhile.
[[gnu::always_inline]] inline void count_progress(std::uint64_t& n) noexcept {
  __atomic_store_n(&n, n + 1, __ATOMIC_RELAXED);
}

/// For assertions, with the lock held: head and tail agree with the count.
inline bool is_ready_queue(const public_words& w) noexcept {
  const std::uint64_t count = w.ready_count.load(std::memory_order_relaxed);
  const ref head = w.ready_head.load(std::memory_order_relaxed);
  const ref tail = w.ready_tail.load(std::memory_order_relaxed);
  return count == 0 || (head != 0 && tail != 0 && (count == 1) == (head == tail));
}

/// Nobody else takes from it in a run of one worker.
[[gnu::always_inline]] inline void worker::lock_ready() noexcept {
  if (workers_ != 1 && !base::try_lock(words_->ready_lock, holder())) [[unlikely]]
    lock_ready_slowly();
}
[[gnu::always_inline]] inline void worker::unlock_ready() noexcept {
  if (workers_ != 1) base::unlock(words_->ready_lock, holder());
}

/// @p im is of this host, and ready.
[[gnu::always_inline]] inline void worker::push_near(image* im, ref image_ref, bool in_front) noexcept {
  GODWIT_ASSERT(is_near(image_ref) && im == at<image>(image_ref), "ready queues hold images of their host");
  GODWIT_ASSERT(!is_idle_, "ID1: only a worker that counts as running makes threads ready");
  im->next = 0;
  im->waiting_for = 0;
  lock_ready();
  GODWIT_ASSERT(is_ready_queue(*words_), "head and tail of the ready queue agree with its count");
  const std::uint64_t count = words_->ready_count.load(std::memory_order_relaxed);
  if (count != 0 && in_front) {
    im->next = words_->ready_head.load(std::memory_order_relaxed);
    at<image>(im->next)->prev = image_ref;
  } else if (count != 0) {
    im->prev = words_->ready_tail.load(std::memory_order_relaxed);
    at<image>(im->prev)->next = image_ref;
  }
  if (count == 0 || in_front) words_->ready_head.store(image_ref, std::memory_order_relaxed);
  if (count == 0 || !in_front) words_->ready_tail.store(image_ref, std::memory_order_relaxed);
  if (workers_ == 1)
    words_->ready_count.store(count + 1, std::memory_order_relaxed);
  else
    // on most machines also what makes wake_one see sleepers in time
    words_->ready_count.fetch_add(1, std::memory_order_relaxed);
  GODWIT_ASSERT(is_ready_queue(*words_), "head and tail of the ready queue agree with its count");
  unlock_ready();
  wake_one();
}

/// The first of the own ready queue; 0: none, or somebody else has the lock.
[[gnu::always_inline]] inline ref worker::pop_ready() noexcept {
  if (workers_ != 1 && !base::try_lock(words_->ready_lock, holder())) return 0;
  GODWIT_ASSERT(!is_idle_, "ID1: only a worker that counts as running takes threads");
  GODWIT_ASSERT(is_ready_queue(*words_), "head and tail of the ready queue agree with its count");
  ref r = 0;
  if (const std::uint64_t count = words_->ready_count.load(std::memory_order_relaxed); count != 0) {
    r = words_->ready_head.load(std::memory_order_relaxed);
    words_->ready_head.store(at<image>(r)->next, std::memory_order_relaxed);
    words_->ready_count.store(count - 1, std::memory_order_relaxed);
  }
  unlock_ready();
  return r;
}

/// Append @p last and take the first, under one lock. 0: the queue is empty, and stays so.
[[gnu::always_inline]] inline ref worker::rotate_ready(image* last, ref last_ref) noexcept {
  GODWIT_ASSERT(last == at<image>(last_ref) && last->sp != 0, "the thread is saved before it is appended");
  lock_ready();
  GODWIT_ASSERT(is_ready_queue(*words_), "head and tail of the ready queue agree with its count");
  ref r = 0;
  if (words_->ready_count.load(std::memory_order_relaxed) != 0) {
    last->next = 0;
    last->prev = words_->ready_tail.load(std::memory_order_relaxed);
    at<image>(last->prev)->next = last_ref;
    words_->ready_tail.store(last_ref, std::memory_order_relaxed);
    r = words_->ready_head.load(std::memory_order_relaxed);
    words_->ready_head.store(at<image>(r)->next, std::memory_order_relaxed);
    GODWIT_ASSERT(r != last_ref, "a thread does not yield to itself");
  }
  unlock_ready();
  return r;
}

/// The part of init_record that no record can do without.
[[gnu::always_inline]] inline void worker::begin_record(record* r) noexcept {
  r->state.store(state_none, std::memory_order_relaxed);
  r->references.store(1, std::memory_order_relaxed);
  r->result.object = 0;
  r->result.bytes = 0;
  r->result.kind = detail::outcome::value;
  r->result.boxed = 0;
  r->float_control = base::float_control();
}

/// Of a record. With one worker nobody else can come in between.
[[gnu::always_inline]] inline std::uint64_t worker::exchange_state(ref r, std::uint64_t state) noexcept {
  if (workers_ != 1) return net_.remote_exchange(transport::ref_worker(r), &home<record>(r)->state, state);
  word& here = at<record>(r)->state;
  const std::uint64_t before = here.load(std::memory_order_relaxed);
  here.store(state, std::memory_order_relaxed);
  return before;
}

}  // namespace godwit::sched
