// Members of continuation_worker: how a thread leaves its worker -- because it has to wait, because it
// yields, or because steals are forced. docs/protocols/join.md, park.md. A header, though nobody else
// includes it: members of a template, which continuation.cpp instantiates for all policies of its list.
#pragma once

#include "sched/continuation.hpp"

#include <algorithm>
#include <cstring>

#include "sched/frames.hpp"

namespace godwit::sched {

using trace::idle_cause;
using trace::kind;
using transport::ref_worker;

template <class P>
image* continuation_worker<P>::new_image(std::uint64_t low, std::uint64_t top, std::uint64_t bytes_end,
                                         image* room, bool running) noexcept {
  const std::uint64_t bytes = own_stack ? 0 : bytes_end - low;  // else they stay where they are
  GODWIT_ASSERT(here_.is_stack(low, top, bytes_end), "a thread's stack lies where stacks lie");
  image* im = room;
  if constexpr (stacks_stay) {
    GODWIT_ASSERT(here_.shape.stacks->end_of(reinterpret_cast<std::uintptr_t>(room)) == top,
                  "an image lies on the stack of its thread");
    GODWIT_ASSERT(block_at(top)->suspended == nullptr, "a thread is suspended once");
    block_at(top)->suspended = im;
  } else
    im = static_cast<image*>(heap_.allocate(object_kind::image, sizeof(image) + bytes));
  im->low = low;
  im->top = top;
  im->bytes_end = bytes_end;
  base::keep_float_control(im->float_control);
  im->ready_ns = im->suspended_ns = im->span_ns = 0;
  im->waited_for = 0;
  im->exceptions = {};
  im->owner = im->wanted = im->high = im->yielded = false;
  if constexpr (stacks_stay) im->high = block_at(top)->high != 0;
  im->bound = running && !here_.exceptions.state->empty();
  im->goes_home = im->bound && !detail::one_heap() && !detail::host_heap();
  if (im->bound) [[unlikely]]
    std::swap(im->exceptions, *here_.exceptions.state);
  if constexpr (!stacks_stay) im->data = here_.one_host() ? data_part{} : here_.words->data();
  if constexpr (!stacks_stay) context::sanitizer_forget(low, bytes_end);
  if constexpr (!own_stack) std::memcpy(im->bytes(), reinterpret_cast<const void*>(low), bytes);
  here_.words->stats.evacuated_bytes += bytes;
  return im;
}

/// Called at the start of a child by the forced-steal modes, and always by the crude scheme.
/// parents: all of them leave. children: the child itself does, and its parent goes on at once, so that every
/// join is outstanding.
template <class P>
void continuation_worker<P>::force(bool child_may_leave) noexcept {
  if (P::crude_scheme && detail::hot().spawns == 0) ++here_.words->stats.spawns;
  detail::hot().poll.store(1, std::memory_order_relaxed);
  if (child_may_leave && (here_.forced == choice::force_steal::children ||
                          (here_.forced == choice::force_steal::random && (random_.next() >> 40 & 1) != 0)))
    yield_thread();
  else
    parents_leave();
}

/// Called at the start of a child: every queued continuation goes to the ready queue, as if stolen. If the
/// parent is in the middle of exceptions, it takes them along, and whoever comes next takes it first.
template <class P>
void continuation_worker<P>::parents_leave() noexcept {
  const unexposed inside;
  const bool in_front = !P::crude_scheme && !here_.exceptions.state->empty();
  exposure_.encode_pending(here_.region_low, here_.region_high);
  if (deque_.has_private()) ++here_.words->stats.exposures;
  oldest_leave(~0u, in_front, false, [](const spawn_slot&) { return true; });
}

/// The oldest continuations, @p most at most and as long as @p which(slot), go to the ready queue. @p stay:
/// those that are public, and to no other host.
template <class P>
template <class Which>
void continuation_worker<P>::oldest_leave(unsigned most, bool in_front, bool stay, Which&& which) noexcept {
  GODWIT_ASSERT(!idle_.is_idle(), "ID1: a worker that runs a thread counts as running");
  std::uint64_t span = 0;
  if constexpr (P::spans) span = strand_ends();  // of the parent
  here_.release_writes();
  context::flush_windows();
  const auto prepare = [&, control = base::float_control()](spawn_slot& s) { exposure_.prepare(s, control); };
  for (; most != 0; --most) {
    ref r = 0;
    spend(base::step::suspend);
    const bool found = deque_.take_own(
        prepare,
        [&](spawn_slot& own, const spawn_slot& above) {
          if (!which(own)) return false;
          // Where stacks stay: below its frames, where nothing is: its child has a stack of its own.
          auto* room =
              reinterpret_cast<image*>((own.sp - context::fork_bytes_below - 256 - sizeof(image)) / 64 * 64);
          if constexpr (stacks_stay)
            context::sanitizer_forget(reinterpret_cast<std::uintptr_t>(room),
                                      own.sp - context::fork_bytes_below);
          const std::uint64_t top = stack_end(own.sp, above);
          if (iso && own.bytes_end != above.sp) ancestors_.refuse_reference(spawned_at(above));
          image* im = new_image(own.sp - bytes_below, top, own_stack ? top : own.bytes_end, room,
                                &own == detail::hot().bottom - 1);
          if constexpr (lazy) lazy_spawns::put_below(im->bytes(), own, *lazy_site_of(own), own.record);
          im->sp = lazy ? im->low : own.sp;
          im->fp = own.fp;
          im->extra = own.extra;
          im->own_record = above.record;
          im->status = own.record;
          hold_owner(*im);
          im->wanted = stay;
          im->waiting_for = 0;
          im->fork = !lazy;
          im->where = {};
          im->parked_at = nullptr;
          im->span_ns = span;
          im->takes = leaves_deque(carried_along(*here_.memory, *here_.words, own));
          if (here_.opts.check_frames && !iso && !lazy) own.frame_hash = frame_hash(own.sp, top);
          r = here_.ref_of_image(im);
          if (account_.traced()) {  // from here on the child is the bottom thread
            const std::uint64_t now = base::fast_ns();
            account_.note(kind::suspend, now, above.record, 0, 0, im->top - im->low, level_of(&own), 4);
            account_.note(kind::task, now, own.record, 0, 0, 0, index(here_.me), 2);
          }
          return true;
        },
        stay);
    if (!found) break;
    push_ready(r, 0, in_front);
    ++here_.words->stats.suspends;
  }
  if constexpr (P::spans) strand_begins(span);  // of the child
}

template <class P>
void continuation_worker<P>::block(ref r, const detail::place& where, const char* what) noexcept {
  if constexpr (hands_over) {
    if (r != 0 && run_if_unbegun(r)) {
      auto& w = static_cast<continuation_worker&>(this_worker());  // perhaps another one
      if (!w.records_.is_complete(r)) w.block(r, where, what);
      return;
    }
  }
  leaving why{.waiting_for = r, .where = &where, .what = what};
  leave(why);
}

template <class P>
bool continuation_worker<P>::park(detail::publish_fn* publish, void* arg, detail::wakes by, const char* what,
                                  const detail::place& where) noexcept {
  if constexpr (!can_park) return worker::park(publish, arg, by, what, where);
  leaving why{.where = &where, .publish = publish, .arg = arg, .by = by, .what = what};
  return leave(why);
}

/// Suspend the calling thread. False: there was nothing to wait for. Afterwards `this` may be another worker
/// than the caller's.
template <class P>
bool continuation_worker<P>::leave(leaving& why) noexcept {
  need_thread_here(*why.where);
  if constexpr (lazy) find_spawns();
  // This thread's frames may leave: [here, where its parent's begin).
  if (detail::hot().pending != nullptr)
    exposure_.encode_pending(here_.region_low, iso ? here_.region_high : detail::hot().bottom[-1].sp);
  detail::hot().in_runtime = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  scheduler_stack_.announce();
  if constexpr (stacks_stay) {
    alignas(64) image_room room;
    why.room = &room.im;
    const std::uintptr_t end = here_.shape.stacks->end_of(reinterpret_cast<std::uintptr_t>(&room));
    if (account_.traced() && why.waits()) account_.waits_at(*why.where, end);
    const bool woken = suspend_in_place(end, suspended_entry, &why) == 0;
    base::happens_after(&room);
    return woken;
  } else {
    if (account_.traced() && why.waits())
      account_.waits_at(*why.where, iso ? here_.region_high : detail::hot().bottom[-1].sp);
    const bool woken = godwit_ctx_suspend(scheduler_stack_.end(), suspended_entry, &why) == 0;
    if constexpr (lazy) detail::hot().in_runtime = 0;  // LZ3
    return woken;
  }
}

template <class P>
[[gnu::always_inline]] inline std::uintptr_t continuation_worker<P>::suspend_in_place(
    std::uintptr_t end, void (*entry)(void*, std::uintptr_t), void* arg) noexcept {
  const std::uintptr_t own = block_at(end)->thread_pointer;
  if (own == 0) [[likely]]
    return godwit_ctx_suspend(scheduler_stack_.end(), entry, arg);
  // the scheduler's allocations and errors are the worker's
  context::set_thread_pointer(thread_pointer_);
  const std::uintptr_t value = godwit_ctx_suspend(scheduler_stack_.end(), entry, arg);
  context::set_thread_pointer(own);
  return value;
}

template <class P>
void continuation_worker<P>::suspended_entry(void* arg, std::uintptr_t sp) {
  const leaving why = *static_cast<leaving*>(arg);  // its home is about to be copied away
  const detail::place where = *why.where;
  if constexpr (takes_turns) static_cast<continuation_worker&>(this_worker()).uses_region(sp);
  static_cast<continuation_worker&>(this_worker()).suspend(sp, why, where);
}

/// On the scheduler stack: the calling thread is saved at @p sp. Does not return. The steps: join.md.
template <class P>
void continuation_worker<P>::suspend(std::uintptr_t sp, const leaving& why,
                                     const detail::place& where) noexcept {
  std::uint64_t span = 0;
  if constexpr (P::spans) span = strand_ends();
  spend(base::step::suspend);
  records_.thread_leaves();
  const parting p = part_from_parent(sp);
  image* im = copy_out(sp, p, why, where);
  im->span_ns = span;
  // before the events: these belong together, and what it writes down must not lie between them
  here_.release_writes();
  note_suspension(*im, sp, p, why, where);
  delay();
  if (p.parent_here) part_segments();  // SE5: before somebody can resume it
  if (!publish(im, p, why)) cancel(im, sp, p);
  ++here_.words->stats.suspends;
  if (p.parent_here) go_on_with_parent(p);
  words_come({});
  next_thread(why.what != nullptr    ? idle_cause::wait
              : why.waiting_for != 0 ? idle_cause::join
                                     : idle_cause::no_work);
}

/// The slots' continuations left this worker since its region was empty. Has anybody written into what is
/// left of their frames?
template <class P>
void continuation_worker<P>::check_left_frames(const spawn_slot* first, const spawn_slot* last) noexcept {
  // iso: the stack of a parent that ended elsewhere may be another thread's by now. lazy: a result is put
  // into the parent's frame, wherever the parent is.
  if (!here_.opts.check_frames || iso || lazy) return;
  for (const spawn_slot* s = first + 1; s <= last; ++s)
    if (s->frame_hash != last_frame_hash(s->sp, stack_end(s->sp, s[-1])))
      ancestors_.lost_write(spawned_at(*s));
  ancestors_.check_came(*first);
}

/// Step 1: the parent goes on in place if it is still here, and then needs a record from now on.
template <class P>
typename continuation_worker<P>::parting continuation_worker<P>::part_from_parent(
    std::uintptr_t sp) noexcept {
  parting p{.slot = detail::hot().bottom - 1};
  spawn_slot* const b = p.slot;
  GODWIT_ASSERT(&deque_.sentinel() <= b, "a thread that suspends has a slot below bottom");
  GODWIT_ASSERT(detail::hot().in_runtime != 0, "the expose signal keeps its hands off meanwhile");
  detail::hot().bottom = b;
  p.top = b->sp;
  p.bytes_end = ancestors_.needed_end(*b, p.top, sp);
  if (b < detail::hot().split) {
    const auto popped = deque_.pop_public(
        b, [&](const spawn_slot* first, const spawn_slot* last) { check_left_frames(first, last); });
    p.parent_here = popped.parent_here;
    GODWIT_ASSERT(p.parent_here || deque_.empty(), "a thread whose parent left is the last of its region");
    if (!p.parent_here) {
      p.own = popped.record;
      carried_.moved_down();
      p.top = popped.top;
    }
  }
  if (p.parent_here) {
    if (b->record == 0) {
      b->record = records_.make_unexposed();
      here_.at<record>(b->record)->spawned_at = spawned_at(*b, lazy);
    }
    p.own = b->record;
    add_strand(*here_.memory, carried_.scope_of(b));  // the thread that leaves
  }
  GODWIT_ASSERT(p.own != 0, "a thread completes a record");
  if (iso && p.bytes_end != p.top) ancestors_.refuse_reference(spawned_at(*b));
  if constexpr (iso) p.top = own_stacks_.top_of(sp);
  if constexpr (stacks_stay) p.top = here_.shape.stacks->end_of(sp);
  if constexpr (own_stack) p.bytes_end = p.top;
  check_own_stack(sp, b->sp);
  return p;
}

/// Step 2.
template <class P>
image* continuation_worker<P>::copy_out(std::uintptr_t sp, const parting& p, const leaving& why,
                                        const detail::place& where) noexcept {
  image* im = new_image(sp, p.top, p.bytes_end, why.room, true);
  im->sp = sp;
  im->own_record = p.own;
  im->fp = im->extra = 0;
  im->waiting_for = im->waited_for = why.waiting_for;
  im->fork = false;
  im->where = where;
  im->parked_at = why.publish != nullptr ? why.what : nullptr;
  im->takes = carried_.now();
  hold_owner(*im);
  return im;
}

template <class P>
void continuation_worker<P>::note_suspension(image& im, std::uintptr_t sp, const parting& p,
                                             const leaving& why, const detail::place& where) noexcept {
  const std::uint64_t now = stalls || account_.traced() ? base::fast_ns() : 0;
  im.suspended_ns = now;
  if (!account_.traced()) return;
  account_.note(kind::suspend, now, p.own, im.waiting_for, 0, p.top - sp, level_of(p.slot + 1),
                p.parent_here);
  if (why.waits()) account_.note_wait(now, why.what, where);
}

/// Step 3. True: from here on the thread is whoever's takes it. False: there is nothing to wait for.
template <class P>
bool continuation_worker<P>::publish(image* im, const parting& p, const leaving& why) noexcept {
  if (why.publish != nullptr) return publish_parked(im, p, why);
  if (why.sends) {
    send_away(im, why, p.parent_here);
    return true;
  }
  const ref me = here_.ref_of_image(im);
  if (why.waiting_for == 0) {
    im->high = false;                    // who yields lets all others go first
    push_ready(me, 0, P::crude_scheme);  // crude takes the newest: who yields must not be that
    return true;
  }
  const record* rec = here_.home<record>(why.waiting_for);
  const worker_no home = ref_worker(why.waiting_for);
  // On another host it has just been looked at (worker::wait): nobody else waits, as a rule.
  std::uint64_t state = state_none;
  if (stalls || here_.is_near(why.waiting_for))
    state = here_.net.remote_load(home, &rec->state, std::memory_order_acquire);
  do {
    if (state == state_done) return false;
    GODWIT_ASSERT(!is_detached(state), "nobody waits for a record that nobody asks for");
    if constexpr (stalls) {
      waiting_.push(im);
      break;
    }
    if (!base::planted("join.next_after_publish")) im->next = state;
    if (base::planted("join.waiter_is_stored")) {
      here_.net.remote_store(home, &rec->state, me, std::memory_order_release);
      break;
    }
  } while (!here_.net.remote_compare_exchange(home, &rec->state, state, me));  // JN2, JN3
  if (base::planted("join.next_after_publish")) {
    base::schedule_point();
    im->next = state;
  }
  ++here_.words->stats.outstanding_joins;
  return true;
}

/// Step 3 of who waits for something else than a record. docs/protocols/park.md
template <class P>
bool continuation_worker<P>::publish_parked(image* im, const parting& p, const leaving& why) noexcept {
  const bool outside = why.by == detail::wakes::outside;
  if (outside) {
    here_.node->idle.fetch_sub(1, std::memory_order_seq_cst);  // ID2, PK3: like a letter
    // The first that waits, and this worker goes on: let another one watch for events.
    if (here_.node->outside.fetch_add(1, std::memory_order_relaxed) == 0 &&
        (p.parent_here || !ready_.empty()))
      idle_.wake_one();
  }
  // PK1: else it may run elsewhere by now
  if (why.publish(why.arg, reinterpret_cast<detail::waiter*>(im))) return true;
  if (outside) {
    here_.node->outside.fetch_sub(1, std::memory_order_relaxed);
    here_.node->idle.fetch_add(1, std::memory_order_seq_cst);
  }
  return false;  // PK1: nobody knows it, so it is still ours
}

/// Undo steps 1 and 2: nobody has seen anything. The thread goes on. Does not return.
template <class P>
void continuation_worker<P>::cancel(image* im, std::uintptr_t sp, const parting& p) noexcept {
  const std::uint64_t span = im->span_ns;
  const ref waited_for = im->waiting_for;
  if (!im->exceptions.empty()) *here_.exceptions.state = im->exceptions;
  if (p.parent_here) rejoin_segments(im->takes.segment);
  if constexpr (stacks_stay)
    block_at(p.top)->suspended = nullptr;
  else
    heap_.free(im);
  if (account_.traced()) account_.note(kind::cancel, base::fast_ns(), p.own);
  here_.acquire_writes();
  if (p.parent_here) {
    detail::hot().bottom = p.slot + 1;
    take_strand_back(*here_.memory, carried_.scope_of(p.slot));
  } else
    ancestors_.came(p.top, p.bytes_end);  // what it completes stands in the sentinel already
  if constexpr (P::spans) strand_begins(std::max(span, waited_for != 0 ? span_of(waited_for) : 0));
  announce_stack(sp);
  detail::hot().in_runtime = 0;
  godwit_ctx_resume_suspended(sp, 1);
  __builtin_unreachable();
}

/// Step 4, if the parent is here: it lies just above.
template <class P>
void continuation_worker<P>::go_on_with_parent(const parting& p) noexcept {
  const spawn_slot parent = *p.slot;
  p.slot->record = 0;  // it went with the thread that left
  carried_.parent_goes_on(p.slot);
  scopes_.changed();
  if constexpr (P::spans) base::fatal("a parent is in place although the crude scheme took it out");
  if constexpr (lazy) {
    auto* const below = reinterpret_cast<std::byte*>(parent.sp - lazy_spawns::bytes_below);
    lazy_spawns::put_below(below, parent, *lazy_site_of(parent), p.own);  // LZ3
    godwit_ctx_resume_suspended(reinterpret_cast<std::uintptr_t>(below), 0);
    __builtin_unreachable();
  }
  announce_stack(parent.sp);
  detail::hot().in_runtime = 0;
  godwit_ctx_resume_fork(parent.sp, parent.fp, parent.extra, p.own);
  __builtin_unreachable();
}

}  // namespace godwit::sched
