// Members of continuation_worker: a thread that is waited for before it has begun is run by who waits, as if
// that had spawned it just now (`hands_over`). docs/protocols/park.md (PK4); models/hand_over.pml. Included
// by continuation.cpp alone, which instantiates them. Bench: bench/micro/threads.
#pragma once

#include "context/fork.hpp"
#include "sched/continuation.hpp"

#include <utility>

namespace godwit::sched {

/// Of the image that is none, in a ready queue.
template <class P>
const fresh_thread& continuation_worker<P>::unbegun(const image& im) noexcept {
  return *reinterpret_cast<const fresh_thread*>(reinterpret_cast<const std::byte*>(&im) -
                                                fresh_thread::image_at);
}

/// @p mine: what the running thread carries. What it runs goes on with that.
template <class P>
[[gnu::always_inline]] inline bool continuation_worker<P>::may_run_unbegun(const carried& mine) noexcept {
  return mine.segment == 0 && here_.exceptions.state->empty() && !is_between_threads() &&
         detail::hot().bottom - &deque_.sentinel() <= most_nested && may_hand_over();
}

/// True: @p r is of a thread that has not begun, and the caller, who waits for it, has it: it is in no queue
/// any more. False: nothing has happened.
template <class P>
bool continuation_worker<P>::take_unbegun(ref r) noexcept {
  auto* const t = here_.at<fresh_thread>(r);
  const carried mine = carried_.now();
  if (t->kind != object_kind::created || !may_run_unbegun(mine)) return false;
  const unexposed inside;
  const auto may = [&](bool any_high) { return carried_by(*t) == mine && (t->high || !any_high); };
  auto* const im = reinterpret_cast<image*>(reinterpret_cast<std::byte*>(t) + fresh_thread::image_at);
  const ref image_ref = r + fresh_thread::image_at;
  const worker_no home = ref_worker(r);
  const bool taken =
      home == here_.me
          ? ready_.take(im, image_ref, may)
          : ready_queue(*here_.memory, *here_.words_of(home), here_.holder()).take(im, image_ref, may);
  if (!taken) return false;
  count_progress(here_.words->stats.resumes);
  take_strand_back(*here_.memory, mine.scope);  // the joiner's goes on with it
  return true;
}

/// The first of the own queue, if it is such a thread, and in the scope of the caller, who waits for that.
template <class P>
ref continuation_worker<P>::take_next_unbegun() noexcept {
  const carried mine = carried_.now();
  if (ready_.empty() || !may_run_unbegun(mine)) return 0;
  const unexposed inside;
  const ref image_ref =
      ready_.pop_if([&](const image& im) { return im.sp == 0 && carried_by(unbegun(im)) == mine; });
  if (image_ref == 0) return 0;
  count_progress(here_.words->stats.resumes);
  take_strand_back(*here_.memory, mine.scope);
  return image_ref - fresh_thread::image_at;
}

template <class P>
bool continuation_worker<P>::run_if_unbegun(ref r) noexcept {
  if constexpr (hands_over)
    if (take_unbegun(r)) {
      run_unbegun(r);
      return true;
    }
  return false;
}

template <class P>
void continuation_worker<P>::run_unbegun_of_scope() noexcept {
  if constexpr (hands_over)
    while (const ref r = static_cast<continuation_worker&>(this_worker()).take_next_unbegun()) run_unbegun(r);
}

/// By the thread that has taken it. Comes back when it has ended or, perhaps at another worker, when the
/// joiner has been stolen or the other one has suspended.
template <class P>
[[gnu::noinline]] void continuation_worker<P>::run_unbegun(ref r) noexcept {
  auto& t = *static_cast<continuation_worker&>(this_worker()).here_.template at<fresh_thread>(r);
  if (!t.always_begins && is_cancelled()) return refuse_unbegun(t, r);
  std::uint32_t control;
  base::keep_float_control(control);
  const detail::word_pair w = context::fork(&unbegun_entry, r, detail::hot().bottom);
  base::take_float_control(control);
  if (w.status != 0) this_worker().records().detach(w.status);  // what counts is the other record
}

/// It is cancelled and does not begin, so it needs no stack: only its closure is destroyed.
template <class P>
void continuation_worker<P>::refuse_unbegun(fresh_thread& t, ref r) noexcept {
  base::happens_after(&t);
  t.entry(t.closure(), t.closure_bytes, r);
  static_cast<continuation_worker&>(this_worker()).complete_unbegun(r);
}

template <class P>
void continuation_worker<P>::complete_unbegun(ref r) noexcept {
  here_.release_writes();
  const std::uint64_t waiting = records_.exchange_state(r, state_done);  // JN1
  if (is_detached(waiting)) {
    const unexposed inside;  // futures in a result that nobody wants are not waited for
    ended_detached(r, waiting);
  } else if (waiting != state_none) [[unlikely]] {
    const unexposed inside;
    wake_waiters(waiting, base::fast_ns());
  }
}

/// On a stack of its own, the continuation of who waits in the slot below. Like task.hpp's child.
template <class P>
detail::word_pair continuation_worker<P>::unbegun_entry(std::uintptr_t r, std::uintptr_t, spawn_slot* slot,
                                                        void*) noexcept {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto me = [] { return static_cast<continuation_worker*>(&this_worker()); };
  if (context::sanitized()) [[unlikely]]
    me()->announce_thread(here);
  detail::hot().bottom = slot + 1;  // the entry counts from here
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Else there is no exception (may_run_unbegun), and whether it is cancelled is asked around its callable.
  if (detail::hot().poll.load(std::memory_order_relaxed) == 1) [[unlikely]]  // somebody asks
    static_cast<void>(me()->spawn_point(true, true));

  auto& t = *me()->here_.template at<fresh_thread>(r);
  detail::thread_block* const block = me()->here_.block_of(here);
  GODWIT_ASSERT(block->suspended == nullptr && block->number == 0,
                "the block of a thread that begins is empty");
  block->number = r;
  block->high = t.high ? 1 : 0;
  base::happens_after(&t);
  base::take_float_control(t.float_control);
  t.entry(t.closure(), t.closure_bytes, r);
  if (block->at_end != nullptr) [[unlikely]]
    std::exchange(block->at_end, nullptr)(block);  // may suspend
  block->number = block->high = 0;

  me()->complete_unbegun(r);
  continuation_worker& w = *me();
  spawn_slot* const mine = detail::hot().bottom - 1;
  detail::hot().bottom = mine;  // DQ1
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (mine < detail::hot().split) [[unlikely]]
    if (const ref parted = w.pop_public(mine); parted != 0) w.complete(parted);
  if (context::sanitized()) [[unlikely]]
    w.announce_thread(slot->sp);
  return {0, 0};
}

}  // namespace godwit::sched
