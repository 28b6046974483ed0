// Workers that steal continuations: one template for all policies that do (policies.hpp). See worker.hpp.
//
// Where policies differ, `if constexpr` says how. The default (greedy) is what docs/protocols describe.
#pragma once

#include "base/world.hpp"
#include "sched/arrivals.hpp"
#include "sched/lazy_spawns.hpp"
#include "sched/policies.hpp"
#include "sched/stack_range.hpp"
#include "sched/wait_queue.hpp"
#include "sched/worker.hpp"

namespace godwit::sched {

/// Why a thread leaves its worker. On its stack; gone as soon as it runs again.
struct leaving {
  ref waiting_for = 0;
  const detail::place* where = nullptr;
  image* room = nullptr;                  ///< where stacks stay: for its image
  detail::publish_fn* publish = nullptr;  ///< park; else null
  void* arg = nullptr;
  detail::wakes by = detail::wakes::inside;
  const char* what = nullptr;  ///< it waits for, if that is not a thread's end
  bool sends = false;          ///< it goes to worker `to`, `exactly`, or to any of its host
  worker_no to{};
  bool exactly = false;
  bool waits() const noexcept { return waiting_for != 0 || what != nullptr; }
};

/// @p Policy: on<a policy, a substrate>.
template <class Policy>
class continuation_worker final : public worker {
 public:
  void init(const worker_setup& setup) noexcept override;
  void start(void (*root)(void*), void* arg) noexcept override;
  bool spawn_point(bool child_may_leave, bool always_begins) noexcept override;
  bool look_at_spawn(bool child_may_leave, bool always_begins) noexcept;
  bool refuses_child() noexcept;
  ref pop_public(spawn_slot* b) noexcept override;
  void find_spawns() noexcept override;
  void find_spawns_of(const context::frame_registers& interrupted) noexcept override;
  lazy_way lazy_child_returned(std::uintptr_t value, std::uintptr_t give) noexcept override;
  lazy_way lazy_child_failed(ref error) noexcept override;
  void lazy_spawn_point() noexcept override;
  void* new_stack(spawn_slot& slot, const void* closure, std::size_t bytes) noexcept override;
  void free_stack(void* top) noexcept override;
  void more_stacks() noexcept override;
  const char* overflow_of_thread(std::uintptr_t address) const noexcept override;
  stack::range shared_stack_of(std::uintptr_t sp) const noexcept override;
  void yield_thread() noexcept override;
  bool park(detail::publish_fn* publish, void* arg, detail::wakes by, const char* what,
            const detail::place& where) noexcept override;
  std::uint64_t span_now() const noexcept override;
  std::uint64_t span_of_ended() const noexcept override { return span_ns_; }
  ref create_thread(detail::task_entry* entry, const void* closure, std::size_t bytes, priority level,
                    bool always_begins) noexcept override;
  bool run_if_unbegun(ref r) noexcept override;
  void run_unbegun_of_scope() noexcept override;
  bool migrate(worker_no to, bool exactly, std::uintptr_t frames,
               const detail::place& where) noexcept override;
  void arrive(const parcel& what, const data_part& data) noexcept override;
  void complete(ref r) noexcept override;
  void end_of_root_thread() noexcept override;

 private:
  static constexpr bool stalls = Policy::stalls;
  static constexpr bool iso = Policy::iso_address;
  static constexpr bool stacks_stay = Policy::stacks_stay;
  static constexpr bool can_park = Policy::can_park;
  static constexpr bool takes_turns = Policy::takes_turns;
  static constexpr bool lazy = Policy::lazy;
  /// of a continuation that goes to another worker: it begins so far below its frames
  static constexpr std::size_t bytes_below = lazy ? lazy_spawns::bytes_below : context::fork_bytes_below;
  /// From thread to thread without the scheduler loop in between, where only the own queue matters.
  static constexpr bool hands_over = stacks_stay && !stalls && !Policy::crude_scheme && !Policy::spans;
  /// every thread has one, and it is never copied inside a host
  static constexpr bool own_stack = iso || stacks_stay;
  /// all stacks lie in one memory, each at its address: there is nothing to copy between workers either
  static constexpr bool one_memory = iso && takes_turns;

  [[noreturn]] void loop() noexcept override;
  void block(ref r, const detail::place& where, const char* what) noexcept override;
  void run_here(ref r) noexcept override { arrivals_.push(r); }
  void announce_stack_now(std::uintptr_t sp) noexcept override;
  void announce_thread(std::uintptr_t sp) noexcept override;
  void forget_frames(std::uintptr_t sp, std::uintptr_t high) noexcept;

  /// Substrate sim: the region is in use from @p low on while this worker's scheduler is at work.
  void uses_region(std::uintptr_t low) noexcept {
    if constexpr (takes_turns) here_.used_from = low;
  }
  /// Substrate sim: virtual time goes on by what this step takes.
  static void spend(base::step what) noexcept {
    if constexpr (takes_turns) base::made_world->spend(what);
  }
  /// Substrate sim: what follows can be seen by others. Their time must have come as far.
  static void catch_up() noexcept {
    if constexpr (takes_turns) base::made_world->catch_up();
  }
  void deliver_events() noexcept;
  void look_at(worker_no v) noexcept;  // these come back if they got nothing
  void look_at_others() noexcept;
  void look_at_all() noexcept;
  void look_at_anybody() noexcept;
  void look_far() noexcept;
  void try_steal(worker_no victim) noexcept;  // does not come back if it got something
  loot take_continuation(worker_no victim, const spawn_slot& own, const spawn_slot& above,
                         spawn_slot* place) noexcept;
  void try_waiting() noexcept;        // likewise
  void resume_image(ref r) noexcept;  // does not come back
  void note_stay(const image& im) noexcept;
  bool owns_nothing(std::uintptr_t low, std::uintptr_t high) const noexcept;
  void hold_owner(image& im) const noexcept;
  std::uint64_t complete_record(ref r, image& head, bool& comes) noexcept;
  bool bring_image(const transport::far::entry& e, image& head) noexcept;
  void run_image(const image& head, worker_no from, std::uint64_t since) noexcept;  // does not come back
  void sample_spawn() noexcept;
  void expose() noexcept;
  void force(bool child_may_leave) noexcept;
  void parents_leave() noexcept;
  void put_aside() noexcept;
  template <class Which>
  void oldest_leave(unsigned most, bool in_front, bool stay, Which&& which) noexcept;
  /// poll while nobody asks for anything.
  std::uint32_t poll_unasked() const noexcept {
    // lazy: who spawns by another policy is to hear of it
    return here_.exceptions.tells && !lazy ? 0 : context::poll_exceptions;
  }
  static void suspended_entry(void* arg, std::uintptr_t sp);
  static void completed_entry(void* arg);
  bool leave(leaving& why) noexcept;
  /// Where stacks stay: godwit_ctx_suspend onto the scheduler stack. A thread pointer of the thread's own,
  /// whose stack ends at @p end, goes with it.
  std::uintptr_t suspend_in_place(std::uintptr_t end, void (*entry)(void*, std::uintptr_t),
                                  void* arg) noexcept;
  // Suspension: docs/protocols/join.md, Steps.
  /// What is left on this worker of a thread that leaves.
  struct parting {
    spawn_slot* slot;  ///< its parent's
    bool parent_here = true;
    ref own = 0;                           ///< the record that the thread completes
    std::uint64_t top = 0, bytes_end = 0;  ///< where its stack ends, and what goes along
  };
  void suspend(std::uintptr_t sp, const leaving& why, const detail::place& where) noexcept;
  parting part_from_parent(std::uintptr_t sp) noexcept;
  image* copy_out(std::uintptr_t sp, const parting& p, const leaving& why,
                  const detail::place& where) noexcept;
  void note_suspension(image& im, std::uintptr_t sp, const parting& p, const leaving& why,
                       const detail::place& where) noexcept;
  bool publish(image* im, const parting& p, const leaving& why) noexcept;
  bool publish_parked(image* im, const parting& p, const leaving& why) noexcept;
  void cancel(image* im, std::uintptr_t sp, const parting& p) noexcept;  // does not come back
  void go_on_with_parent(const parting& p) noexcept;                     // likewise
  static void fresh_entry(void* arg);
  // A thread that has not begun is run by who waits for it: docs/protocols/park.md.
  static const fresh_thread& unbegun(const image& im) noexcept;
  bool may_run_unbegun(const carried& mine) noexcept;
  bool take_unbegun(ref r) noexcept;
  ref take_next_unbegun() noexcept;
  static void run_unbegun(ref r) noexcept;
  static void refuse_unbegun(fresh_thread& t, ref r) noexcept;
  void complete_unbegun(ref r) noexcept;
  [[gnu::noinline, gnu::visibility("hidden")]] static detail::word_pair unbegun_entry(std::uintptr_t r,
                                                                                      std::uintptr_t,
                                                                                      spawn_slot* slot,
                                                                                      void*) noexcept;
  void take_in(image* im, ref r, bool exactly) noexcept;
  void begin_parcel(ref r) noexcept;
  static void parcel_entry(void* arg);
  [[gnu::noinline]] bool may_leave(std::uintptr_t frames, bool far) noexcept;
  void send_away(image* im, const leaving& why, bool parent_here) noexcept;
  static void migrant_arrives(const void* closure);
  std::uintptr_t take_stack() noexcept;
  [[noreturn]] void no_more_stacks() const noexcept;
  bool may_hand_over() noexcept;
  bool loop_has_more() const noexcept;
  void yield_by_loop() noexcept;
  bool has_registers_only() const noexcept;
  struct handing {
    image* yields;
    ref next;  ///< of an image
  };
  void hand_over() noexcept;
  static void handed_over_entry(void* arg, std::uintptr_t sp);
  void next_thread(trace::idle_cause cause) noexcept;  // does not come back
  void begin_thread(ref r) noexcept;                   // does not come back
  /// @p room: where stacks stay, on the thread's own stack. @p running: it is the thread that runs, or its
  /// parent's continuation before the thread has done anything: the OS thread's exceptions are its.
  image* new_image(std::uint64_t low, std::uint64_t top, std::uint64_t bytes_end, image* room,
                   bool running) noexcept;
  /// End of the stack that @p sp lies in; @p below: the slot of the parent, whose frames begin there.
  std::uint64_t stack_end(std::uint64_t sp, const spawn_slot& below) const noexcept {
    if constexpr (iso) return own_stacks_.top_of(sp);
    if constexpr (stacks_stay) return here_.shape.stacks->end_of(sp);
    return below.sp;
  }
  /// So many threads at most begin on top of each other because they are joined: a slot of the deque each.
  static constexpr std::ptrdiff_t most_nested = 1024;
  /// Where stacks stay: of the stack that ends at @p end.
  static detail::thread_block* block_at(std::uintptr_t end) noexcept {
    return reinterpret_cast<detail::thread_block*>(end - stack::pool::block_bytes);
  }
  /// True: the thread was one that begins later (create_thread).
  bool end_own_stack(std::uintptr_t sp) noexcept;
  void keep_stack(void* top) noexcept;
  /// iso: threads of the free functions would share their parent's stack, and be moved with it. End the run
  /// in time.
  void check_own_stack(std::uintptr_t sp, std::uintptr_t parents) const noexcept;
  void check_left_frames(const spawn_slot* first, const spawn_slot* last) noexcept;
  void mark_ready(ref waiter, ref completed, std::uint64_t now) noexcept;
  void joined(ref r) noexcept override;

  // options::span. A strand is what a thread does between two calls of the runtime.
  void strand_begins(std::uint64_t span) noexcept;
  /// Longest chain up to now; the strand's time counts as work.
  std::uint64_t strand_ends() noexcept;
  std::uint64_t span_of(ref r) const noexcept;

  void look_at_return() noexcept;
  ref pop_lazy(spawn_slot*& mine) noexcept;

  lazy_spawns lazy_spawns_{here_};
  arrivals arrivals_{here_};
  wait_queue waiting_;           // stalling join
  stack_range own_stacks_;       // iso
  std::uintptr_t ended_sp_ = 0;  // own_stack: where the thread that is ending stood
  // stacks_stay: stacks that ended here and did not begin here since the pool got some
  unsigned kept_stacks_ = 0;
  unsigned most_kept_stacks_ = 0;
  std::uint32_t straight_ = 0;      // turns since the loop was entered
  std::uint32_t yields_alone_ = 0;  // yields that found nobody else here
  bool looks_first_ = false;        // at other workers, then at the own queue
  bool watched_ = false;            // traced, or delayed: threads go by way of the loop
  std::uint64_t strand_from_ns_ = 0;
  // Longest chain up to the strand's begin; between strands, up to the last one's end.
  std::uint64_t span_ns_ = 0;
};

}  // namespace godwit::sched
