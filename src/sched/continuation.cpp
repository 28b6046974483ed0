// See continuation.hpp. Protocols: docs/protocols/deque.md, join.md, park.md; models/deque.pml, join.pml,
// park.pml, hand_over.pml.
#include "sched/continuation.hpp"

#include <algorithm>
#include <cstring>
#include <cxxabi.h>
#include <utility>

#include "base/cpu.hpp"
#include "base/check.hpp"
#include "context/context.hpp"
#include "sched/frames.hpp"
#include "sched/continuation_stacks.hpp"
#include "sched/continuation_turns.hpp"
#include "sched/ready_queue.hpp"
#include "base/world.hpp"

namespace godwit::sched {

using detail::outcome;
using transport::ref_worker;

namespace {

// A clock takes a tenth of a steal: not every one is timed.
constexpr std::uint64_t steals_per_sample = 8;

}  // namespace

template <class P>
void continuation_worker<P>::init(const worker_setup& setup) noexcept {
  worker::init(setup);
  if constexpr (P::crude) force_mode_ = 1;
  if constexpr (P::queued_frees) heap_.use_queue(&words_->free_lock, &words_->free_head);
  if constexpr (iso) {
    shape_.own_stacks = true;
    own_stacks_.init(region_low_, region_high_ - region_low_, workers_, index(me_), thread_stack_bytes);
  }
  if constexpr (in_place) {
    exceptions_ = reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
    watched_ = trace_.on() || opts_.delay_us != 0;
    most_kept_stacks_ = shape_.stacks->most_kept();
    more_stacks();
  }
  // iso: the first spawn is looked at (check_own_stack).
  detail::hot().poll.store(iso || force_mode_ != 0, std::memory_order_relaxed);
}

template <class P>
void continuation_worker<P>::start(void (*root)(void*), void* arg) noexcept {
  if (root != nullptr) {
    const ref r = new_record();
    GODWIT_CHECK(r == root_, "the root thread's record is the first object");
    std::uintptr_t top = region_high_;
    if constexpr (iso) top = own_stacks_.root_top();
    if constexpr (in_place) {
      top = shape_.stacks->root_top();
      context::sanitizer_forget(
          std::max(shape_.stacks->low_of(top), top - (std::uintptr_t{1} << 20)) / 64 * 64,
          shape_.stacks->end_of(top));
    }
    enter_thread(top, top, r);
    if (trace_.on()) note(kind::start, base::fast_ns(), r);
    if constexpr (P::spans) strand_begins(0);
    announce_stack(top - 64);
    detail::hot().in_runtime = 0;
    godwit_ctx_start(reinterpret_cast<void*>(top - 64), root, arg);
  }
  announce_scheduler_stack(0);
  begin_idle(idle_cause::no_work);
  godwit_ctx_start(
      scheduler_stack_, [](void* w) { static_cast<continuation_worker*>(static_cast<worker*>(w))->loop(); },
      static_cast<worker*>(this));
  __builtin_unreachable();
}

template <class P>
void continuation_worker<P>::loop() noexcept {
  for (;;) {
    // The region and the deque are empty here. Count as running before touching any work: a worker that holds
    // a ready queue's lock while it counts as idle would let the others believe that nothing is left. ID1
    if (is_idle_) {
      if (is_to_rest() && !has_events_) {  // MO4
        rest();
        continue;
      }
      if (!sees_work()) {
        wait_for_work();
        continue;
      }
      become_running();
      // not at the next turn: it may count as idle again by then
      if (in_place && has_events_) deliver_events();
    }
    if constexpr (hands_over) turns_ += std::exchange(straight_, 0);
    if (in_place) {  // ID1: collected while idle, perhaps, but delivered while running
      constexpr std::uint32_t turns_between_looks = 64;
      if (has_events_ ||
          ((words_->ready_count.load(std::memory_order_relaxed) == 0 || ++turns_ >= turns_between_looks) &&
           collect_events(0)))
        deliver_events();
    }
    serve_inbox();  // before the own queue: else a thread that only yields would never leave
    serve_mailbox();
    if constexpr (stalls) try_waiting();  // before the own queue, likewise
    if (words_->ready_count.load(std::memory_order_relaxed) != 0) {
      const ref r = P::crude ? pop_newest_of(*seg_, words_, me_, holder()) : pop_ready();
      if (r != 0) resume_image(r);
    }
    if (is_to_rest()) {  // MO4: with an empty queue only
      become_idle();
      continue;
    }
    if (opts_.victims == "uniform") {
      look_at_anybody();
    } else {
      const std::uint32_t count = present(), first = random_.below(count);
      for (std::uint32_t i = 0; i < count; ++i) look_at(worker_no{near_.first + (first + i) % count});
      if (shape_.host_count > 1) look_far();
    }
    if (end_of_round()) become_idle();
  }
}

/// What a worker of this host has to give; nothing if it is this one.
template <class P>
void continuation_worker<P>::look_at(worker_no v) noexcept {
  if (v != me_) {
    try_steal(v);
    if (seg_->at(v, words_)->ready_count.load(std::memory_order_relaxed) != 0) {
      if (const ref r = pop_ready_of(*seg_, words_, v, holder())) resume_image(r);
    }
  }
  if constexpr (stalls) try_waiting();  // one for each failed attempt
}

/// victims=uniform, the papers' rule: one victim, every other worker as likely as any.
template <class P>
void continuation_worker<P>::look_at_anybody() noexcept {
  const std::uint32_t near = present(), others = workers_ - near_.count + near - 1;
  const std::uint32_t pick = others != 0 ? random_.below(others) : 0;
  if (pick >= near - 1 && others != 0 && shape_.host_count > 1)
    look_far();
  else
    look_at(worker_no{near_.first + (index(me_) - near_.first + 1 + pick) % near});
}

template <class P>
void continuation_worker<P>::try_steal(worker_no victim) noexcept {
  GODWIT_ASSERT(!is_idle_ && deque_.empty(), "ID1: who steals counts as running, and its region is empty");
  // Looking is what thieves do most: no clock before there is something to see.
  if (opts_.empty_check) {
    const public_words* theirs = seg_->at(victim, words_);
    if (theirs->top.load(std::memory_order_relaxed) >= theirs->split.load(std::memory_order_relaxed)) {
      ++words_->stats.steals_failed;
      ask_for_work(*seg_, victim);  // it answers at its next spawn
      return;
    }
  }
  loot got{};
  std::uint64_t bytes = 0, copied = 0;
  worker_stats& stats = words_->stats;
  const bool timed = trace_.on() || stats.steals % steals_per_sample == 0;
  const std::uint64_t before = timed ? base::fast_ns() : 0;
  const auto outcome = steal(
      net_, holder(), victim, words_, opts_.empty_check, delay_step,
      [&](const spawn_slot& own, const spawn_slot& above, spawn_slot* place) {
        const std::uint64_t low = own.sp - context::fork_bytes_below;
        const std::uint64_t top = stack_end(own.sp, above);
        const std::uint64_t bytes_end = own_stack ? top : own.bytes_end;
        GODWIT_ASSERT(is_stack(low, top, bytes_end), "a continuation's stack lies where stacks lie");
        GODWIT_ASSERT(above.record != 0, "a continuation completes a record");
        bytes = bytes_end - low;
        if constexpr (in_place) {
          bytes = 0;
        } else {
          if (iso && own.bytes_end != above.sp) refuse_reference(spawned_at(above));
          context::sanitizer_forget(low, bytes_end);
          const std::uint64_t start = timed ? base::fast_ns() : 0;
          const auto copy = [&](std::uint64_t from, std::uint64_t to) {
            net_.remote_get(victim, reinterpret_cast<void*>(from), reinterpret_cast<const void*>(from),
                            to - from);
          };
          if (opts_.check_frames && !iso) {
            spawn_slot* theirs = seg_->at(victim, place);
            constexpr std::uint64_t word = sizeof(std::uintptr_t);
            copy(low, own.sp);
            auto* const frames = reinterpret_cast<std::byte*>(own.sp);
            theirs->frame_hash = copy_frames(frames, seg_->at(victim, frames), top - word - own.sp);  // DQ4
            copy(top - word, bytes_end);
          } else {
            copy(low, bytes_end);
          }
          if (timed) copied = base::fast_ns() - start;
        }
        got = {own.sp,
               own.fp,
               own.extra,
               low,
               top,
               bytes_end,
               above.record,
               own.record,
               is_near(own.record) ? at<record>(own.record)->float_control : base::float_control()};
      });
  if (outcome != steal_outcome::taken) {
    ++stats.steals_failed;
    ask_for_work(*seg_, victim);  // also when there was nothing
    return;
  }
  const std::uint64_t now = base::fast_ns();
  count_progress(stats.steals);
  stats.stolen_bytes += bytes;
  if (timed) {
    ++stats.steals_timed;
    stats.steal_ns += now - before;
    stats.steal_copy_ns += copied;
  }
  end_idle(now);
  if (trace_.on()) note(kind::steal, now, got.own_record, got.status, now - before, bytes, index(victim));
  wake_one();  // where there was one, there may be more
  resume(got, loot_kind::fork);
}

/// Stalling join: look at the thread that has waited longest.
template <class P>
void continuation_worker<P>::try_waiting() noexcept {
  image* im = waiting_.pop();
  if (im == nullptr) return;
  GODWIT_ASSERT(im->waiting_for != 0 && im->parked_at == nullptr,
                "who is looked at in turn waits for a record");
  if (!is_complete(im->waiting_for)) {
    waiting_.push(im);
    return;
  }
  const record* r = is_near(im->waiting_for) ? at<record>(im->waiting_for) : nullptr;
  im->ready_ns = r != nullptr && r->done_ns != 0 ? std::max(r->done_ns, im->suspended_ns) : 0;
  im->waiting_for = 0;
  resume_image(ref_of_image(im));
}

template <class P>
bool continuation_worker<P>::sees_ready_waiter() noexcept {
  return stalls && waiting_.any([&](const image& im) { return is_complete(im.waiting_for); });
}

template <class P>
void continuation_worker<P>::resume_image(ref r) noexcept {
  count_progress(words_->stats.resumes);
  const std::uint64_t before = trace_.on() ? base::fast_ns() : 0;
  const worker_no from = ref_worker(r);
  image copy;
  const image& head = in_place ? *at<image>(r) : copy;  // in place it is gone as soon as its thread runs
  std::uint64_t size = 0;
  if constexpr (in_place) {
    if (head.sp == 0) begin_thread(r - fresh_thread::image_at);
    GODWIT_ASSERT(shape_.stacks->end_of(reinterpret_cast<std::uintptr_t>(&head)) == head.top,
                  "an image lies on the stack of its thread");
    GODWIT_ASSERT(block_at(head.top)->suspended == &head, "who is resumed is suspended");
    block_at(head.top)->suspended = nullptr;
  } else {
    const auto* bytes = home<std::byte>(r) + sizeof(image);
    net_.remote_get(from, static_cast<void*>(&copy), home<image>(r), sizeof copy);
    GODWIT_ASSERT(head.kind == object_kind::image && head.freed.load(std::memory_order_relaxed) == 0,
                  "a thread is resumed from its image, once");
    GODWIT_ASSERT(is_stack(head.low, head.top, head.bytes_end), "a thread's stack lies where stacks lie");
    size = head.bytes_end - head.low;
    GODWIT_ASSERT(iso || heap::room_of(head) >= sizeof(image) + size, "an image holds its stack");
    auto* here = reinterpret_cast<void*>(head.low);
    context::sanitizer_forget(head.low, head.bytes_end);
    if constexpr (!iso) net_.remote_get(from, here, bytes, size);
    if (iso && from != me_) net_.remote_get(from, here, here, size);  // it lies at the same address there
    free_object(r);
  }
  acquire_writes();
  const bool timed = trace_.on() || head.waited_for != 0 || idle_from_ns_ != 0;
  const std::uint64_t now = timed ? base::fast_ns() : 0;
  if (head.waited_for != 0) count_outstanding(head.ready_ns, now);
  end_idle(now);
  if (trace_.on()) note(kind::resume, now, head.own_record, head.waited_for, now - before, size, index(from));
  if constexpr (P::spans) strand_begins(head.span_ns);
  resume({head.sp, head.fp, head.extra, head.low, head.top, own_stack ? head.top : head.bytes_end,
          head.own_record, head.status, head.float_control},
         head.fork ? loot_kind::fork : loot_kind::suspended);
}

template <class P>
void continuation_worker<P>::spawn_point(bool child_may_leave) noexcept {
  detail::hot().poll.store(0, std::memory_order_relaxed);
  // Before looking: what was posted before poll was set again must be seen now, or poll stay set. Else a
  // request (way am) or a letter could wait for as long as nobody else asks.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  check_own_stack(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), detail::hot().bottom[-1].sp);
  serve_inbox();
  serve_mailbox();
  delay();
  if (force_mode_ != 0) {
    detail::hot().poll.store(1, std::memory_order_relaxed);
    force(child_may_leave && (force_mode_ == 2 || (force_mode_ == 3 && (random_.next() >> 40 & 1) != 0)));
    return;
  }
  spawn_slot* end = deque_.next_split();
  if (end == detail::hot().split) return;
  const section inside;  // from here on: a half-encoded frame must not become public by signal
  if (detail::hot().pending != nullptr) encode_pending(iso ? region_low_ : end[-1].sp, region_high_);
  end = deque_.next_split();
  if (end == detail::hot().split) return;  // the signal was faster
  expose(end, base::float_control(), false);
  wake_one();
}

template <class P>
image* continuation_worker<P>::new_image(std::uint64_t low, std::uint64_t top, std::uint64_t bytes_end,
                                         image* room) noexcept {
  const std::uint64_t bytes = own_stack ? 0 : bytes_end - low;  // else they stay where they are
  GODWIT_ASSERT(is_stack(low, top, bytes_end), "a thread's stack lies where stacks lie");
  image* im = room;
  if constexpr (in_place) {
    GODWIT_ASSERT(shape_.stacks->end_of(reinterpret_cast<std::uintptr_t>(room)) == top,
                  "an image lies on the stack of its thread");
    GODWIT_ASSERT(block_at(top)->suspended == nullptr, "a thread is suspended once");
    block_at(top)->suspended = im;
  } else
    im = static_cast<image*>(heap_.allocate(object_kind::image, sizeof(image) + bytes));
  im->low = low;
  im->top = top;
  im->bytes_end = bytes_end;
  im->float_control = base::float_control();
  im->ready_ns = 0;
  im->suspended_ns = 0;
  im->span_ns = 0;
  im->waited_for = 0;
  if constexpr (!in_place) context::sanitizer_forget(low, bytes_end);
  if constexpr (!own_stack) std::memcpy(im->bytes(), reinterpret_cast<const void*>(low), bytes);
  words_->stats.evacuated_bytes += bytes;
  return im;
}

/// Called at the start of a child by the forced-steal modes, and always by the crude scheme.
/// parents: every queued continuation goes to the ready queue, as if stolen. children: the child itself does,
/// and its parent goes on at once, so that every join is outstanding.
template <class P>
void continuation_worker<P>::force(bool children) noexcept {
  if (children) {
    yield_thread();
    return;
  }
  const section inside;
  GODWIT_ASSERT(!is_idle_, "ID1: a worker that runs a thread counts as running");
  std::uint64_t span = 0;
  if constexpr (P::spans) span = strand_ends();  // of the parent
  if (P::crude && detail::hot().spawns == 0) ++words_->stats.spawns;
  encode_pending(region_low_, region_high_);
  if (detail::hot().bottom > detail::hot().split) expose(detail::hot().bottom, base::float_control(), false);
  for (;;) {
    ref r = 0;
    const bool found = deque_.take_own([&](spawn_slot& own, const spawn_slot& above) {
      // In place: below its frames, where nothing is: its child has a stack of its own.
      auto* room =
          reinterpret_cast<image*>((own.sp - context::fork_bytes_below - 256 - sizeof(image)) / 64 * 64);
      if constexpr (in_place)
        context::sanitizer_forget(reinterpret_cast<std::uintptr_t>(room), own.sp - context::fork_bytes_below);
      const std::uint64_t top = stack_end(own.sp, above);
      if (iso && own.bytes_end != above.sp) refuse_reference(spawned_at(above));
      image* im = new_image(own.sp - context::fork_bytes_below, top, own_stack ? top : own.bytes_end, room);
      im->sp = own.sp;
      im->fp = own.fp;
      im->extra = own.extra;
      im->own_record = above.record;
      im->status = own.record;
      im->waiting_for = 0;
      im->fork = true;
      im->where = {};
      im->parked_at = nullptr;
      im->span_ns = span;
      if (opts_.check_frames && !iso) own.frame_hash = frame_hash(own.sp, top);
      r = ref_of_image(im);
      if (trace_.on()) {  // from here on the child is the bottom thread
        const std::uint64_t now = base::fast_ns();
        note(kind::suspend, now, above.record, 0, 0, im->top - im->low);
        note(kind::task, now, own.record, 0, 0, 0, index(me_));
      }
    });
    if (!found) break;
    push_ready(r, 0);
    ++words_->stats.suspends;
  }
  if constexpr (P::spans) strand_begins(span);  // of the child
}

/// The slots' continuations left this worker since its region was empty. Has anybody written into what is
/// left of their frames?
template <class P>
void continuation_worker<P>::check_left_frames(const spawn_slot* first, const spawn_slot* last) noexcept {
  // iso: the stack of a parent that ended elsewhere may be another thread's by now.
  if (!opts_.check_frames || iso) return;
  for (const spawn_slot* s = first + 1; s <= last; ++s)
    if (s->frame_hash != last_frame_hash(s->sp, stack_end(s->sp, s[-1]))) lost_write(spawned_at(*s));
  check_came_frames(*first);
}

template <class P>
ref continuation_worker<P>::pop_public(spawn_slot* b) noexcept {
  const section inside;
  const auto popped = deque_.pop_public(
      b, [&](const spawn_slot* first, const spawn_slot* last) { check_left_frames(first, last); });
  return popped.parent_here ? 0 : popped.record;
}

template <class P>
void continuation_worker<P>::block(ref r, const detail::place& where) noexcept {
  leaving why{.self = this, .waiting_for = r, .where = &where};
  leave(why);
}

template <class P>
bool continuation_worker<P>::park(detail::publish_fn* publish, void* arg, detail::wakes by, const char* what,
                                  const detail::place& where) noexcept {
  if constexpr (!in_place) return worker::park(publish, arg, by, what, where);
  leaving why{.self = this, .where = &where, .publish = publish, .arg = arg, .by = by, .what = what};
  return leave(why);
}

/// Suspend the calling thread. False: there was nothing to wait for. Afterwards `this` may be another worker
/// than the caller's.
template <class P>
bool continuation_worker<P>::leave(leaving& why) noexcept {
  // This thread's frames may leave: [here, where its parent's begin).
  if (detail::hot().pending != nullptr)
    encode_pending(region_low_, iso ? region_high_ : detail::hot().bottom[-1].sp);
  detail::hot().in_runtime = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  announce_scheduler_stack(0);
  if constexpr (in_place) {
    alignas(64) image room;
    why.room = &room;
    if (const std::uintptr_t own =
            block_at(shape_.stacks->end_of(reinterpret_cast<std::uintptr_t>(&room)))->thread_pointer;
        own != 0) [[unlikely]] {
      // the scheduler's allocations and errors are the worker's
      context::set_thread_pointer(thread_pointer_);
      const bool published = godwit_ctx_suspend(scheduler_stack_, suspended_entry, &why) == 0;
      context::set_thread_pointer(own);
      return published;
    }
    const exception_state before = *exceptions_;
    const std::uintptr_t cancelled = godwit_ctx_suspend(scheduler_stack_, suspended_entry, &why);
    *static_cast<continuation_worker&>(this_worker()).exceptions_ = before;  // possibly another OS thread
    return cancelled == 0;
  } else {
    return godwit_ctx_suspend(scheduler_stack_, suspended_entry, &why) == 0;
  }
}

template <class P>
void continuation_worker<P>::suspended_entry(void* arg, std::uintptr_t sp) {
  const leaving why = *static_cast<leaving*>(arg);  // its home is about to be copied away
  const detail::place where = *why.where;
  static_cast<continuation_worker*>(why.self)->suspend(sp, why, where);
}

/// On the scheduler stack: the calling thread is saved at @p sp. Does not return.
template <class P>
void continuation_worker<P>::suspend(std::uintptr_t sp, const leaving& why,
                                     const detail::place& where) noexcept {
  const ref waiting_for = why.waiting_for;
  std::uint64_t span = 0;
  if constexpr (P::spans) span = strand_ends();
  // 1. Part from the parent. It goes on in place if it is still here, and then needs a record from now on.
  spawn_slot* b = detail::hot().bottom - 1;
  GODWIT_ASSERT(&deque_.sentinel() <= b, "a thread that suspends has a slot below bottom");
  GODWIT_ASSERT(detail::hot().in_runtime != 0, "the expose signal keeps its hands off meanwhile");
  detail::hot().bottom = b;
  bool parent_here = true;
  std::uint64_t top = b->sp;
  std::uint64_t bytes_end = needed_end(*b, top);
  ref own = 0;
  if (b < detail::hot().split) {
    const auto popped = deque_.pop_public(
        b, [&](const spawn_slot* first, const spawn_slot* last) { check_left_frames(first, last); });
    parent_here = popped.parent_here;
    GODWIT_ASSERT(parent_here || deque_.empty(), "a thread whose parent left is the last of its region");
    if (!parent_here) {
      own = popped.record;
      top = popped.top;
    }
  }
  if (parent_here) {
    if (b->record == 0) {
      b->record = new_record();
      at<record>(b->record)->spawned_at = spawned_at(*b);
    }
    own = b->record;
  }
  GODWIT_ASSERT(own != 0, "a thread completes a record");
  if (iso && bytes_end != top) refuse_reference(spawned_at(*b));
  if constexpr (iso) top = own_stacks_.top_of(sp);
  if constexpr (in_place) top = shape_.stacks->end_of(sp);
  if constexpr (own_stack) bytes_end = top;

  check_own_stack(sp, b->sp);

  // 2. Copy out.
  image* im = new_image(sp, top, bytes_end, why.room);
  im->sp = sp;
  im->own_record = own;
  im->waiting_for = waiting_for;
  im->waited_for = waiting_for;
  im->fork = false;
  im->where = where;
  im->parked_at = why.what;
  im->span_ns = span;
  const ref me = ref_of_image(im);
  // before the events: these belong together, and what it writes down must not lie between them
  release_writes();
  const std::uint64_t now = stalls || trace_.on() ? base::fast_ns() : 0;
  im->suspended_ns = now;
  if (trace_.on()) {
    note(kind::suspend, now, own, waiting_for, 0, top - sp, 0, parent_here);
    if (waiting_for != 0) note_place(now, where);
  }

  // 3. Publish -- or find that there is nothing to wait for any more.
  delay();
  // Undo step 1: nobody has seen anything.
  const auto cancel = [&] {
    if constexpr (in_place)
      block_at(top)->suspended = nullptr;
    else
      heap_.free(im);
    if (trace_.on()) note(kind::cancel, base::fast_ns(), own);
    acquire_writes();
    if (parent_here)
      detail::hot().bottom = b + 1;
    else
      frames_came(top, bytes_end);  // the sentinel describes this thread already
    if constexpr (P::spans) strand_begins(std::max(span, waiting_for != 0 ? span_of(waiting_for) : 0));
    announce_stack(sp);
    detail::hot().in_runtime = 0;
    godwit_ctx_resume_suspended(sp, 1);
    __builtin_unreachable();
  };
  if (why.publish != nullptr) {
    const bool outside = why.by == detail::wakes::outside;
    if (outside) {
      node_->idle.fetch_sub(1, std::memory_order_seq_cst);  // ID2, PK3: like a letter
      // The first that waits, and this worker goes on: let another one watch for events.
      if (node_->outside.fetch_add(1, std::memory_order_relaxed) == 0 &&
          (parent_here || words_->ready_count.load(std::memory_order_relaxed) != 0))
        wake_one();
    }
    // PK1: else it may run elsewhere by now
    if (!why.publish(why.arg, reinterpret_cast<detail::waiter*>(im))) {
      if (outside) {
        node_->outside.fetch_sub(1, std::memory_order_relaxed);
        node_->idle.fetch_add(1, std::memory_order_seq_cst);
      }
      cancel();  // PK1: nobody knows it, so it is still ours
    }
  } else if (waiting_for == 0) {
    push_ready(me, 0, P::crude);  // crude takes the newest: who yields must not be that
  } else {
    const record* rec = home<record>(waiting_for);
    const worker_no home_of_record = ref_worker(waiting_for);
    std::uint64_t state = net_.remote_load(home_of_record, &rec->state, std::memory_order_acquire);
    for (;;) {
      if (state == state_done) cancel();
      GODWIT_ASSERT(state != state_detached, "nobody waits for a record that nobody asks for");
      if constexpr (stalls) {
        waiting_.push(im);
        break;
      }
      im->next = state;
      if (net_.remote_compare_exchange(home_of_record, &rec->state, state, me)) break;  // JN2, JN3
    }
    ++words_->stats.outstanding_joins;
  }
  ++words_->stats.suspends;

  // 4. Go on with the parent, which lies just above, or look for something else.
  if (parent_here) {
    const spawn_slot parent = *b;
    b->record = 0;  // it went with the thread that left
    if constexpr (P::spans) base::fatal("a parent is in place although the crude scheme took it out");
    announce_stack(parent.sp);
    detail::hot().in_runtime = 0;
    godwit_ctx_resume_fork(parent.sp, parent.fp, parent.extra, own);
    __builtin_unreachable();
  }
  next_thread(waiting_for != 0 ? idle_cause::join : idle_cause::no_work);
}

template <class P>
void continuation_worker<P>::complete(ref r) noexcept {
  GODWIT_ASSERT(r != 0, "a thread completes a record");
  GODWIT_ASSERT(deque_.empty(), "a thread whose parent left is the last of its region");
  detail::hot().in_runtime = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if constexpr (P::spans) {
    const std::uint64_t span = strand_ends();
    words_->stats.span_ns = std::max(words_->stats.span_ns, span);
    if (is_near(r)) this->template at<record>(r)->span_ns = span;
  }
  if (r != root_) check_own_stack(here, deque_.sentinel().sp);
  announce_scheduler_stack(here, iso ? own_stacks_.top_of(here) : in_place ? shape_.stacks->end_of(here) : 0);
  if constexpr (own_stack) ended_sp_ = here;
  godwit_ctx_start(scheduler_stack_, completed_entry, reinterpret_cast<void*>(r));
  __builtin_unreachable();
}

template <class P>
void continuation_worker<P>::completed_entry(void* arg) {
  auto& w = static_cast<continuation_worker&>(this_worker());
  const auto r = reinterpret_cast<ref>(arg);
  bool began_later = false;
  if constexpr (own_stack) began_later = w.end_own_stack(w.ended_sp_);
  w.release_writes();
  w.delay();
  std::uint64_t now = hands_over && !w.trace_.on() ? 0 : base::fast_ns();
  if (r == w.root_) {
    if (w.trace_.on()) w.note(kind::end, now, r);
    w.net_.remote_store(worker_no{0}, &w.template home<record>(r)->state, state_done,
                        std::memory_order_release);
    // IN5: there before we are idle
    static_cast<void>(w.net_.remote_exchange(worker_no{0}, &w.job_->root_done, 1));
    w.begin_idle(idle_cause::no_work);
    w.loop();
  }
  if (now != 0) w.stamp_done(r, now);
  std::uint64_t waiting = w.exchange_state(r, state_done);  // JN1
  GODWIT_ASSERT(waiting != state_done, "a record is completed once");
  const bool follows = waiting > state_detached;
  if (w.trace_.on()) w.note(kind::end, now, r, 0, 0, 0, 0, follows);
  if (!follows) {
    if (waiting == state_detached) {
      if (const detail::payload p = w.payload_of(r); p.kind == outcome::error) w.hooks_.unseen_error(p);
      w.free_record(r);
    }
    w.next_thread(idle_cause::no_work);
  }
  if (now == 0) now = base::fast_ns();
  // Greedy: we came second, so the continuation of the join is ours. Any other waiters queue.
  ref next = w.next_waiter(waiting);
  w.mark_ready(waiting, r, now);
  while (next > state_detached) {
    const ref after = w.next_waiter(next);
    w.mark_ready(next, r, now);
    w.push_ready(next, now);
    next = after;
  }
  // A thread that was created later is one of many, as a rule: whoever joins them one by one finds the rest
  // done if it comes last.
  if (hands_over && began_later && w.words_->ready_count.load(std::memory_order_relaxed) != 0) {
    w.push_ready(waiting, now);
    w.next_thread(idle_cause::no_work);
  }
  w.resume_image(waiting);
}

/// Between the exchange that made the waiter ours and its resumption.
template <class P>
void continuation_worker<P>::mark_ready(ref waiter, ref completed, std::uint64_t now) noexcept {
  if (!is_near(waiter)) return;
  image* im = at<image>(waiter);
  GODWIT_ASSERT(im->waited_for == completed, "who waits in a record's list waits for it");
  im->ready_ns = now;
  if constexpr (P::spans) im->span_ns = std::max(im->span_ns, span_of(completed));
}

/// Policy locked_free: lock, read the head, link in front of it, unlock (003, III-B: four round trips).
template <class P>
void continuation_worker<P>::free_far(ref r) noexcept {
  if constexpr (!P::queued_frees) {
    worker::free_far(r);
  } else {
    const worker_no owner = ref_worker(r);
    GODWIT_ASSERT(owner != me_, "the owner's objects do not go through the queue");
    for (base::spin_wait w;; w.turn()) {
      std::uint64_t nobody = 0;
      if (net_.remote_compare_exchange(owner, &words_->free_lock, nobody, holder())) break;
    }
    const std::uint64_t head = net_.remote_load(owner, &words_->free_head, std::memory_order_relaxed);
    net_.remote_store(owner, &home<object>(r)->freed, head != 0 ? head : 1, std::memory_order_relaxed);
    net_.remote_store(owner, &words_->free_head, r, std::memory_order_relaxed);
    net_.remote_store(owner, &words_->free_lock, 0, std::memory_order_release);
  }
}

template <class P>
std::uint64_t continuation_worker<P>::span_of(ref r) const noexcept {
  return is_near(r) ? at<record>(r)->span_ns : 0;
}

template <class P>
void continuation_worker<P>::strand_begins(std::uint64_t span) noexcept {
  span_ns_ = span;
  strand_from_ns_ = base::fast_ns();
}

template <class P>
std::uint64_t continuation_worker<P>::strand_ends() noexcept {
  const std::uint64_t time = base::fast_ns() - strand_from_ns_;
  words_->stats.work_ns += time;
  return span_ns_ + time;
}

template <class P>
void continuation_worker<P>::joined(ref r) noexcept {
  if constexpr (P::spans) strand_begins(std::max(strand_ends(), span_of(r)));
}

template class continuation_worker<greedy>;
template class continuation_worker<stalling>;
template class continuation_worker<locked_free>;
template class continuation_worker<stalling_locked_free>;
template class continuation_worker<crude>;
template class continuation_worker<span_meter>;
template class continuation_worker<iso>;
template class continuation_worker<greedy_in_place>;
template class continuation_worker<stalling_in_place>;
template class continuation_worker<locked_free_in_place>;
template class continuation_worker<stalling_locked_free_in_place>;
template class continuation_worker<crude_in_place>;
template class continuation_worker<span_meter_in_place>;

}  // namespace godwit::sched
