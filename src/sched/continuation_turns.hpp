// Members of continuation_worker: yields, threads that begin later, and the shortest way from one thread to
// the next where stacks stay (`hands_over`): no scheduler loop in between as long as only the own ready queue
// matters. Included by continuation.cpp alone, which instantiates them. docs/protocols/park.md;
// models/hand_over.pml. Bench: bench/micro/threads.
#pragma once

#include "sched/continuation.hpp"

#include <cstring>
#include <utility>

namespace godwit::sched {

using trace::idle_cause;
using trace::kind;

// So many threads in a row come from the own queue before everything else is looked at.
inline constexpr std::uint32_t turns_without_look = 64;

template <class P>
void continuation_worker<P>::yield_thread() noexcept {
  if constexpr (takes_turns) base::pause();  // who waits by yielding lets time pass
  // Where workers are threads, now and then by way of the loop: it looks for events, and they may be what the
  // caller waits for.
  // (Stalling join: nobody but this worker looks at the threads that wait here, and the caller may wait for
  // one of them.)
  const bool nobody_else = ready_.empty() && arrivals_.empty() && (!stalls || waiting_.empty());
  if (here_.forced == choice::force_steal::none && detail::hot().bottom - 1 == &deque_.sentinel() &&
      nobody_else && !(can_park && events_.somebody_waits() && events_.is_due())) {
    inbox_.serve();
    serve_mailbox();
    return;
  }
  if constexpr (hands_over) {
    if (here_.forced == choice::force_steal::none && !nobody_else && may_hand_over() && at_bottom()) {
      hand_over();
      return;
    }
  }
  block(0, {}, nullptr);
}

/// Nothing but the own queue has to be looked at now, and nobody counts the time. False until the loop has
/// looked: it may be asked again on the way there.
template <class P>
[[gnu::always_inline]] inline bool continuation_worker<P>::may_hand_over() noexcept {
  if (watched_ || here_.words->mailbox.load(std::memory_order_relaxed) != 0) return false;
  if (straight_ == turns_without_look) return false;
  ++straight_;
  return true;
}

/// Yield to the first of the own queue: suspend, rotate and resume, without what a thread needs that waits
/// for something.
template <class P>
void continuation_worker<P>::hand_over() noexcept {
  detail::hot().in_runtime = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  scheduler_stack_.announce();
  alignas(64) image room;
  room.top = here_.shape.stacks->end_of(reinterpret_cast<std::uintptr_t>(&room));
  suspend_in_place(room.top, handed_over_entry, &room);
}

/// On the scheduler stack. The calling thread is saved at @p sp, and at the bottom: its parent is not here.
template <class P>
[[gnu::always_inline]] inline void continuation_worker<P>::handed_over(image* im,
                                                                       std::uintptr_t sp) noexcept {
  GODWIT_ASSERT(deque_.empty(), "who hands over is at the bottom: its parent is not here");
  GODWIT_ASSERT(!idle_.is_idle(), "ID1: a worker that runs a thread counts as running");
  GODWIT_ASSERT(here_.is_stack(sp, im->top, im->top), "a thread's stack lies where stacks lie");
  const std::uint32_t control = base::float_control();
  // (What is read only of threads that wait for something is left as it is: where, ready_ns, ...)
  im->sp = im->low = sp;
  im->own_record = deque_.sentinel().record;
  im->waiting_for = im->waited_for = 0;
  im->float_control = control;
  im->fork = false;
  im->parked_at = nullptr;
  im->exceptions = *here_.exceptions.state;
  detail::thread_block* const block = block_at(im->top);
  GODWIT_ASSERT(block->suspended == nullptr, "a thread is suspended once");
  block->suspended = im;
  const ref first = ready_.rotate(im, here_.memory->ref_of_any(im));
  if (first == 0) {  // others took them
    block->suspended = nullptr;
    announce_stack(sp);
    detail::hot().in_runtime = 0;
    godwit_ctx_resume_suspended(sp, 0);
    __builtin_unreachable();
  }
  ++here_.words->stats.suspends;
  *here_.exceptions.state = {};
  const image* next = here_.at<image>(first);
  const std::uintptr_t next_sp = next->sp;
  if (next_sp == 0 || next->fork || next->waited_for != 0 || !next->exceptions.empty()) [[unlikely]]
    resume_image(first);
  GODWIT_ASSERT(block_at(next->top)->suspended == next, "who is resumed is suspended");
  count_progress(here_.words->stats.resumes);
  block_at(next->top)->suspended = nullptr;
  deque_.sentinel().sp = next->top;
  deque_.sentinel().record = next->own_record;
  if (next->float_control != control) base::set_float_control(next->float_control);
  announce_stack(next_sp);
  detail::hot().in_runtime = 0;
  context::resume_suspended_here(next_sp);
}

template <class P>
void continuation_worker<P>::handed_over_entry(void* arg, std::uintptr_t sp) {
  if constexpr (hands_over)
    static_cast<continuation_worker&>(this_worker()).handed_over(static_cast<image*>(arg), sp);
}

/// The worker has no thread: the next one, straight from the own queue if that will do.
template <class P>
void continuation_worker<P>::next_thread(idle_cause cause) noexcept {
  if constexpr (hands_over) {
    if (!ready_.empty() && may_hand_over())
      if (const ref r = ready_.pop()) resume_image(r);
  }
  account_.begin_idle(cause);
  loop();
}

template <class P>
ref continuation_worker<P>::create_thread(detail::task_entry* entry, const void* closure,
                                          std::size_t bytes) noexcept {
  if constexpr (!can_park) {
    return worker::create_thread(entry, closure, bytes);
  } else {
    const unexposed inside;
    auto* t = static_cast<fresh_thread*>(heap_.allocate(object_kind::record, sizeof(fresh_thread) + bytes));
    if constexpr (hands_over)
      begin_record(t);
    else
      clear_record(t);       // these look at more of it
    base::happens_after(t);  // of whoever was there before
    t->entry = entry;
    t->closure_bytes = bytes;
    if (bytes == sizeof(void*))  // as a rule: and a call of memcpy would be felt
      std::memcpy(t->closure(), closure, sizeof(void*));
    else
      std::memcpy(t->closure(), closure, bytes);
    base::happens_before(t);
    t->link.sp = 0;
    const ref r = here_.ref_of(t);
    push_near(reinterpret_cast<image*>(reinterpret_cast<std::byte*>(t) + fresh_thread::image_at),
              r + fresh_thread::image_at, false);
    return r;
  }
}

/// Top of an unused stack, where stacks stay.
template <class P>
[[gnu::always_inline]] inline std::uintptr_t continuation_worker<P>::take_stack() noexcept {
  detail::hot_words& hot = detail::hot();
  void* top = hot.free_stacks;
  if (*static_cast<void**>(top) == nullptr) {
    more_stacks();
    top = hot.free_stacks;
  }
  hot.free_stacks = *static_cast<void**>(top);
  if (kept_stacks_ != 0) --kept_stacks_;
  return reinterpret_cast<std::uintptr_t>(top);
}

template <class P>
void continuation_worker<P>::begin_thread(ref r) noexcept {
  auto& t = *here_.at<fresh_thread>(r);
  const std::uint64_t now = account_.traced() || account_.is_idle() ? base::fast_ns() : 0;
  account_.end_idle(now);
  if (account_.traced()) account_.note(kind::start, now, r);
  detail::hot_words& hot = detail::hot();
  GODWIT_ASSERT(t.kind == object_kind::record && t.entry != nullptr, "a thread that begins has a record");
  base::happens_after(&t);
  const std::uintptr_t sp = take_stack();
  const std::uintptr_t end = here_.shape.stacks->end_of(sp);
  enter_thread(end, end, r);
  GODWIT_ASSERT(block_at(end)->suspended == nullptr && block_at(end)->number == 0,
                "the block of a thread that begins is empty");
  block_at(end)->number = r;
  base::set_float_control(t.float_control);
  if constexpr (P::spans) strand_begins(t.span_ns);
  announce_stack(sp);
  hot.in_runtime = 0;
  godwit_ctx_start(reinterpret_cast<void*>(sp), fresh_entry, &t);
  __builtin_unreachable();
}

/// On its own stack. The record lives as long as somebody may join.
template <class P>
void continuation_worker<P>::fresh_entry(void* arg) {
  auto& t = *static_cast<fresh_thread*>(arg);
  const ref r = static_cast<continuation_worker&>(this_worker()).deque_.sentinel().record;
  t.entry(t.closure(), t.closure_bytes, r);
  this_worker().end_of_root_thread();
}

template <class P>
void continuation_worker<P>::end_of_root_thread() noexcept {
  if constexpr (stacks_stay) {
    detail::thread_block* block =
        block_at(here_.shape.stacks->end_of(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))));
    if (block->at_end != nullptr) [[unlikely]] {
      std::exchange(block->at_end, nullptr)(block);  // may suspend
      return this_worker().end_of_root_thread();
    }
  }
  spawn_slot* mine = detail::hot().bottom - 1;
  detail::hot().bottom = mine;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (deque_.is_sentinel(mine)) {  // as a rule: it was not spawned
    detail::hot().bottom = mine + 1;
    complete(mine->record);
  }
  complete(pop_public(mine));
}

}  // namespace godwit::sched
