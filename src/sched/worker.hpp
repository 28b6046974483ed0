// One worker: runs threads, suspends them, steals, idles. What all policies share; the rest is derived from
// it.
//
// Control flow: a thread runs on the uni-address region; everything that gives up the region (an ending
// thread whose parent left, an outstanding join, a yield) switches to the scheduler stack and from there
// either resumes the parent in place, or resumes a suspended thread, or enters the scheduler loop. The
// scheduler stack starts afresh each time: nothing on it outlives a decision.
// Documents: docs/architecture.md, docs/policies.md, docs/protocols/{deque,join,idle}.md. Called by:
// src/runtime. Files: worker.cpp (records of work, exposure, mail), join.cpp (join records, ready queues),
// idle.cpp (sleep, termination), far.cpp (other hosts), account.cpp (counters, events), continuation.cpp with
// continuation_stacks.hpp and continuation_turns.hpp (policies that steal continuations), ready_queue.hpp
// (inlined there and in join.cpp), child.cpp (policies that steal children), policies.cpp (which there are).
#pragma once

#include "base/clock.hpp"
#include "base/lock.hpp"
#include "base/random.hpp"
#include "base/section.hpp"
#include "context/context.hpp"
#include "sched/deque.hpp"
#include "sched/far_calls.hpp"
#include "sched/record.hpp"
#include "stack/pool.hpp"
#include "stack/stack.hpp"
#include "trace/ring.hpp"
#include "transport/far/fabric.hpp"

#include <godwit/detail/park.hpp>
#include <godwit/options.hpp>

#include <cstdint>
#include <vector>

namespace godwit::sched {

/// What src/runtime supplies.
struct worker_hooks {
  void (*exit_worker)() noexcept;  ///< everything is done: flush, report, _exit
  /// An exception left a thread whose future was dropped: nobody will see it otherwise.
  void (*unseen_error)(const detail::payload& error) noexcept;
  // What lies above the scheduler and must see threads come and go (global memory). Null: nothing does. May
  // ask other hosts.
  /// what was written so far must be visible to who acquires later
  void (*on_release)() noexcept = nullptr;
  bool (*must_release)() noexcept = nullptr;     ///< on_release would have to communicate
  void (*on_acquire)() noexcept = nullptr;       ///< a thread arrived that may know of writes elsewhere
  const detail::event_source* events = nullptr;  ///< substrate threads: what threads may wait for outside
  /// complete what has been answered; true: something has not been yet
  bool (*serve)() noexcept = nullptr;
};

/// The hosts of a run and how workers reach each other's. Inherited by every worker.
struct job_shape {
  std::uint32_t workers = 0;
  const transport::shm::near_range* hosts = nullptr;  ///< the workers of each host; one host: [0, workers)
  std::uint32_t host_count = 1;
  std::uint32_t my_host = 0;
  worker_no bell_of{};            ///< the worker whose bell calls the companion that serves this one
  bool whole_host_calls = true;   ///< a steal from another host may ask any of its workers
  bool far_calls = true;          ///< steal from another host by one call, else word by word
  stack::pool* stacks = nullptr;  ///< workers are threads of one process, and these their threads' stacks
  /// workers are threads of one process (then stacks too, but for child stealing)
  bool in_process = false;
  bool own_stacks = false;     ///< policy iso: every thread has a stack, and an address, of its own
  bool serves_itself = false;  ///< requests of other hosts are carried out by the workers (way am)
  /// in_process: of the workers, the last so many rest until the monitor wakes them
  std::uint32_t spares = 0;
};

/// What a worker needs to know to begin.
struct worker_setup {
  transport::shm::segment* memory = nullptr;
  worker_no me{};
  std::uint32_t cpus = 0;  ///< that the workers of this host may use
  std::uint64_t seed = 0;
  const job_shape* job = nullptr;
  const options* opts = nullptr;
  worker_hooks hooks;
  trace::ring_memory* trace = nullptr;  ///< where to write events; null: nowhere
};

class worker {
 public:
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  virtual ~worker();

  virtual void init(const worker_setup& setup) noexcept;

  /// Leave the calling stack for good. Worker 0 starts @p root first.
  virtual void start(void (*root)(void*), void* arg) noexcept = 0;

  // Entry points of slow_path.hpp; see there. Those that depend on the policy are virtual: they are off the
  // fast path.
  virtual void spawn_point(bool child_may_leave) noexcept = 0;
  virtual ref pop_public(spawn_slot* b) noexcept = 0;
  virtual ref spawn_task(detail::task_entry* entry, const void* closure, std::size_t bytes,
                         std::uintptr_t spawned_at) noexcept;
  virtual void* new_stack() noexcept;
  virtual void free_stack(void* top) noexcept;
  virtual void more_stacks() noexcept {}
  virtual void announce_thread(std::uintptr_t sp) noexcept { announce_stack_now(sp); }
  virtual void yield_thread() noexcept = 0;
  // park.hpp; there only where workers are threads.
  virtual bool park(detail::publish_fn* publish, void* arg, detail::wakes by, const char* what,
                    const detail::place& where) noexcept;
  void unpark(detail::waiter* w, detail::wakes by) noexcept;
  virtual ref create_thread(detail::task_entry* entry, const void* closure, std::size_t bytes) noexcept;
  detail::thread_block* block_of(std::uintptr_t sp) const noexcept {
    return shape_.stacks != nullptr ? static_cast<detail::thread_block*>(shape_.stacks->block_of(sp))
                                    : nullptr;
  }
  std::uintptr_t own_thread_pointer() const noexcept { return thread_pointer_; }
  /// The running thread has no parent on this worker: when it ends it comes by pop_public.
  bool at_bottom() const noexcept { return deque_.is_sentinel(detail::hot().bottom - 1); }
  /// The thread that just ended completes @p r; does not come back.
  virtual void complete(ref r) noexcept = 0;
  void publish(ref to, detail::outcome kind, const void* data, std::size_t bytes) noexcept;
  void publish_boxed(ref to, detail::outcome kind, detail::boxed what) noexcept;
  ref make_completed_boxed(detail::outcome kind, detail::boxed what) noexcept;
  /// Completed with an error: move it to the record of a parent that has left.
  void publish_error(ref to, ref error) noexcept;
  ref make_completed(detail::outcome kind, const void* data, std::size_t bytes) noexcept;
  detail::payload wait(ref r, detail::place where) noexcept;
  detail::payload payload_of(ref r) const noexcept;
  bool is_complete(ref r) const noexcept;
  void retain(ref r) noexcept;
  virtual void share(ref r) noexcept { retain(r); }
  void release(ref r) noexcept;
  /// Join a thread without a value, in the usual case: it is done, nobody else will come, and no exception.
  /// Else false, and nothing has happened.
  bool take_finished(ref r) noexcept;
  void detach(ref r) noexcept;
  ref new_record() noexcept;
  void init_record(record* r) noexcept;
  void begin_record(record* r) noexcept;
  /// A record that finish() will complete, with an empty value.
  ref make_pending() noexcept;
  void finish(ref r) noexcept;

  /// Put a call into another worker's mailbox; @p done is completed afterwards.
  void send(worker_no to, ref done, void (*call)(const void*), const void* closure,
            std::size_t bytes) noexcept;

  /// Way am: carry out requests of other hosts that wait here. Cheap when there are none.
  void serve_inbox() noexcept;
  /// What else it carries out then: calls of other layers.
  transport::far::call_table& calls() noexcept { return calls_; }

  /// For the trace, if there is one: global memory moved since @p since_ns (of base::fast_ns).
  void note_global(trace::global_access what, std::uint64_t since_ns, std::uint64_t bytes) noexcept;

  /// The last act: from here on the companion answers for this worker.
  void leave() noexcept { far_words_->gone.store(1, std::memory_order_release); }

  /// From the expose signal's handler.
  virtual void on_expose_signal(std::uint32_t float_control) noexcept;

  /// The root thread just ended: pop its entry and complete what is to complete.
  virtual void end_of_root_thread() noexcept = 0;

  worker_no me() const noexcept { return me_; }
  /// What it writes into locks (base/lock.hpp).
  std::uint32_t holder() const noexcept { return base::holder_of(transport::index(me_)); }
  public_words& words() noexcept { return *words_; }
  node_words& node() noexcept { return *node_; }
  /// The first record of worker 0's heap is the root thread's.
  static ref root_record(const transport::shm::layout& l) noexcept {
    return transport::make_ref(worker_no{0}, l.heap);
  }
  transport::shm::segment& memory() noexcept { return *seg_; }
  transport::fabric& net() noexcept { return net_; }
  std::uintptr_t region_low() const noexcept { return region_low_; }
  std::uintptr_t region_high() const noexcept { return region_high_; }
  /// Lowest address of the scheduler stack; a guard page lies below.
  std::uintptr_t scheduler_stack_low() const noexcept {
    return reinterpret_cast<std::uintptr_t>(scheduler_stack_low_);
  }
  /// Workers are threads of one process.
  bool in_process() const noexcept { return shape_.in_process; }
  /// Their threads' stacks; null where workers are processes, and with policies that steal children.
  const stack::pool* stacks() const noexcept { return shape_.stacks; }
  /// The end of the scheduler stack. As long as a thread runs, nobody is on it.
  std::byte* scheduler_stack() const noexcept { return scheduler_stack_; }
  /// The stack that @p sp lies in, if it is in memory that other workers share; else empty.
  virtual stack::range shared_stack_of(std::uintptr_t sp) const noexcept {
    const stack::range region{region_low_, region_high_};
    return !shape_.in_process && region.holds(sp) ? region : stack::range{};
  }
  /// Policies whose threads have small stacks with guard pages: if a fault at @p address means that the
  /// running thread used its own up, the policy's name; else null. For the handler of faults.
  virtual const char* overflow_of_thread(std::uintptr_t) const noexcept { return nullptr; }
  void finish_stats() noexcept;
  /// After a run without an error, when this worker does nothing any more: all that it had is gone.
  void check_invariants() noexcept;
#ifndef NDEBUG
  /// The same of a host, when all its workers have ended.
  static void check_host(const transport::shm::segment& memory, bool only_host) noexcept;
#endif

 protected:
  worker() = default;

  using section = base::section;

  /// What a policy does when a thread has to wait for @p r. Comes back when it is complete.
  virtual void block(ref r, const detail::place& where) noexcept = 0;
  /// A join found its thread done.
  virtual void joined(ref) noexcept {}
  /// Give back an object of another worker's heap.
  virtual void free_far(ref r) noexcept;
  /// Policies that poll: is a thread in this worker's own queue ready?
  virtual bool sees_ready_waiter() noexcept { return false; }
  virtual bool polls() const noexcept { return false; }
  /// Policies that poll: does a thread wait in this worker's own queue? Nobody wakes the worker when it is
  /// ready.
  virtual bool has_waiters() const noexcept { return false; }
  [[noreturn]] virtual void loop() noexcept = 0;

  void release_writes() const noexcept {
    if (hooks_.on_release != nullptr) hooks_.on_release();
  }
  void acquire_writes() const noexcept {
    if (hooks_.on_acquire != nullptr) hooks_.on_acquire();
  }
  bool serve_others() const noexcept { return hooks_.serve != nullptr && hooks_.serve(); }

  /// For assertions: do these describe the stack bytes of a thread, and its ancestors' frames with it?
  bool is_stack(std::uint64_t low, std::uint64_t top, std::uint64_t bytes_end) const noexcept {
    if (shape_.stacks != nullptr)
      return shape_.stacks->owns(low) && shape_.stacks->end_of(low) == top && bytes_end == top;
    return region_low_ <= low && low < top && top <= bytes_end && bytes_end <= region_high_;
  }

  // worker.cpp
  /// The bytes are in place. Does not come back.
  void resume(const loot& what, loot_kind kind) noexcept;
  void enter_thread(std::uint64_t top, std::uint64_t bytes_end, ref own_record) noexcept;
  void expose(spawn_slot* end, std::uint32_t float_control, bool by_signal) noexcept;
  void encode_pending(std::uintptr_t low, std::uintptr_t high) noexcept;
  void serve_mailbox() noexcept;
  /// The image of a thread; it may lie on the thread's own stack, where stacks stay.
  ref ref_of_image(const image* im) const noexcept {
    return shape_.stacks != nullptr ? seg_->ref_of_any(im) : ref_of(im);
  }
  /// Address sanitizer: the scheduler stack starts afresh, and the frames from @p left_sp to @p left_top (0:
  /// the end of the region) are gone. Without them they are kept.
  void announce_scheduler_stack(std::uintptr_t left_sp, std::uintptr_t left_top = 0) noexcept {
    if (context::sanitized()) [[unlikely]]
      announce_scheduler_stack_now(left_sp, left_top);
  }
  void announce_scheduler_stack_now(std::uintptr_t left_sp, std::uintptr_t left_top) noexcept;
  /// Address sanitizer: the stack that @p sp lies in is the current one from now on.
  void announce_stack(std::uintptr_t sp) noexcept {
    if (context::sanitized()) [[unlikely]]
      announce_stack_now(sp);
  }
  virtual void announce_stack_now(std::uintptr_t sp) noexcept;
  void delay() noexcept;
  static void delay_step() noexcept;
  void delay_a_little() noexcept;

  // frames.cpp: docs/protocols/frames.md
  std::uint64_t needed_end(const spawn_slot& parent, std::uint64_t top) noexcept;
  void frames_came(std::uint64_t top, std::uint64_t bytes_end) noexcept;
  void check_came_frames(const spawn_slot& bottom) noexcept;
  [[noreturn]] void lost_write(std::uintptr_t spawned_at) noexcept;
  [[noreturn]] void refuse_reference(std::uintptr_t spawned_at) noexcept;

  // far.cpp: these come back only if they got nothing
  void look_far() noexcept;
  void steal_far(std::uint32_t host) noexcept;
  void try_steal_by_words(worker_no victim) noexcept;
  bool sees_far_work() noexcept;
  std::uint32_t other_host() noexcept;

  // account.cpp
  /// The region is empty from now on, for this reason.
  void begin_idle(trace::idle_cause cause) noexcept;
  /// A thread is about to run, at @p now.
  void end_idle(std::uint64_t now) noexcept;
  /// A request to another host, begun at @p since, has been answered: gives back the time now.
  std::uint64_t count_transport(std::uint64_t since, worker_no target, call_no what) noexcept;
  /// A thread that waited at an outstanding join goes on at @p now; @p ready_ns: since it could, 0: not
  /// known.
  void count_outstanding(std::uint64_t ready_ns, std::uint64_t now) noexcept;
  void note(trace::kind what, std::uint64_t now, std::uint64_t a, std::uint64_t b = 0,
            std::uint64_t duration = 0, std::uint64_t bytes = 0, std::uint32_t other = 0,
            std::uint16_t detail = 0) noexcept;
  void note_place(std::uint64_t now, const detail::place& where) noexcept;

  // join.cpp
  void finish_record(ref r) noexcept;
  /// The record's last word: when it is done. Near records only; 0 for others.
  void stamp_done(ref r, std::uint64_t now) noexcept;
  /// @p now: when it became ready, 0: it never waited. @p in_front: others take it first, instead of last.
  void push_ready(ref image_ref, std::uint64_t now, bool in_front = false) noexcept;
  void lock_ready() noexcept;
  [[gnu::noinline, gnu::cold]] void lock_ready_slowly() noexcept;
  void unlock_ready() noexcept;
  ref pop_ready() noexcept;
  ref rotate_ready(image* last, ref last_ref) noexcept;
  void push_near(image* im, ref image_ref, bool in_front) noexcept;
  std::uint64_t exchange_state(ref r, std::uint64_t state) noexcept;
  ref make_near(ref image_ref) noexcept;
  ref next_waiter(ref image_ref) noexcept;
  void free_object(ref r) noexcept;
  void free_record(ref r) noexcept;
  bool abandon(ref r) noexcept;
  bool is_near(ref r) const noexcept {
    return shape_.host_count == 1 || net_.is_near(transport::ref_worker(r));
  }
  template <class T>
  [[gnu::always_inline]] T* at(ref r) const noexcept {  // is_near(r)
    return seg_->at<T>(r);
  }
  /// The object at its home's common address: what remote operations take.
  template <class T>
  T* home(ref r) const noexcept {
    return reinterpret_cast<T*>(seg_->common() + transport::ref_offset(r));
  }
  bool fetch(ref r) const noexcept;
  detail::payload fetched_payload() const noexcept;
  ref ref_of(const object* o) const noexcept {
    GODWIT_ASSERT(seg_->owns(o, sizeof *o), "only objects of the own heap are named by their place there");
    return transport::make_ref(me_, seg_->offset_of(o));
  }

  // idle.cpp
  void wait_for_work() noexcept;
  bool end_of_round() noexcept;
  void become_idle() noexcept;
  void become_running() noexcept;
  bool sees_work() noexcept;
  /// Workers that may have something to take: all but spares that have never been up.
  std::uint32_t present() const noexcept {
    return shape_.spares == 0 ? near_.count
                              : static_cast<std::uint32_t>(node_->present.load(std::memory_order_relaxed));
  }
  /// Spares: the monitor has sent this one back.
  bool is_to_rest() const noexcept {
    return is_spare_ && node_->up.load(std::memory_order_relaxed) <= spare_number_;
  }
  void rest() noexcept;
  void call_monitor() noexcept;
  bool nothing_is_ready() noexcept;
  void wake_one() noexcept;
  void wake_all() noexcept;
  void lock_gate() noexcept;
  [[noreturn]] void report_deadlock() noexcept;
  /// The run ends with this message. Where workers are threads they all leave; else the process ends.
  [[noreturn]] void fail_run(const char* text) noexcept;
  /// f(image, worker) for all suspended threads of this host, until it gives back true. What others do
  /// meanwhile may tear it.
  template <class F>
  bool any_image(F&& f) const noexcept;
  bool collect_events(std::int64_t wait_ns) noexcept;
  void deliver_events() noexcept;

  transport::shm::segment* seg_ = nullptr;
  worker_no me_{};
  std::uint32_t workers_ = 0;
  bool crowded_ = false;  // more workers than CPUs: give the CPU away while spinning
  options opts_;
  int force_mode_ = 0;  // 0 none, 1 parents, 2 children, 3 random
  worker_hooks hooks_{};
  public_words* words_ = nullptr;   // common address: own words; with a worker number: anybody's
  node_words* node_ = nullptr;      // alias of this host's
  const job_words* job_ = nullptr;  // common address, in worker 0
  mutable transport::fabric net_;
  transport::far::words* far_words_ = nullptr;  // own
  job_shape shape_;
  transport::shm::near_range near_;
  ref root_ = 0;
  std::byte* scheduler_stack_low_ = nullptr;
  std::byte* scheduler_stack_ = nullptr;
  std::uintptr_t thread_pointer_ = 0;  ///< the OS thread's own; threads may have theirs (thread_block)
  std::uintptr_t region_low_ = 0;
  std::uintptr_t region_high_ = 0;
  deque_owner deque_;
  heap heap_;
  base::small_random random_;
  base::small_random delay_random_;
  trace::ring trace_;
  std::uint64_t started_ns_ = 0;
  std::uint64_t idle_from_ns_ = 0;       ///< without a thread since; 0: has one
  std::uint64_t idle_transport_ns_ = 0;  ///< of that, waiting for other hosts
  trace::idle_cause idle_cause_ = trace::idle_cause::no_work;
  std::uint64_t idle_since_ns_ = 0;
  std::uint64_t last_signal_ns_ = 0;
  std::uint32_t failed_rounds_ = 0;
  std::uint32_t sleep_ms_ = 1;
  bool is_idle_ = false;
  bool is_spare_ = false;
  std::uint32_t spare_number_ = 0;
  bool has_events_ = false;         // collected, not delivered
  std::uint32_t turns_ = 0;         // of the loop, since it last looked for events
  std::uint32_t far_failures_ = 0;  // looks at other hosts in vain since the last thread
  std::uint64_t next_far_ns_ = 0;   // not before
  std::uint32_t last_far_ = 0;      // host looked at last
  std::uint32_t far_hint_ = ~0u;    // host where work was seen last
  std::uint32_t inbox_next_ = 0;
  call_site call_site_{};
  transport::far::call_table calls_;  // way am
  // What fetch read from another host; valid until it is called again.
  mutable result_words fetched_{};
  mutable std::vector<std::byte> fetched_bytes_;
};

/// Make the caller's worker, of the policy that the options name. @p in_place: it is a thread of a process
/// that has more of them.
worker& make_worker(const options& opts, bool in_place) noexcept;
/// Only where workers are threads: the caller's is gone, and nothing of it is used any more.
void end_worker() noexcept;

/// The worker that the caller runs on. A thread that may have been suspended since must ask again.
inline worker& this_worker() noexcept { return *static_cast<worker*>(detail::hot().owner); }

}  // namespace godwit::sched
