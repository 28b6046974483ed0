// What all policies do: set-up, resuming, exposing, mail. See worker.hpp.
#include "sched/worker.hpp"

#include <algorithm>
#include <utility>

#include "sched/frames.hpp"
#include "base/thread_sanitizer.hpp"
#include "base/world.hpp"

namespace godwit::sched {

using transport::index;

namespace {

/// While another worker has a lock that this one needs: that may be a thief whose next request waits here.
/// One request at a time: after it the lock may be free, and taken again by the next one.
void turn_at_lock(base::spin_wait& wait) noexcept {
  if (!this_worker().serve_one()) wait.turn();
}

}  // namespace

/// Deques call it between racing steps.
void worker::delay_step() noexcept { this_worker().delay(); }

void worker::delay() noexcept {
  if (here_.opts.delay_us == 0) return;
  const std::uint64_t until = base::fast_ns() + delay_random_.below(here_.opts.delay_us * 1000);
  while (base::fast_ns() < until) base::pause();
}

void worker::init(const worker_setup& setup) noexcept {
  here_.init(setup);
  here_.lock_turn = turn_at_lock;
  const std::uint32_t number = index(here_.me);
  random_ = base::small_random(setup.seed + number * 7919 + 1);
  delay_random_ = base::small_random(setup.seed + number * 104729 + 17);
  account_.init(here_.words->stats, setup.trace, here_.shape.in_process);
  thread_pointer_ = context::thread_pointer();
  if (here_.shape.takes_turns)
    scheduler_stack_.init_below(here_.memory->scheduler_end());
  else
    scheduler_stack_.init();
  if (!here_.one_host())
    here_.net.far().init(
        *here_.memory, here_.me, here_.far, &here_.all_words_of(here_.shape.bell_of)->far,
        here_.shape.serves_itself ? +[](void* w) { static_cast<worker*>(w)->serve_inbox(); } : nullptr, this,
        !here_.crowded && !here_.shape.takes_turns);

  detail::hot_words& hot = detail::hot();
  hot.worker = number;
  hot.workers = here_.workers - here_.shape.spares;
  hot.pending = nullptr;
  hot.spawns = 0;
  hot.locals = nullptr;
  hot.in_place = here_.shape.stacks != nullptr ? 1 : 0;
  hot.free_stacks = nullptr;
  hot.in_runtime = 1;
  hot.cancellations = &here_.node->cancellations;
  hot.cancel_answer = 0;
  hot.poll.store(here_.forced != choice::force_steal::none, std::memory_order_relaxed);

  const auto& l = here_.memory->where();
  std::byte* base = here_.memory->common();
  // A network card may have registered the pages of a job of several hosts: they must not change.
  heap_.init(base, base + l.heap, l.heap_bytes, &here_.words->live, here_.one_host(),
             here_.shape.takes_turns);
  deque_.init(&hot, here_.words, reinterpret_cast<spawn_slot*>(base + l.slots), turn_at_lock, delay_step);
  carried_.init(here_.words, reinterpret_cast<spawn_slot*>(base + l.slots) + 1);
  ready_ = ready_queue(*here_.memory, *here_.words, here_.holder(), here_.workers == 1, turn_at_lock);
  const std::uint64_t first =
      std::max<std::uint64_t>(l.front, 64);  // no ref names the first byte of a segment
  const ref own = transport::make_ref(here_.me, first);
  ready_.expect_images_at(own, here_.memory->at<std::byte>(own), l.span - first);
  inbox_.init();
  mail_.enter(inbox_.calls());
  idle_.init();
}

void worker::enter_loop() noexcept {
  scheduler_stack_.announce();
  account_.begin_idle(trace::idle_cause::no_work);
  godwit_ctx_start(
      scheduler_stack_.end(), [](void* w) { static_cast<worker*>(w)->loop(); }, this);
  __builtin_unreachable();
}

void worker::announce_stack_now(std::uintptr_t sp) noexcept {
  // Below it there may be marks of frames that were left without returning.
  constexpr std::uintptr_t enough = 64 << 10;
  if (sp >= here_.region_low + enough) context::sanitizer_forget((sp - enough) / 64 * 64, sp / 64 * 64);
  context::sanitizer_on_stack(reinterpret_cast<void*>(here_.region_low),
                              here_.region_high - here_.region_low);
}

void worker::enter_thread(std::uint64_t top, std::uint64_t bytes_end, ref own_record,
                          const carried& takes) noexcept {
  GODWIT_ASSERT(deque_.empty(), "a thread enters an empty region");
  GODWIT_ASSERT(!idle_.is_idle(), "ID1: only a worker that counts as running has a thread");
  GODWIT_ASSERT(own_record != 0, "a thread completes a record");
  GODWIT_ASSERT(here_.shape.stacks != nullptr ? here_.shape.stacks->owns(top - 1)
                                              : here_.is_stack(top - 1, top, bytes_end),
                "a thread's stack lies where stacks lie");
  deque_.sentinel().record = own_record;
  records_.thread_came();  // RA1
  words_come(takes);
  ancestors_.came(top, bytes_end);
  idle_.thread_came();
}

void worker::resume(const loot& what, loot_kind kind, const data_part& data) noexcept {
  GODWIT_ASSERT(here_.is_stack(what.low, what.top, what.bytes_end), "a thread's stack lies where stacks lie");
  GODWIT_ASSERT(what.sp == what.low + (kind == loot_kind::fork ? context::fork_bytes_below : 0),
                "the bytes of a thread begin where it was saved");
  GODWIT_ASSERT(kind != loot_kind::fork || what.status != 0, "a parent goes on with the record of its child");
  if (kind == loot_kind::fork && here_.is_near(what.status))
    base::happens_after(here_.at<record>(what.status));
  enter_thread(what.top, what.bytes_end, what.own_record, what.takes);
  work_on(data);
#if defined(__x86_64__)
  // A stolen thread's own return address leads into a parent that is not here: end backtraces instead.
  if (kind == loot_kind::fork && !here_.shape.own_stacks && here_.shape.stacks == nullptr)
    reinterpret_cast<std::uintptr_t*>(what.top)[-1] =
        reinterpret_cast<std::uintptr_t>(&godwit_ctx_thread_end);
#elif defined(__sparc__)
  // Its caller's window lies 176 bytes below the end (fork_call_sparcv9.hpp): that one is shown still, and
  // nothing above it.
  if (kind == loot_kind::fork && !here_.shape.own_stacks && here_.shape.stacks == nullptr) {
    auto* window = reinterpret_cast<std::uintptr_t*>(what.top - 176);
    window[14] = what.top - 176 - 2047;
    window[15] = reinterpret_cast<std::uintptr_t>(&godwit_ctx_thread_end) - 8;
  }
#endif
  base::set_float_control(static_cast<std::uint32_t>(what.float_control));
  announce_stack(what.sp);
  detail::hot().in_runtime = here_.shape.lazy_spawns;  // LZ3
  if (kind == loot_kind::fork)
    godwit_ctx_resume_fork(what.sp, what.fp, what.extra, what.status);
  else
    godwit_ctx_resume_suspended(what.sp, 0);
  __builtin_unreachable();
}

/// Where there was one, there may be more: a continuation wakes somebody else.
void worker::resume_caught(const far_catch& what) noexcept {
  const loot& got = what.got;
  if (what.kind == loot_kind::fork) idle_.wake_one();
  here_.acquire_writes();
  account_.end_idle(what.now);
  if (account_.traced())
    account_.note(what.kind == loot_kind::fork ? trace::kind::steal : trace::kind::resume, what.now,
                  got.own_record, got.status, what.now - what.since, got.bytes_end - got.low,
                  index(what.victim));
  resume(got, here_.shape.lazy_spawns ? loot_kind::suspended : what.kind);  // put_below
}

void worker::on_expose_signal(std::uint32_t float_control,
                              const context::frame_registers* interrupted) noexcept {
  if (interrupted != nullptr && detail::hot().in_runtime == 0) find_spawns_of(*interrupted);
  if (!exposure_.on_signal(float_control)) return;
  const unexposed inside;
  idle_.wake_one();
}

/// RA3
std::uintptr_t worker::end_of_frames() noexcept {
  return here_.one_host() || here_.shape.own_stacks ? 0 : deque_.sentinel().sp;
}

bool worker::fetch(ref r, bool along) noexcept {
  if (!along) return records_.fetch(r);
  return records_.fetch_along(
      r, {reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), end_of_frames()});
}

detail::payload worker::wait(ref r, detail::place where, const char* what, bool along) noexcept {
  if (r == 0)
    base::fatal(
        "worker %u: join on a future that has no thread (joined before, moved from, or default "
        "constructed) at %s:%u",
        index(here_.me), where.file, where.line);
  GODWIT_ASSERT(!here_.is_near(r) || (is_record_kind(here_.at<record>(r)->kind) &&
                                      here_.at<record>(r)->freed.load(std::memory_order_relaxed) == 0),
                "a join is of a record that lives");
  if (!here_.is_near(r) && fetch(r, along)) {  // one round trip for all of it
    here_.acquire_writes();
    return records_.fetched_payload();
  }
  if (!here_.is_near(r) || !records_.is_complete(r)) {
    block(r, where, what);
  } else {
    here_.acquire_writes();  // whoever completed it may have been on another host
    joined(r);
  }
  // From here on possibly another worker, and, where workers are threads, `this` is not it.
  return this_worker().records_.payload_of(r);
}

void worker::finish(ref r) noexcept {
  const unexposed inside;
  here_.release_writes();
  const std::uint64_t now = base::fast_ns();
  records_.stamp_done(r, now);
  if (account_.traced()) account_.note(trace::kind::complete, now, r);
  std::uint64_t waiting = records_.exchange_state(r, state_done);  // JN1
  GODWIT_ASSERT(waiting != state_done, "a record is completed once");
  if (is_detached(waiting)) return ended_detached(r, waiting);
  wake_waiters(waiting, now);
}

void worker::wake_waiters(std::uint64_t waiting, std::uint64_t now) noexcept {
  while (waiting != state_none) push_ready(std::exchange(waiting, state_none), now, false, &waiting);
}

void worker::ended_detached(ref r, std::uint64_t state) noexcept {
  const ref tally = tally_in(state);
  if (tally == 0) return records_.free_unseen(r);
  records_.will_be_read(r);
  if (here_.opts.span) records_.lift_chain(tally, span_of_ended());
  part_ended(r, tally);
}

void worker::part_ended(ref r, ref tally) noexcept {
  records_.end_part(r, tally);  // TY3: before it is counted off
  // Perhaps another one: a result that is dropped may wait in its destructor.
  worker& now = this_worker();
  const unexposed inside;
  const ref waiting = now.records_.count_off(tally);  // TY1: what was counted before the record named it
  if (waiting != 0) now.finish(waiting);
}

void worker::no_thread_here(const detail::place& where) const noexcept {
  base::fatal(
      "worker %u: %s:%u waits between two threads, where there is none to suspend: in the destructor of the "
      "result, or of the exception, of a thread whose future was dropped before it ended; keep that future "
      "and join it, or let the thread wait for what its result owns",
      index(here_.me), where.file != nullptr ? where.file : "?", where.line);
}

void worker::detach_into(ref r, ref tally) noexcept {
  records_.count_part(r, tally);
  delay();
  if (!records_.detach_into(r, tally)) part_ended(r, tally);
}

void worker::wait_for_parts(ref tally, const detail::place& where, const char* what) noexcept {
  if (!records_.is_any_out(tally)) return parts_are_done(tally);
  const ref last = records_.make();
  if (records_.await_last(tally, last)) {
    static_cast<void>(wait(last, where, what));
    this_worker().records_.release(last);  // perhaps another one
  } else {
    const unexposed inside;
    records_.free(last);
  }
  this_worker().parts_are_done(tally);
}

/// What they have written is seen from here on.
void worker::parts_are_done(ref tally) noexcept {
  here_.acquire_writes();
  if (here_.is_near(tally)) base::happens_after(here_.at<record>(tally));
  if (here_.opts.span) joined(tally);
}

/// A thread that stays on another host is ready: it is as if that were in the worker's own queue.
void worker::tell_home(ref image_ref) noexcept {
  send(transport::ref_worker(image_ref), 0,
       [](const void* closure) {
         const unexposed inside;
         worker& w = this_worker();
         const ref mine = *static_cast<const ref*>(closure);
         w.here_.at<image>(mine)->wanted = true;
         w.push_ready(mine, base::fast_ns());
       },
       std::as_bytes(std::span(&image_ref, 1)), {});
}

/// Also of this worker: a letter counts as work from here on, while the worker may be about to become idle.
void worker::go_home(ref image_ref) noexcept {
  send(transport::ref_worker(image_ref), 0,
       [](const void* closure) {
         const unexposed inside;
         this_worker().run_here(*static_cast<const ref*>(closure));
       },
       std::as_bytes(std::span(&image_ref, 1)), {});
}

void worker::push_ready(ref image_ref, std::uint64_t now, bool in_front, ref* behind) noexcept {
  if (!here_.is_near(image_ref)) {
    const ref copy = records_.make_near(image_ref, false, behind);
    if (copy == 0) return tell_home(image_ref);
    image_ref = copy;
  } else if (behind != nullptr) {
    *behind = here_.at<image>(image_ref)->next;
  }
  image* im = here_.at<image>(image_ref);
  if (im->sp != 0) {
    im->ready_ns = now;
    if (im->goes_home) return go_home(image_ref);
  }
  push_near(im, image_ref, in_front ? rank::first : im->sp != 0 && im->high ? rank::high : rank::last);
}

// What a policy does not have, a program asked for with functions of another.
void worker::wrong_policy() const noexcept {
  base::fatal(
      "this run's policy is %s, but the program spawned a thread of another one: take the policy of the run "
      "(godwit::with_policy), or do not set --godwit-policy (GODWIT_POLICY)",
      name_of(here_.opts.policy));
}
bool worker::park(detail::publish_fn*, void*, detail::wakes, const char*, const detail::place&) noexcept {
  wrong_policy();
}
ref worker::create_thread(detail::task_entry*, const void*, std::size_t, priority, bool) noexcept {
  wrong_policy();
}
ref worker::spawn_task(detail::task_entry*, const detail::task_bytes&, std::uintptr_t) noexcept {
  wrong_policy();
}
void* worker::new_stack(spawn_slot&, const void*, std::size_t) noexcept { wrong_policy(); }
void worker::free_stack(void*) noexcept { wrong_policy(); }
lazy_way worker::lazy_child_returned(std::uintptr_t, std::uintptr_t) noexcept { wrong_policy(); }
lazy_way worker::lazy_child_failed(ref) noexcept { wrong_policy(); }

void worker::serve_mailbox() noexcept {
  static_cast<void>(here_.serve_others());
  if (mail_.empty()) return;
  GODWIT_ASSERT(!idle_.is_idle(), "ID1: only a worker that counts as running takes letters");
  const bool before = std::exchange(in_letter_, true);
  const ref scope = carried_.scope();
  if (scope != 0) [[unlikely]] {  // that of the thread which runs here, and nothing to a letter
    const unexposed inside;
    carried_.enter(0, detail::hot().bottom);
    scopes_.changed();
  }
  const bool between = is_between_threads();
  if (between && letters_segment_ != 0) set_segment(letters_segment_);
  mail_.take([this](ref done) { finish(done); });
  if (between && (letters_segment_ = carried_.segment()) != 0) set_segment(0);  // it is no thread's
  if (scope != 0) [[unlikely]] {
    const unexposed inside;
    carried_.leave(scope);
    scopes_.changed();
  }
  in_letter_ = before;
}

void worker::send(worker_no to, ref done, void (*call)(const void*), std::span<const std::byte> head,
                  std::span<const std::byte> rest) noexcept {
  GODWIT_ASSERT(!idle_.is_idle(), "ID2: only a worker that counts as running sends letters");
  const unexposed inside;
  // sleepers cannot be woken one by one; mail is rare
  if (mail_.send(to, done, call, head, rest)) idle_.wake_all();
  ++here_.words->stats.letters;
}

ref worker::send_thread(worker_no to, parcel& what, const std::byte* closure,
                        void (*deliver)(const void*)) noexcept {
  const unexposed inside;
  what.record = records_.make();
  here_.at<record>(what.record)->made_by = number_of_thread();
  what.float_control = base::float_control();
  const carried takes = child_takes();
  what.scope = takes.scope;
  what.segment = takes.segment;
  add_strand(*here_.memory, what.scope);
  ++here_.words->stats.threads_sent;
  send(to, 0, deliver, std::as_bytes(std::span(&what, 1)), {closure, static_cast<std::size_t>(what.bytes)});
  return what.record;
}

void worker::unpark(detail::waiter* w, detail::wakes by) noexcept {
  const unexposed inside;
  base::happens_before(w);
  GODWIT_ASSERT(!idle_.is_idle(), "PK3: only a worker that counts as running wakes threads");
  GODWIT_ASSERT(
      here_.shape.stacks != nullptr && here_.shape.stacks->owns(reinterpret_cast<std::uintptr_t>(w)),
      "a waiter lies on the stack of its thread");
  GODWIT_ASSERT(
      static_cast<detail::thread_block*>(here_.shape.stacks->block_of(reinterpret_cast<std::uintptr_t>(w)))
              ->suspended == w,
      "who is woken is suspended");
  if (account_.traced()) {
    const std::uint64_t now = base::fast_ns();
    account_.note(trace::kind::wake, now, reinterpret_cast<const image*>(w)->own_record);
    const auto here = reinterpret_cast<std::uintptr_t>(&now);
    if (by == detail::wakes::inside && here_.shape.stacks->owns(here))
      account_.note_callers(now, base::callers_of(&now, here_.shape.stacks->end_of(here)));
  }
  // What is outside of the run is no part of a chain.
  if (here_.opts.span && by == detail::wakes::inside) {
    auto& span = reinterpret_cast<image*>(w)->span_ns;
    span = std::max(span, span_now());
  }
  push_ready(here_.memory->ref_of_any(w), 0);
  if (by == detail::wakes::inside) return;
  here_.node->outside.fetch_sub(1, std::memory_order_relaxed);
  // ID2, PK3: it counted like a letter; this worker runs, so it is not the last
  here_.node->idle.fetch_add(1, std::memory_order_seq_cst);
}

void worker::note_global(trace::global_access what, std::uint64_t since_ns, std::uint64_t bytes) noexcept {
  if (!account_.traced()) return;
  const unexposed inside;  // the caller may be a thread
  const std::uint64_t now = base::fast_ns();
  account_.note(trace::kind::global, now, 0, 0, now - since_ns, bytes, 0, static_cast<std::uint16_t>(what));
}

void worker::note_access(trace::single_access what, std::uint64_t since_ns, std::uint64_t at,
                         std::uint32_t owner, std::uint32_t count, const void* frame) noexcept {
  if (!account_.traced()) return;
  const unexposed inside;
  const std::uint64_t now = base::fast_ns();
  account_.note(trace::kind::access, now, at, 0, now - since_ns, count, owner,
                static_cast<std::uint16_t>(what));
  account_.note_callers(now, base::callers_of(frame, detail::hot().bottom[-1].sp));
}

void worker::note_callers_of(const void* variable) noexcept {
  if (!account_.traced()) return;
  const unexposed inside;
  account_.note_callers(base::fast_ns(), base::callers_of(variable, detail::hot().bottom[-1].sp));
}

void worker::note_name(trace::kind what, std::uint64_t name, const void* scope) noexcept {
  if (!account_.traced()) return;
  const unexposed inside;
  account_.note(what, base::fast_ns(), name, reinterpret_cast<std::uintptr_t>(scope), 0, 0, 0,
                level_of(detail::hot().bottom));
}

void worker::note_parts(trace::kind what, std::uint64_t since_ns, std::uint64_t a, std::uint64_t b,
                        std::uint64_t bytes, std::uint32_t other, std::uint16_t detail) noexcept {
  if (!account_.traced()) return;
  const unexposed inside;
  const std::uint64_t now = base::fast_ns();
  account_.note(what, now, a, b, since_ns != 0 ? now - since_ns : 0, bytes, other, detail);
}

void worker::finish_stats() noexcept {
  account_.finish();
  worker_stats& stats = here_.words->stats;
  stats.spawns += detail::hot().spawns;
  const auto* low = here_.shape.takes_turns ? here_.memory->kept_stacks(here_.me)
                                            : reinterpret_cast<const std::byte*>(here_.region_low);
  stats.stack_high_bytes =
      transport::shm::segment::touched_from_top(low, low + (here_.region_high - here_.region_low));
  stats.heap_high_bytes = heap_.high_bytes();
}

void worker::check_invariants() noexcept {
#ifndef NDEBUG
  if (here_.node->failed.load(std::memory_order_acquire) != 0) return;  // wherever it was
  GODWIT_CHECK(idle_.is_idle(), "ID3: the run ends when all workers are idle");
  GODWIT_CHECK(deque_.empty(), "ID1: the deque of an idle worker is empty");
  GODWIT_CHECK(ready_.empty(), "ID1: the ready queue of an idle worker is empty");
  GODWIT_CHECK(mail_.empty(), "ID2: no letter is left");
#endif
  deque_.check_invariants();
  heap_.check_invariants();
}

#ifndef NDEBUG
void worker::check_host(const transport::shm::segment& memory, transport::shm::near_range near,
                        bool only_host) noexcept {
  const auto* words = reinterpret_cast<const segment_words*>(memory.common() + memory.where().words);
  const auto* of_host = reinterpret_cast<const host_words*>(memory.common() + memory.where().host);
  const node_words& node = memory.at(worker_no{near.first}, of_host)->node;
  if (node.failed.load(std::memory_order_acquire) != 0) return;
  GODWIT_CHECK(node.shutdown.load(std::memory_order_acquire) != 0, "somebody decided that the run is over");
  GODWIT_CHECK(is_full(node.idle.load(std::memory_order_relaxed), near.count),
               "ID1, ID2: all workers are idle and no letter is under way");
  GODWIT_CHECK(node.outside.load(std::memory_order_relaxed) == 0,
               "PK3: no thread waits for something outside");
  GODWIT_CHECK(node.gate.load(std::memory_order_relaxed) == 0, "nobody is at the gate");
  // (The last stores of thieves on other hosts may be dropped with the run.)
  for (std::uint32_t v = near.first; v < near.first + near.count && only_host; ++v) {
    const public_words& w = memory.at(worker_no{v}, words)->worker;
    GODWIT_CHECK(w.lock.load(std::memory_order_relaxed) == 0 &&
                     w.ready_lock.load(std::memory_order_relaxed) == 0 &&
                     w.free_lock.load(std::memory_order_relaxed) == 0,
                 "worker %u: nobody holds a lock of its", v);
    GODWIT_CHECK(w.top.load(std::memory_order_relaxed) == w.split.load(std::memory_order_relaxed),
                 "worker %u: nothing is left to steal", v);
  }
}
#endif

}  // namespace godwit::sched
