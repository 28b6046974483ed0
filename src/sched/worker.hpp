// One worker: runs threads, suspends them, steals, idles. What all policies share; the rest is derived from
// it.
//
// Control flow: a thread runs on the uni-address region; everything that gives up the region (an ending
// thread whose parent left, an outstanding join, a yield) switches to the scheduler stack and from there
// either resumes the parent in place, or resumes a suspended thread, or enters the scheduler loop. The
// scheduler stack starts afresh each time: nothing on it outlives a decision.
//
// A worker is made of parts, each of which sees the site and nothing of the worker: deque, heap,
// join_records, ready_queue, mailbox, far_inbox, far_thief, outside_events, idleness, ancestors, exposure,
// account. What is left here is what joins them, and how a thread enters and leaves a stack. Policies:
// continuation.cpp with continuation_{stacks,suspend,turns}.hpp, child.cpp with child_{arrive,threads}.hpp;
// policies.cpp makes them.
// Documents: docs/architecture.md, docs/policies.md, docs/protocols/{deque,join,idle}.md. Called by:
// src/runtime.
#pragma once

#include <godwit/detail/timer.hpp>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/unexposed.hpp"
#include "context/context.hpp"
#include "context/frame_rules.hpp"
#include "sched/account.hpp"
#include "sched/ancestors.hpp"
#include "sched/carried.hpp"
#include "sched/deque.hpp"
#include "sched/exposure.hpp"
#include "sched/far_calls.hpp"
#include "sched/far_thief.hpp"
#include "sched/idleness.hpp"
#include "sched/inbox.hpp"
#include "sched/lazy_spawns.hpp"
#include "sched/mailbox.hpp"
#include "sched/outside_events.hpp"
#include "sched/ready_queue.hpp"
#include "sched/records.hpp"
#include "sched/scheduler_stack.hpp"
#include "sched/scopes.hpp"
#include "sched/segments.hpp"
#include "sched/site.hpp"
#include "stack/stack.hpp"

namespace godwit::sched {

class worker {
 public:
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  virtual ~worker() = default;

  virtual void init(const worker_setup& setup) noexcept;

  /// Leave the calling stack for good. Worker 0 starts @p root first.
  virtual void start(void (*root)(void*), void* arg) noexcept = 0;

  // Entry points of slow_path.hpp; see there. Those that depend on the policy are virtual: they are off the
  // fast path.
  virtual bool spawn_point(bool child_may_leave, bool always_begins) noexcept = 0;
  virtual ref pop_public(spawn_slot* b) noexcept = 0;
  // Policy lazy: docs/protocols/lazy.md. Elsewhere there is nothing to find.
  /// The deque has all spawns of the running thread and its parents. Before whatever looks at it.
  virtual void find_spawns() noexcept {}
  /// Likewise, where the running thread was interrupted, if that can be said there.
  virtual void find_spawns_of(const context::frame_registers&) noexcept {}
  /// A child whose spawn was found has come to its end. Comes back if the parent is here. @p give: what gives
  /// away a result that lies where @p value says (lazy_child::give), or 0: it is the result.
  virtual lazy_way lazy_child_returned(std::uintptr_t value, std::uintptr_t give) noexcept;
  virtual lazy_way lazy_child_failed(ref error) noexcept;
  /// GODWIT_LAZY_LOOKS: as spawn_point.
  virtual void lazy_spawn_point() noexcept {}
  virtual ref spawn_task(detail::task_entry* entry, const detail::task_bytes& closure,
                         std::uintptr_t spawned_at) noexcept;
  virtual void* new_stack(spawn_slot& slot, const void* closure, std::size_t bytes) noexcept;
  virtual void free_stack(void* top) noexcept;
  virtual void more_stacks() noexcept {}
  virtual void announce_thread(std::uintptr_t sp) noexcept { announce_stack_now(sp); }
  virtual void yield_thread() noexcept = 0;
  // park.hpp; there only where workers are threads.
  virtual bool park(detail::publish_fn* publish, void* arg, detail::wakes by, const char* what,
                    const detail::place& where) noexcept;
  void unpark(detail::waiter* w, detail::wakes by) noexcept;
  /// With options::span: the longest chain up to now of the thread that runs here; without: 0.
  virtual std::uint64_t span_now() const noexcept { return 0; }
  /// With options::span: of the thread that has ended here last.
  virtual std::uint64_t span_of_ended() const noexcept { return 0; }
  virtual ref create_thread(detail::task_entry* entry, const void* closure, std::size_t bytes, priority level,
                            bool always_begins) noexcept;
  // Substrate threads: threads that have not begun are run by who waits for them. docs/protocols/park.md
  /// That of @p r. False: it has begun, or has to wait for its turn. May migrate.
  virtual bool run_if_unbegun(ref) noexcept { return false; }
  /// Those of the running thread's scope that are next on this worker. May migrate.
  virtual void run_unbegun_of_scope() noexcept {}
  /// The thread that just ended completes @p r; does not come back.
  virtual void complete(ref r) noexcept = 0;
  /// The root thread just ended: pop its entry and complete what is to complete.
  virtual void end_of_root_thread() noexcept = 0;
  virtual void share(ref r) noexcept { records_.retain(r); }
  /// @p what: as in park, if the record is not a thread's. @p along: by a future that lies where its spawn
  /// put it, in the frames that are here; what can be read along with it is.
  detail::payload wait(ref r, detail::place where, const char* what = nullptr, bool along = false) noexcept;
  std::uintptr_t end_of_frames() noexcept;
  /// Complete a record of join_records::make; its waiters become ready. The calling context goes on.
  void finish(ref r) noexcept;
  join_records& records() noexcept { return records_; }
  // Threads that nobody joins one by one, but all together: docs/protocols/tally.md.
  /// The thread of @p r, which has no other consumer, is a part of @p tally until it ends.
  void detach_into(ref r, ref tally) noexcept;
  /// Until a moment when no part of @p tally is out. One thread at a time. May migrate.
  void wait_for_parts(ref tally, const detail::place& where, const char* what) noexcept;

  // Scopes that can be cancelled: docs/protocols/cancel.md.
  sched::scopes& cancellation() noexcept { return scopes_; }
  /// The running thread enters a scope, until it leaves that; scopes are left in the reverse order.
  ref enter_scope(scope_kind kind, std::uint64_t deadline_ns) noexcept;
  /// Waits for what is below. May migrate.
  void leave_scope(ref scope, const detail::place& where) noexcept;
  /// Futures that are dropped here are to be waited for: the running thread is cancelled, and it is not a
  /// letter that drops them.
  bool must_wait() noexcept {
    return carried_.scope() != 0 && !in_letter_ && detail::hot().in_runtime == 0 && is_cancelled();
  }
  /// The running thread is cancelled, and may hear of it: it is not being unwound.
  bool must_stop() noexcept { return may_stop() && is_cancelled(); }
  detail::stop_time when_to_stop() noexcept;

  // docs/protocols/segments.md.
  sched::segments& segments() noexcept { return segments_; }
  /// Of the running thread, which is tracked from now on.
  ref segment() noexcept;
  /// The running thread, and those in its deque, are not tracked any more.
  void end_segment() noexcept;

  /// Put a call into another worker's mailbox; @p done is completed afterwards.
  void send(worker_no to, ref done, void (*call)(const void*), const void* closure,
            std::size_t bytes) noexcept {
    send(to, done, call, {static_cast<const std::byte*>(closure), bytes}, {});
  }
  /// The same with a closure in two pieces.
  void send(worker_no to, ref done, void (*call)(const void*), std::span<const std::byte> head,
            std::span<const std::byte> rest) noexcept;
  /// mailbox::write_for_later
  ref write_letter_for_later(void (*call)(const void*)) noexcept { return mail_.write_for_later(call); }
  // Threads that are sent: docs/protocols/parcels.md.
  /// Create a thread that begins at @p to, or where @p what says; gives back its record.
  /// @p deliver: the call of the letter, which finds the parcel; it hands it to arrive.
  ref send_thread(worker_no to, parcel& what, const std::byte* closure,
                  void (*deliver)(const void*)) noexcept;
  /// Likewise the running thread, if it may leave: false. @p exactly: there, else anywhere on its host.
  /// @p frames: where the frames of the program begin, with what it has in registers. Those below are the
  /// runtime's, and name nothing that stays behind.
  virtual bool migrate(worker_no to, bool exactly, std::uintptr_t frames,
                       const detail::place& where) noexcept = 0;
  /// Policies where a thread may join those only that it made: the number of the running one; else 0.
  virtual std::uint64_t number_of_thread() const noexcept { return 0; }
  /// One that was sent here is to begin. The closure lies behind it, and is copied.
  /// @p data: the part of its memory that is here.
  virtual void arrive(const parcel& what, const data_part& data) noexcept = 0;
  /// The running thread's data is this, from now on.
  void work_on(data_part data) noexcept {
    if (!here_.one_host()) here_.words->work_on(data);
  }
  /// Threads whose stacks name memory in there do not migrate: other workers' processes do not have it.
  void keep_with(const stack::range& heap) noexcept { own_heap_ = heap; }
  const stack::range& own_heap() const noexcept { return own_heap_; }

  // Way am: this worker carries out requests of other hosts.
  /// Where other layers enter theirs.
  transport::far::call_table& calls() noexcept { return inbox_.calls(); }
  /// Carry out requests of other hosts that wait here. Cheap when there are none.
  void serve_inbox() noexcept { inbox_.serve(); }
  bool serve_one() noexcept { return inbox_.serve_one(); }
  /// All that others ask of this worker. No other thread comes.
  void serve() noexcept {
    inbox_.serve();
    serve_mailbox();
  }
  /// From the expose signal's handler.
  /// @p interrupted: null where nobody can say.
  void on_expose_signal(std::uint32_t float_control,
                        const context::frame_registers* interrupted = nullptr) noexcept;
  /// For the trace, if there is one: an access to global memory at @p at, which began at @p since_ns (of
  /// base::fast_ns), of @p count that are like it. @p frame: as in base::callers_of.
  void note_access(trace::single_access what, std::uint64_t since_ns, std::uint64_t at, std::uint32_t owner,
                   std::uint32_t count, const void* frame) noexcept;
  /// Likewise: a continuation goes on here, in the function that has called the one where @p variable lies.
  void note_callers_of(const void* variable) noexcept;
  /// Likewise: of annotate.hpp.
  void note_name(trace::kind what, std::uint64_t name, const void* scope) noexcept;
  /// Likewise: global memory moved since then.
  void note_global(trace::global_access what, std::uint64_t since_ns, std::uint64_t bytes) noexcept;
  /// Likewise: something happened to movable memory, since @p since_ns if that is not 0.
  void note_parts(trace::kind what, std::uint64_t since_ns, std::uint64_t a, std::uint64_t b = 0,
                  std::uint64_t bytes = 0, std::uint32_t other = 0, std::uint16_t detail = 0) noexcept;

  const site& here() const noexcept { return here_; }
  const sched::account& accounts() const noexcept { return account_; }
  /// What the thread at the bottom of the stack completes. For others a look.
  ref at_the_bottom() noexcept { return deque_.sentinel().record; }
  const sched::scheduler_stack& scheduler_stack() const noexcept { return scheduler_stack_; }
  /// Substrate sim: the bytes of the region that must be kept while others have their turns. @p sp: of the
  /// caller, which is this worker's thread or its scheduler.
  stack::range used_region(std::uintptr_t sp) noexcept {
    if (sp - here_.region_low < here_.region_high - here_.region_low) {
      const std::uintptr_t end = deque_.sentinel().bytes_end;
      return {sp,
              end != 0 ? end : here_.region_high};  // 0: child stealing, which says nothing of stacks there
    }
    return {here_.used_from, here_.region_high};
  }
  std::uintptr_t own_thread_pointer() const noexcept { return thread_pointer_; }
  /// The running thread has no parent on this worker: when it ends it comes by pop_public.
  bool at_bottom() const noexcept { return deque_.is_sentinel(detail::hot().bottom - 1); }
  /// The stack that @p sp lies in, if it is in memory that other workers share; else empty.
  virtual stack::range shared_stack_of(std::uintptr_t sp) const noexcept {
    const stack::range region{here_.region_low, here_.region_high};
    const bool shared = !here_.shape.in_process || here_.shape.takes_turns;
    return shared && region.holds(sp) ? region : stack::range{};
  }
  /// The stack of the running thread, if it has one of its own that nobody else sees; else empty.
  virtual stack::range private_stack() const noexcept { return {}; }
  /// Policies whose threads have small stacks with guard pages: if a fault at @p address means that the
  /// running thread used its own up, the policy's name; else null. For the handler of faults.
  virtual const char* overflow_of_thread(std::uintptr_t) const noexcept { return nullptr; }

  void finish_stats() noexcept;
  /// After a run without an error, when this worker does nothing any more: all that it had is gone.
  void check_invariants() noexcept;
#ifndef NDEBUG
  /// The same of the host with the workers @p near, when all have ended.
  static void check_host(const transport::shm::segment& memory, transport::shm::near_range near,
                         bool only_host) noexcept;
#endif
  /// The last act: from here on the companion answers for this worker.
  void retire() noexcept { here_.far->gone.store(1, std::memory_order_release); }

 protected:
  worker() = default;
  /// The program has spawned by another policy than the run's: ends the run.
  [[noreturn]] void wrong_policy() const noexcept;

  using unexposed = base::unexposed;

  /// What a policy does when a thread has to wait for @p r. Comes back when it is complete.
  virtual void block(ref r, const detail::place& where, const char* what) noexcept = 0;
  /// Nobody asked for @p r, which was completed here: @p state was in it.
  void ended_detached(ref r, std::uint64_t state) noexcept;
  void part_ended(ref r, ref tally) noexcept;
  /// The caller is on the scheduler stack, which nothing outlives.
  [[gnu::always_inline]] bool is_between_threads() const noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return here - scheduler_stack_.low() < stack::scheduler_stack_bytes;
  }
  /// Before a wait: ends the run there.
  void need_thread_here(const detail::place& where) const noexcept {
    if (is_between_threads()) [[unlikely]]
      no_thread_here(where);
  }
  [[noreturn, gnu::cold]] void no_thread_here(const detail::place& where) const noexcept;
  void parts_are_done(ref tally) noexcept;
  /// A join found its thread done.
  virtual void joined(ref) noexcept {}
  [[noreturn]] virtual void loop() noexcept = 0;
  /// A worker that begins without a thread: leave the calling stack for the loop.
  [[noreturn]] void enter_loop() noexcept;

  // How a thread comes. These do not come back, but for enter_thread.
  /// The bytes are in place.
  void resume(const loot& what, loot_kind kind, const data_part& data = {}) noexcept;
  void resume_caught(const far_catch& what) noexcept;
  /// The region is empty and a thread is about to be put there, with the bytes up to @p bytes_end.
  void enter_thread(std::uint64_t top, std::uint64_t bytes_end, ref own_record,
                    const carried& takes) noexcept;

  /// A thread has come to an empty deque, or none has.
  [[gnu::always_inline]] void words_come(const carried& c) noexcept {
    if (c == carried{} && carried_.none()) [[likely]]
      return;
    other_words_come(c);
  }
  [[gnu::noinline]] void other_words_come(const carried& c) noexcept {
    const ref scope = c.scope != 0 ? scopes_.near(c.scope) : 0;
    const carried to{scope, segments_.arrive(c.segment)};
    bool other_scope = false;
    const auto come = [&] { other_scope = carried_.come(to); };
    to.segment != carried_.segment() ? deque_.locked(come) : come();
    if (other_scope) scopes_.changed();
  }
  /// The running thread is over, and its record not its parent's affair.
  void strand_ended() noexcept {
    if (const ref scope = carried_.scope(); scope != 0) end_strand(scope);
    words_come({});
  }

  // Threads that are ready.
  /// @p waiting: what a record's state was, which has been completed at @p now: all that wait for it.
  void wake_waiters(std::uint64_t waiting, std::uint64_t now) noexcept;
  /// @p now: when it became ready, 0: it never waited. @p in_front: before all others, whatever it is.
  /// @p behind: the next one in the list of waiters that it was in.
  void push_ready(ref image_ref, std::uint64_t now, bool in_front = false, ref* behind = nullptr) noexcept;
  void tell_home(ref image_ref) noexcept;
  bool fetch(ref r, bool along) noexcept;
  /// To the worker where it stopped, and to no other one.
  void go_home(ref image_ref) noexcept;
  /// It is to run on this worker.
  virtual void run_here(ref image_ref) noexcept = 0;
  /// Into the own queue: @p im, which is of this host.
  [[gnu::always_inline]] void push_near(image* im, ref image_ref, rank where) noexcept {
    GODWIT_ASSERT(!idle_.is_idle(), "ID1: only a worker that counts as running makes threads ready");
    ready_.push(im, image_ref, where);
    idle_.wake_one();
  }
  void serve_mailbox() noexcept;

  /// Sanitizers: the stack that @p sp lies in is the current one from now on.
  void announce_stack(std::uintptr_t sp) noexcept {
    if (context::sanitized()) [[unlikely]]
      announce_stack_now(sp);
  }
  virtual void announce_stack_now(std::uintptr_t sp) noexcept;

  // Where segments are made: docs/protocols/segments.md.
  /// A continuation leaves a deque of this host, which is locked: what it takes along.
  carried leaves_deque(carried takes) noexcept {
    if (takes.segment != 0) [[unlikely]]
      takes.segment = segments_.make_behind(takes.segment);
    return takes;
  }
  /// What a thread takes along that begins later.
  carried child_takes() noexcept { return carried_.none() ? carried{} : other_child_takes(); }
  carried other_child_takes() noexcept;
  /// The running thread has been saved and its parent goes on in place; and it was not so.
  void part_segments() noexcept;
  void rejoin_segments(ref before) noexcept;
  /// For a thief of another host: it cannot make one.
  void offer_segment() noexcept;

  /// options::delay_us, between racing steps.
  void delay() noexcept;
  static void delay_step() noexcept;

  site here_;
  account account_;
  base::small_random random_;
  deque_owner deque_;
  heap heap_;
  ready_queue ready_;
  join_records records_{here_, heap_};
  ancestors ancestors_{here_, deque_};
  carried_words carried_;
  sched::scopes scopes_{here_, heap_, carried_};
  sched::segments segments_{here_, heap_, records_, tell_ended};
  exposure exposure_{here_, deque_, records_, ancestors_, carried_, account_};
  mailbox mail_{here_, heap_, records_};
  far_inbox inbox_{here_, heap_, account_, random_};
  far_thief far_{here_, account_, random_};
  outside_events events_{here_};
  idleness idle_{here_, account_, {inbox_, mail_, events_, far_, records_}};

  sched::scheduler_stack scheduler_stack_;
  stack::range own_heap_;              ///< empty: not known
  std::uintptr_t thread_pointer_ = 0;  ///< the OS thread's own; threads may have theirs (thread_block)

 private:
  bool may_stop() const noexcept { return carried_.scope() != 0 && here_.exceptions.state->uncaught == 0; }
  void end_strand(ref scope) noexcept;
  static void tell_ended(ref segment) noexcept;
  void set_segment(ref s) noexcept;

  bool in_letter_ = false;
  ref letters_segment_ = 0;  ///< of what letters do between two threads; 0: nothing is tracked

  base::small_random delay_random_;
};

/// Make the caller's worker, of the policy that the options name, for the substrate that @p job describes.
worker& make_worker(const options& opts, const job_shape& job) noexcept;
/// Only where a process has several workers: the caller's is gone, and nothing of it is used any more.
void end_worker() noexcept;

/// The worker that the caller runs on. A thread that may have been suspended since must ask again.
inline worker& this_worker() noexcept { return *static_cast<worker*>(detail::hot().owner); }

}  // namespace godwit::sched
