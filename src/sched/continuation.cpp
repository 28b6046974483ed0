// See continuation.hpp. Protocols: docs/protocols/deque.md, join.md, park.md; models/deque.pml, join.pml,
// park.pml, hand_over.pml.
#include "sched/continuation.hpp"

#include <algorithm>

#include "sched/continuation_arrive.hpp"
#include "sched/continuation_lazy.hpp"
#include "sched/continuation_span.hpp"
#include "sched/continuation_spawn.hpp"
#include "sched/continuation_stacks.hpp"
#include "sched/continuation_stay.hpp"
#include "sched/continuation_suspend.hpp"
#include "sched/continuation_turns.hpp"
#include "sched/continuation_unbegun.hpp"

namespace godwit::sched {

namespace {

// A clock takes a tenth of a steal: not every one is timed.
constexpr std::uint64_t steals_per_sample = 8;

}  // namespace

template <class P>
void continuation_worker<P>::init(const worker_setup& setup) noexcept {
  worker::init(setup);
  if constexpr (P::crude_scheme) here_.forced = choice::force_steal::parents;
  if constexpr (stalls) idle_.poll(waiting_);
  if constexpr (P::queued_frees) {
    heap_.use_queue(&here_.words->free_lock, &here_.words->free_head, here_.lock_turn);
    // Who waits for the lock in a heap that is full has to serve, which must not be done in a signal handler,
    // and that makes objects. (All workers of all hosts do this: nobody interrupts anybody.)
    if (here_.shape.serves_itself) here_.opts.expose_signal = false;
  }
  if constexpr (iso) {
    here_.shape.own_stacks = true;
    own_stacks_.init(here_.region_low, here_.region_high - here_.region_low, here_.workers, index(here_.me),
                     thread_stack_bytes);
    own_stacks_.keep_marks_at(here_.memory->at(here_.me, own_stacks_.own_marks()));
  }
  if constexpr (stacks_stay) {
    watched_ = account_.traced() || here_.opts.delay_us != 0;
    most_kept_stacks_ = here_.shape.stacks->most_kept();
    more_stacks();
  }
  if constexpr (lazy) {
    here_.shape.lazy_spawns = true;
    const auto& l = here_.memory->where();
    lazy_spawns_.init(reinterpret_cast<spawn_slot*>(here_.memory->common() + l.slots), l.slots_bytes);
  }
  // iso: the first spawn is looked at (check_own_stack). lazy: all that are of another policy. Way am: a
  // request may have been posted already, whose note this would erase.
  const bool asked = iso || lazy || here_.shape.serves_itself || here_.forced != choice::force_steal::none;
  detail::hot().poll.store(asked ? 1 : poll_unasked(), std::memory_order_relaxed);
}

template <class P>
void continuation_worker<P>::start(void (*root)(void*), void* arg) noexcept {
  if (root != nullptr) {
    const ref r = records_.make();
    GODWIT_CHECK(r == here_.root, "the root thread's record is the first object");
    std::uintptr_t top = here_.region_high, end = top;
    if constexpr (iso) top = end = own_stacks_.root_top();
    if constexpr (stacks_stay) {
      top = here_.shape.stacks->root_top();
      end = here_.shape.stacks->end_of(top);
      context::sanitizer_forget(
          std::max(here_.shape.stacks->low_of(top), top - (std::uintptr_t{1} << 20)) / 64 * 64, end);
    }
    enter_thread(end, end, r, {});
    if (account_.traced()) account_.note(kind::start, base::fast_ns(), r);
    if constexpr (P::spans) strand_begins(0);
    announce_stack(top - 64);
    detail::hot().in_runtime = 0;
    godwit_ctx_start(reinterpret_cast<void*>(top - 64), root, arg);
  }
  enter_loop();
}

template <class P>
void continuation_worker<P>::loop() noexcept {
  for (;;) {
    uses_region(here_.region_high);
    catch_up();  // others may be faster to take what this worker has just made ready
    // The region and the deque are empty here. Count as running before touching any work: a worker that holds
    // a ready queue's lock while it counts as idle would let the others believe that nothing is left. ID1
    if (idle_.is_idle()) {
      if (idle_.is_to_rest() && !events_.pending()) {  // MO4
        idle_.rest();
        continue;
      }
      if (!idle_.sees_work()) {
        idle_.wait_for_work();
        continue;
      }
      idle_.become_running();
      // not at the next turn: it may count as idle again by then
      if (can_park && events_.pending()) events_.deliver();
    }
    if constexpr (hands_over) events_.count_turns(std::exchange(straight_, 0));
    deliver_events();
    inbox_.serve();  // before the own queue: else a thread that only yields would never leave
    serve_mailbox();
    if constexpr (stalls) try_waiting();  // before the own queue, likewise
    if (const ref r = arrivals_.pop()) resume_image(r);
    GODWIT_ASSERT(!idle_.is_idle(), "ID1: only a worker that counts as running takes threads");
    if (std::exchange(looks_first_, false)) look_at_others();
    if (!ready_.empty()) {
      const ref r = P::crude_scheme ? ready_.pop_newest() : ready_.pop();
      if (r != 0) resume_image(r);
    }
    GODWIT_ASSERT(deque_.empty(), "ID1: the deque of an idle worker is empty");
    if (idle_.is_to_rest()) {  // MO4: with an empty queue only
      idle_.become_idle();
      continue;
    }
    look_at_others();
    if (idle_.end_of_round()) {
      records_.send_releases();
      heap_.rest();
      idle_.become_idle();
      if (idle_.is_idle()) work_on({});  // PA5: what has come with its part is in use until it begins
    }
  }
}

/// ID1: collected while idle, perhaps, but delivered while running.
template <class P>
void continuation_worker<P>::deliver_events() noexcept {
  if constexpr (!can_park) return;
  GODWIT_ASSERT(!idle_.is_idle(), "ID1: only a worker that counts as running makes threads ready");
  if (events_.pending() || ((ready_.empty() || events_.is_due()) && events_.collect(0))) events_.deliver();
}

template <class P>
void continuation_worker<P>::look_at_others() noexcept {
  if (here_.uniform)
    look_at_anybody();
  else
    look_at_all();
}

/// victims=near: some workers of this host, then another host.
template <class P>
void continuation_worker<P>::look_at_all() noexcept {
  const std::uint32_t count = idle_.present(), first = random_.below(count);
  for (std::uint32_t i = 0; i < std::min(count, idleness::looks_in_round); ++i)
    look_at(worker_no{here_.near.first + (first + i) % count});
  if (here_.one_host()) return;
  // Who has asked for memory of another host has its answer sooner than a thread from there.
  if (here_.serve_others())
    base::give_way();
  else
    look_far();
}

/// What a worker of this host has to give; nothing if it is this one.
template <class P>
void continuation_worker<P>::look_at(worker_no v) noexcept {
  if (v != here_.me) {
    spend(base::step::look);
    try_steal(v);
    ready_queue theirs(*here_.memory, *here_.words_of(v), here_.holder());
    if (!theirs.empty())
      if (const ref r = theirs.pop()) resume_image(r);
  }
  if constexpr (stalls) try_waiting();  // one for each failed attempt
}

/// victims=uniform, the papers' rule: one victim, every other worker as likely as any, unless a look while
/// idle has found one with work.
template <class P>
void continuation_worker<P>::look_at_anybody() noexcept {
  if (far_.has_seen_work()) return look_far();
  const std::uint32_t near = idle_.present(), others = here_.workers - here_.near.count + near - 1;
  const std::uint32_t pick = others != 0 ? random_.below(others) : 0;
  if (pick >= near - 1 && others != 0 && !here_.one_host())
    look_far();
  else
    look_at(worker_no{here_.near.first + (index(here_.me) - here_.near.first + 1 + pick) % near});
}

template <class P>
void continuation_worker<P>::look_far() noexcept {
  GODWIT_ASSERT(!idle_.is_idle() && deque_.empty(),
                "IN5: who steals counts as running, and its region is empty");
  const far_catch got = far_.look();
  if (got.is_thread()) resume_caught(got);
}

/// Under the victim's lock: what the thief gets, and the stack's bytes into their place.
template <class P>
loot continuation_worker<P>::take_continuation(worker_no victim, const spawn_slot& own,
                                               const spawn_slot& above, spawn_slot* place) noexcept {
  const std::uint64_t low = own.sp - bytes_below;
  const std::uint64_t top = stack_end(own.sp, above);
  const std::uint64_t bytes_end = own_stack ? top : own.bytes_end;
  GODWIT_ASSERT(here_.is_stack(low, top, bytes_end), "a continuation's stack lies where stacks lie");
  GODWIT_ASSERT(above.record != 0, "a continuation completes a record");
  if constexpr (!stacks_stay) {
    if (iso && own.bytes_end != above.sp) ancestors_.refuse_reference(spawned_at(above));
    context::sanitizer_forget(low, bytes_end);
    uses_region(low);
    const auto copy = [&](std::uint64_t from, std::uint64_t to) {
      if constexpr (!one_memory)
        here_.net.remote_get(victim, reinterpret_cast<void*>(from), reinterpret_cast<const void*>(from),
                             to - from);
    };
    if constexpr (lazy) {
      copy(own.sp, bytes_end);
      lazy_spawns::put_below(reinterpret_cast<std::byte*>(low), own,
                             *here_.memory->at(victim, lazy_site_of(own)), own.record);
    } else if (here_.opts.check_frames && !iso) {
      constexpr std::uint64_t word = sizeof(std::uintptr_t);
      copy(low, own.sp);
      auto* const frames = reinterpret_cast<std::byte*>(own.sp);
      here_.memory->at(victim, place)->frame_hash =
          copy_frames(frames, here_.memory->at(victim, frames), top - word - own.sp);  // DQ4
      copy(top - word, bytes_end);
    } else {
      copy(low, bytes_end);
    }
  }
  return {lazy ? low : own.sp,
          own.fp,
          own.extra,
          low,
          top,
          bytes_end,
          above.record,
          own.record,
          own.float_control,
          leaves_deque(carried_along(*here_.memory, *here_.words_of(victim), own))};
}

template <class P>
void continuation_worker<P>::try_steal(worker_no victim) noexcept {
  GODWIT_ASSERT(!idle_.is_idle() && deque_.empty(),
                "ID1: who steals counts as running, and its region is empty");
  worker_stats& stats = here_.words->stats;
  const auto in_vain = [&] {
    ++stats.steals_failed;
    ask_for_work(*here_.memory, victim);  // it answers at its next spawn
  };
  // Looking is what thieves do most: no clock before there is something to see.
  if (here_.opts.empty_check && !here_.words_of(victim)->shares_work()) return in_vain();
  loot got{};
  std::uint64_t copied = 0, level = 0;
  const bool timed = account_.traced() || stats.steals % steals_per_sample == 0;
  const std::uint64_t before = timed ? base::fast_ns() : 0;
  const auto outcome =
      steal(here_.net, here_.holder(), victim, here_.words, here_.opts.empty_check, delay_step,
            [&](const spawn_slot& own, const spawn_slot& above, spawn_slot* place, ref) {
              const bool clock = timed && !stacks_stay;
              const std::uint64_t start = clock ? base::fast_ns() : 0;
              got = take_continuation(victim, own, above, place);
              level = level_of(place);
              if (clock) copied = base::fast_ns() - start;
              return true;
            });
  if (outcome != steal_outcome::taken) return in_vain();
  spend(base::step::steal);
  const std::uint64_t now = base::fast_ns(), bytes = stacks_stay ? 0 : got.bytes_end - got.low;
  count_progress(stats.steals);
  stats.stolen_bytes += bytes;
  if (timed) {
    ++stats.steals_timed;
    stats.steal_ns += now - before;
    stats.steal_copy_ns += copied;
  }
  account_.end_idle(now);
  if (account_.traced())
    account_.note(kind::steal, now, got.own_record, got.status, now - before, bytes, index(victim), level);
  idle_.wake_one();  // where there was one, there may be more
  resume(got, lazy ? loot_kind::suspended : loot_kind::fork,
         here_.one_host() ? data_part{} : here_.words_of(victim)->data());
}

/// Stalling join: look at the thread that has waited longest.
template <class P>
void continuation_worker<P>::try_waiting() noexcept {
  image* im = waiting_.pop();
  if (im == nullptr) return;
  GODWIT_ASSERT(im->waiting_for != 0 && im->parked_at == nullptr,
                "who is looked at in turn waits for a record");
  if (!records_.is_complete(im->waiting_for)) {
    waiting_.push(im);
    return;
  }
  im->ready_ns = records_.ready_since(im->waiting_for, im->suspended_ns);
  im->waiting_for = 0;
  resume_image(here_.ref_of_image(im));
}

/// What hand_over has left out.
inline void complete_yielded(image& im) noexcept {
  im.low = im.sp;
  im.fp = im.extra = im.status = 0;
  im.exceptions = {};
  im.takes = {};
}

/// Comes back only if the thread had not begun, and was sent on.
template <class P>
void continuation_worker<P>::resume_image(ref r) noexcept {
  count_progress(here_.words->stats.resumes);
  const std::uint64_t before = account_.traced() ? base::fast_ns() : 0;
  GODWIT_ASSERT(here_.is_near(r), "threads of other hosts are brought first");
  const worker_no from = ref_worker(r);
  image copy;
  image& head =
      stacks_stay ? *here_.at<image>(r) : copy;  // where stacks stay it is gone as soon as its thread runs
  if constexpr (stacks_stay) {
    if (head.sp == 0) begin_thread(r - fresh_thread::image_at);
    if (head.sp == not_begun) return begin_parcel(r);
    if (hands_over && head.yielded) complete_yielded(head);
    GODWIT_ASSERT(here_.shape.stacks->end_of(reinterpret_cast<std::uintptr_t>(&head)) == head.top,
                  "an image lies on the stack of its thread");
    GODWIT_ASSERT(block_at(head.top)->suspended == &head, "who is resumed is suspended");
    block_at(head.top)->suspended = nullptr;
  } else {
    const auto* bytes = here_.home<std::byte>(r) + sizeof(image);
    base::settle();  // its words are read as bytes, and this worker may have written them last
    here_.net.remote_get(from, static_cast<void*>(&copy), here_.home<image>(r), sizeof copy);
    GODWIT_ASSERT(head.kind == object_kind::image && head.freed.load(std::memory_order_relaxed) == 0,
                  "a thread is resumed from its image, once");
    if (head.sp == not_begun) return begin_parcel(r);
    GODWIT_ASSERT(here_.is_stack(head.low, head.top, head.bytes_end),
                  "a thread's stack lies where stacks lie");
    const std::uint64_t size = head.bytes_end - head.low;
    GODWIT_ASSERT(iso || heap::room_of(head) >= sizeof(image) + size, "an image holds its stack");
    auto* here = reinterpret_cast<void*>(head.low);
    context::sanitizer_forget(head.low, head.bytes_end);
    uses_region(head.low);
    if constexpr (!iso) here_.net.remote_get(from, here, bytes, size);
    if (iso && !one_memory && from != here_.me)
      here_.net.remote_get(from, here, here, size);  // it lies at the same address there
    records_.free(r);
    if (head.owner && head.wanted) note_stay(head);
  }
  run_image(head, from, before);
}

/// Its stack is in its place.
template <class P>
void continuation_worker<P>::run_image(const image& head, worker_no from, std::uint64_t since) noexcept {
  spend(base::step::resume);
  here_.acquire_writes();
  const bool timed = account_.traced() || head.waited_for != 0 || account_.is_idle();
  const std::uint64_t now = timed ? base::fast_ns() : 0;
  if (head.waited_for != 0) account_.count_outstanding(head.ready_ns, now);
  account_.end_idle(now);
  if (account_.traced())
    account_.note(kind::resume, now, head.own_record, head.waited_for, now - since,
                  stacks_stay ? 0 : head.bytes_end - head.low, index(from));
  if constexpr (P::spans) strand_begins(head.span_ns);
  GODWIT_ASSERT(here_.exceptions.state->empty(), "EX1: who has left took its exceptions along");
  if (!head.exceptions.empty()) [[unlikely]] {
    *here_.exceptions.state = head.exceptions;
    context::look_at_spawns();
  }
  resume({head.sp, head.fp, head.extra, head.low, head.top, own_stack ? head.top : head.bytes_end,
          head.own_record, head.status, head.float_control, head.takes},
         head.fork ? loot_kind::fork : loot_kind::suspended, head.data);
}

template <class P>
void continuation_worker<P>::complete(ref r) noexcept {
  GODWIT_ASSERT(r != 0, "a thread completes a record");
  GODWIT_ASSERT(deque_.empty(), "a thread whose parent left is the last of its region");
  end_segment();
  detail::hot().in_runtime = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if constexpr (P::spans) {
    span_ns_ = strand_ends();
    here_.words->stats.span_ns = std::max(here_.words->stats.span_ns, span_ns_);
    records_.put_span(r, span_ns_);
  }
  if (r != here_.root) check_own_stack(here, deque_.sentinel().sp);
  scheduler_stack_.announce(here, iso           ? own_stacks_.top_of(here)
                                  : stacks_stay ? here_.shape.stacks->end_of(here)
                                                : here_.region_high);
  if constexpr (own_stack) ended_sp_ = here;
  godwit_ctx_start(scheduler_stack_.end(), completed_entry, reinterpret_cast<void*>(r));
  __builtin_unreachable();
}

template <class P>
void continuation_worker<P>::completed_entry(void* arg) {
  auto& w = static_cast<continuation_worker&>(this_worker());
  const auto r = reinterpret_cast<ref>(arg);
  w.uses_region(w.here_.region_high);
  bool began_later = false;
  if constexpr (own_stack) began_later = w.end_own_stack(w.ended_sp_);
  w.here_.release_writes();
  w.delay();
  w.strand_ended();
  std::uint64_t now = hands_over && !w.account_.traced() ? 0 : base::fast_ns();
  if (r == w.here_.root) {
    if (w.account_.traced()) w.account_.note(kind::end, now, r);
    w.here_.net.remote_store(worker_no{0}, &w.here_.template home<record>(r)->state, state_done,
                             std::memory_order_release);
    // IN5: there before we are idle
    static_cast<void>(w.here_.net.remote_exchange(worker_no{0}, &w.here_.job->root_done, 1));
    w.account_.begin_idle(idle_cause::no_work);
    w.loop();
  }
  if (now != 0) w.records_.stamp_done(r, now);
  image head;
  bool comes = true;
  const std::uint64_t waiting = w.complete_record(r, head, comes);
  const bool follows = is_image(waiting);
  if (w.account_.traced()) w.account_.note(kind::end, now, r, 0, 0, 0, 0, follows);
  if (!follows) {
    if (is_detached(waiting)) w.ended_detached(r, waiting);
    w.next_thread(idle_cause::no_work);
  }
  if (now == 0) now = base::fast_ns();
  // Greedy: we came second, so the continuation of the join is ours. Any other waiters queue.
  const bool is_far = !stacks_stay && !w.here_.is_near(waiting);
  ref next = is_far ? head.next : ref{w.here_.template at<image>(waiting)->next};
  w.mark_ready(waiting, r, now);
  while (is_image(next)) {
    w.mark_ready(next, r, now);
    w.push_ready(std::exchange(next, 0), now, false, &next);
  }
  // A thread that was created later is one of many, as a rule: whoever joins them one by one finds the rest
  // done if it comes last.
  if (hands_over && began_later && !w.ready_.empty()) {
    w.push_ready(waiting, now);
    w.next_thread(idle_cause::no_work);
  }
  const bool leaves =
      !is_far && w.here_.template at<image>(waiting)->goes_home && ref_worker(waiting) != w.here_.me;
  if (!comes || leaves) {
    leaves ? w.go_home(waiting) : w.tell_home(waiting);
    w.next_thread(idle_cause::no_work);
  }
  w.records_.will_be_read(r);
  if (is_far) {
    head.ready_ns = now;
    w.run_image(head, ref_worker(waiting), now);
  }
  w.resume_image(waiting);
}

/// Between the exchange that made the waiter ours and its resumption.
template <class P>
void continuation_worker<P>::mark_ready(ref waiter, ref completed, std::uint64_t now) noexcept {
  if (!here_.is_near(waiter)) return;
  image* im = here_.at<image>(waiter);
  GODWIT_ASSERT(im->waited_for == completed, "who waits in a record's list waits for it");
  im->ready_ns = now;
  if constexpr (P::spans) im->span_ns = std::max(im->span_ns, span_of(completed));
}

namespace {
constexpr maker_rows makers_ = of_each_row(policy_rows{}, [](auto row) -> worker_makers {
  if constexpr (policy_table[row].steals_children) {
    return {};
  } else {
    // Threads have every stack at an address of its own anyway.
    // Lazy spawns are found where stacks are copied, in processes; run refuses them elsewhere.
    constexpr bool as_greedy = continuations<row>::iso_address || continuations<row>::lazy;
    using in_place = continuations<as_greedy ? static_cast<std::size_t>(choice::policy::greedy) : row>;
    return {made<continuation_worker<on<continuations<row>, on_processes>>>,
            made<continuation_worker<on<in_place, on_threads>>>,
            made<continuation_worker<
                on<std::conditional_t<continuations<row>::lazy, in_place, continuations<row>>, on_sim>>>};
  }
});
}  // namespace

const maker_rows& continuation_makers() noexcept { return makers_; }

}  // namespace godwit::sched
