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
// So many yields in a row find nobody else here before other workers are looked at.
inline constexpr std::uint32_t yields_without_look = 64;

template <class P>
void continuation_worker<P>::yield_thread() noexcept {
  need_thread_here({"godwit::yield", "yield", 0});
  if constexpr (hands_over)
    if (!ready_.empty() && here_.forced == choice::force_steal::none && at_bottom() && has_registers_only() &&
        may_hand_over()) [[likely]]
      return hand_over();
  yield_by_loop();
}

/// As any thread that leaves its worker; or not at all, if there is nobody else.
template <class P>
[[gnu::noinline]] void continuation_worker<P>::yield_by_loop() noexcept {
  if constexpr (lazy) find_spawns();
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
    if (here_.workers == 1 || ++yields_alone_ % yields_without_look != 0) return;
    looks_first_ = true;  // what the caller waits for may be in another worker's queue
    straight_ = turns_without_look;
  }
  block(0, {}, nullptr);
}

/// Is there anything that the loop looks at besides letters and the own queue?
template <class P>
bool continuation_worker<P>::loop_has_more() const noexcept {
  return looks_first_ || events_.pending() || events_.somebody_waits() || !arrivals_.empty() ||
         idle_.is_to_rest() || here_.hooks.serve != nullptr || !here_.one_host();
}

/// Nothing but the own queue has to be looked at now, and nobody counts the time. False until the loop has
/// looked: it may be asked again on the way there.
template <class P>
[[gnu::always_inline]] inline bool continuation_worker<P>::may_hand_over() noexcept {
  if (watched_ || here_.words->mailbox.load(std::memory_order_relaxed) != 0) return false;
  if (straight_ == turns_without_look) {
    if (loop_has_more()) return false;
    straight_ = 0;
  }
  ++straight_;
  return true;
}

/// Nothing has to be put aside when the running thread leaves, but its registers.
template <class P>
[[gnu::always_inline]] inline bool continuation_worker<P>::has_registers_only() const noexcept {
  return here_.exceptions.state->empty() && carried_.none();
}

/// Yield to the first of the own queue, from a thread whose parent is not here and which has_registers_only:
/// without what a thread needs that waits for something. If the next one yielded like that, too, the worker
/// goes from stack to stack.
template <class P>
void continuation_worker<P>::hand_over() noexcept {
  GODWIT_ASSERT(deque_.empty(), "who hands over is at the bottom: its parent is not here");
  GODWIT_ASSERT(!idle_.is_idle(), "ID1: a worker that runs a thread counts as running");
  detail::hot().in_runtime = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  alignas(64) image_room room;
  image* const im = &room.im;
  spawn_slot& bottom = deque_.sentinel();
  im->low = reinterpret_cast<std::uintptr_t>(im);  // until it is resumed by way of resume_image: nearly
  im->top = bottom.sp;
  im->own_record = bottom.record;
  im->waiting_for = im->waited_for = 0;
  base::keep_float_control(im->float_control);
  im->fork = false;
  im->yielded = true;
  im->parked_at = nullptr;
  detail::thread_block* const block = block_at(im->top);
  GODWIT_ASSERT(here_.shape.stacks->end_of(im->low) == im->top, "an image lies on the stack of its thread");
  GODWIT_ASSERT(block->suspended == nullptr, "a thread is suspended once");
  block->suspended = im;
  image* const next = ready_.rotate(im, ready_.ref_of(im));
  if (next == nullptr) {  // others took them
    block->suspended = nullptr;
    detail::hot().in_runtime = 0;
    return;
  }
  ++here_.words->stats.suspends;
  if (next->sp <= not_begun || !next->yielded) [[unlikely]] {
    scheduler_stack_.announce();
    handing step{im, ready_.ref_of(next)};
    suspend_in_place(im->top, handed_over_entry, &step);
    return;
  }
  GODWIT_ASSERT(block_at(next->top)->suspended == next, "who is resumed is suspended");
  count_progress(here_.words->stats.resumes);
  block_at(next->top)->suspended = nullptr;
  bottom.sp = next->top;
  bottom.record = next->own_record;
  base::take_float_control(next->float_control);
  const std::uintptr_t pointer = block->thread_pointer;
  if (pointer != 0) [[unlikely]]
    context::set_thread_pointer(thread_pointer_);
  if (context::sanitized()) [[unlikely]] {
    base::happens_before(&ready_.lock_word());
    announce_stack_now(next->sp);
  }
  detail::hot().in_runtime = 0;
  context::switch_to(&im->sp, next->sp, &ready_.lock_word(), scheduler_stack_.end());
  if (pointer != 0) [[unlikely]]
    context::set_thread_pointer(pointer);
}

/// On the scheduler stack: the calling thread is saved at @p sp.
template <class P>
void continuation_worker<P>::handed_over_entry(void* arg, std::uintptr_t sp) {
  auto& w = static_cast<continuation_worker&>(this_worker());
  const handing step = *static_cast<const handing*>(arg);
  step.yields->sp = sp;
  w.ready_.lock_word().store(0, std::memory_order_release);
  w.resume_image(step.next);
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
ref continuation_worker<P>::create_thread(detail::task_entry* entry, const void* closure, std::size_t bytes,
                                          priority level, bool always_begins) noexcept {
  if constexpr (!can_park) {
    return worker::create_thread(entry, closure, bytes, level, always_begins);
  } else {
    const unexposed inside;
    auto* t = static_cast<fresh_thread*>(heap_.allocate(object_kind::created, sizeof(fresh_thread) + bytes));
    if constexpr (hands_over)
      begin_record(t);
    else
      clear_record(t);       // these look at more of it
    base::happens_after(t);  // of whoever was there before
    t->entry = entry;
    t->closure_bytes = static_cast<std::uint32_t>(bytes);
    t->high = level == priority::high;
    t->always_begins = always_begins;
    if constexpr (P::spans) t->span_ns = span_now();
    if (bytes == sizeof(void*))  // as a rule: and a call of memcpy would be felt
      std::memcpy(t->closure(), closure, sizeof(void*));
    else
      std::memcpy(t->closure(), closure, bytes);
    put_carried(*t, child_takes());
    add_strand(*here_.memory, carried_.scope());
    base::happens_before(t);
    t->link.sp = 0;
    const ref r = here_.ref_of(t);
    push_near(reinterpret_cast<image*>(reinterpret_cast<std::byte*>(t) + fresh_thread::image_at),
              r + fresh_thread::image_at, t->high ? rank::high : rank::last);
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
  GODWIT_ASSERT(t.kind == object_kind::created && t.entry != nullptr, "a thread that begins has a record");
  base::happens_after(&t);
  const std::uintptr_t sp = take_stack();
  const std::uintptr_t end = here_.shape.stacks->end_of(sp);
  enter_thread(end, end, r, carried_by(t));
  GODWIT_ASSERT(block_at(end)->suspended == nullptr && block_at(end)->number == 0,
                "the block of a thread that begins is empty");
  block_at(end)->number = r;
  block_at(end)->high = t.high ? 1 : 0;
  base::set_float_control(t.float_control);
  if constexpr (P::spans) strand_begins(chain_of(t.span_ns));
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
