// One worker: runs threads, suspends them, steals, idles.
//
// Control flow: a thread runs on the uni-address region; everything that gives up the region (an ending
// thread
// whose parent left, an outstanding join, a yield) switches to the scheduler stack and from there either
// resumes
// the parent in place, or resumes a suspended thread, or enters the scheduler loop. The scheduler stack
// starts
// afresh each time: nothing on it outlives a decision.
// Documents: docs/architecture.md, docs/protocols/{deque,join,idle}.md. Called by: src/runtime.
// Files: worker.cpp (loop, steal, resume), join.cpp (records, suspension), idle.cpp (sleep, termination).
#pragma once

#include "base/pause.hpp"
#include "sched/deque.hpp"
#include "sched/far_calls.hpp"
#include "sched/record.hpp"
#include "trace/ring.hpp"
#include "transport/far/fabric.hpp"

#include <godwit/options.hpp>

#include <cstdint>
#include <vector>

namespace godwit::sched {

/// What src/runtime supplies.
struct worker_hooks {
  void (*exit_worker)() noexcept;  ///< everything is done: flush, report, _exit
  /// An exception left a thread whose future was dropped: nobody will see it otherwise.
  void (*unseen_error)(const detail::payload& error) noexcept;
};

/// The hosts of a run and how workers reach each other's. Inherited by every worker.
struct job_shape {
  std::uint32_t workers = 0;
  const transport::shm::near_range* hosts = nullptr;  ///< the workers of each host; one host: [0, workers)
  std::uint32_t host_count = 1;
  std::uint32_t my_host = 0;
  worker_no bell_of{};        ///< the worker whose bell calls the companion that serves this one
  bool whole_host_calls = true;  ///< a steal from another host may ask any of its workers
  bool far_calls = true;         ///< steal from another host by one call, else word by word
  bool serves_itself = false;    ///< requests of other hosts are carried out by the workers (way am)
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
  void init(const worker_setup& setup) noexcept;

  /// Leave the calling stack for good. Worker 0 starts @p root first.
  void start(void (*root)(void*), void* arg) noexcept;

  // Entry points of slow_path.hpp; see there.
  void spawn_point(bool child_may_leave) noexcept;
  ref pop_public(spawn_slot* b) noexcept;
  void publish(ref to, detail::outcome kind, const void* data, std::size_t bytes) noexcept;
  void complete(ref r) noexcept;
  ref make_completed(detail::outcome kind, const void* data, std::size_t bytes) noexcept;
  detail::payload wait(ref r, detail::place where) noexcept;
  detail::payload payload_of(ref r) const noexcept;
  bool is_complete(ref r) const noexcept;
  void retain(ref r) noexcept;
  void release(ref r) noexcept;
  void detach(ref r) noexcept;
  void yield_thread() noexcept;
  ref new_record() noexcept;
  /// A record that finish() will complete, with an empty value.
  ref make_pending() noexcept;
  void finish(ref r) noexcept;

  /// Put a call into another worker's mailbox; @p done is completed afterwards.
  void send(worker_no to, ref done, void (*call)(const void*), const void* closure,
            std::size_t bytes) noexcept;

  /// Way am: carry out requests of other hosts that wait here. Cheap when there are none.
  void serve_inbox() noexcept;

  /// The last act: from here on the companion answers for this worker.
  void leave() noexcept { far_words_->gone.store(1, std::memory_order_release); }

  /// From the expose signal's handler.
  void on_expose_signal(std::uint32_t float_control) noexcept;

  /// The thread that just ended: pop its entry and complete what is to complete.
  void end_of_root_thread() noexcept;

  worker_no me() const noexcept { return me_; }
  public_words& words() noexcept { return *words_; }
  node_words& node() noexcept { return *node_; }
  /// The first record of worker 0's heap is the root thread's.
  static ref root_record(const transport::shm::layout& l) noexcept {
    return transport::make_ref(worker_no{0}, l.heap);
  }
  const public_words* words_of_all() const noexcept { return words_; }  // same address in every worker
  transport::shm::segment& memory() noexcept { return *seg_; }
  std::uintptr_t region_low() const noexcept { return region_low_; }
  std::uintptr_t region_high() const noexcept { return region_high_; }
  /// Lowest address of the scheduler stack; a guard page lies below.
  std::uintptr_t scheduler_stack_low() const noexcept {
    return reinterpret_cast<std::uintptr_t>(scheduler_stack_low_);
  }
  void finish_stats() noexcept;
  void check_invariants() noexcept;

 private:
  /// Inside one, the expose signal keeps its hands off: it may interrupt user code anywhere, but not the
  /// runtime's own bookkeeping. Nests.
  class section {
   public:
    section() noexcept : before_(godwit_hot_.in_runtime) {
      godwit_hot_.in_runtime = 1;
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~section() {
      std::atomic_signal_fence(std::memory_order_seq_cst);
      godwit_hot_.in_runtime = before_;
    }
    section(const section&) = delete;
    section& operator=(const section&) = delete;

   private:
    std::uint32_t before_;
  };

  // worker.cpp
  [[noreturn]] void loop() noexcept;
  bool try_steal(worker_no victim) noexcept;  // does not come back if it got something
  void resume_image(ref r) noexcept;          // does not come back
  [[noreturn]] void resume(const loot& what, loot_kind kind) noexcept;
  void look_far() noexcept;                      // does not come back if it got something
  void steal_far(std::uint32_t host) noexcept;   // likewise
  void try_steal_by_words(worker_no victim) noexcept;  // likewise
  bool sees_far_work() noexcept;
  std::uint32_t other_host() noexcept;
  void enter_thread(std::uint64_t top, ref own_record) noexcept;
  void expose(spawn_slot* end, std::uint32_t float_control) noexcept;
  void encode_pending(std::uintptr_t low, std::uintptr_t high) noexcept;
  void force(bool children) noexcept;
  void serve_mailbox() noexcept;
  void announce_scheduler_stack(std::uintptr_t left_sp) noexcept;
  void announce_region() noexcept;
  void delay() noexcept;
  std::uint64_t hash_frame(std::uint64_t low, std::uint64_t high) const noexcept;

  // join.cpp
  static void suspended_entry(void* arg, std::uintptr_t sp);
  static void completed_entry(void* arg);
  void suspend(std::uintptr_t sp, ref waiting_for, detail::place where) noexcept;
  void finish_record(ref r) noexcept;
  void push_ready(ref image_ref) noexcept;
  ref make_near(ref image_ref) noexcept;
  ref next_waiter(ref image_ref) noexcept;
  void free_object(ref r) noexcept;
  void free_record(ref r) noexcept;
  bool abandon(ref r) noexcept;
  bool is_near(ref r) const noexcept { return net_.is_near(transport::ref_worker(r)); }
  template <class T>
  T* at(ref r) const noexcept {  // is_near(r)
    return seg_->at<T>(r);
  }
  /// The object at its home's common address: what remote operations take.
  template <class T>
  T* home(ref r) const noexcept {
    return reinterpret_cast<T*>(seg_->common() + transport::ref_offset(r));
  }
  bool fetch(ref r) const noexcept;
  detail::payload fetched_payload() const noexcept;
  ref ref_of(const object* o) const noexcept { return transport::make_ref(me_, seg_->offset_of(o)); }

  // idle.cpp
  void wait_for_work() noexcept;
  void become_idle() noexcept;
  void become_running() noexcept;
  bool sees_work() noexcept;
  void wake_one() noexcept;
  void wake_all() noexcept;
  void lock_gate() noexcept;
  [[noreturn]] void report_deadlock() noexcept;

  transport::shm::segment* seg_ = nullptr;
  worker_no me_{};
  std::uint32_t workers_ = 0;
  bool crowded_ = false;  // more workers than CPUs: give the CPU away while spinning
  options opts_;
  int force_mode_ = 0;  // 0 none, 1 parents, 2 children, 3 random
  worker_hooks hooks_{};
  public_words* words_ = nullptr;  // common address: own words; with a worker number: anybody's
  node_words* node_ = nullptr;     // alias of this host's
  const job_words* job_ = nullptr;  // common address, in worker 0
  mutable transport::fabric net_;
  transport::far::words* far_words_ = nullptr;  // own
  job_shape shape_;
  transport::shm::near_range near_;
  ref root_ = 0;
  std::byte* scheduler_stack_low_ = nullptr;
  std::byte* scheduler_stack_ = nullptr;
  std::uintptr_t region_low_ = 0;
  std::uintptr_t region_high_ = 0;
  deque_owner deque_;
  heap heap_;
  base::small_random random_;
  std::uint64_t idle_since_ns_ = 0;
  std::uint64_t last_signal_ns_ = 0;
  std::uint32_t failed_rounds_ = 0;
  std::uint32_t sleep_ms_ = 1;
  bool is_idle_ = false;
  std::uint32_t far_failures_ = 0;   // looks at other hosts in vain since the last thread
  std::uint64_t next_far_ns_ = 0;    // not before
  std::uint32_t last_far_ = 0;       // host looked at last
  std::uint32_t far_hint_ = ~0u;     // host where work was seen last
  std::uint32_t inbox_next_ = 0;
  // What fetch read from another host; valid until it is called again.
  mutable result_words fetched_{};
  mutable std::vector<std::byte> fetched_bytes_;
};

/// The worker that this process is. (With workers as threads this becomes thread-local.)
extern worker this_worker;

}  // namespace godwit::sched
