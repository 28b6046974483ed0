// Workers that steal children: the papers' comparison (003, IV-B), on the same deque, records, mail and
// idleness.
//
// spawn puts a task -- closure and join record in one object of the shared heap -- into the deque and goes
// on; a thief takes the oldest and copies the closure. All entries are public. A thread that has begun stays
// on its worker (tied). Joins are stalling. Two ways to wait:
//   run to completion  the join runs other tasks on top of the waiting thread, which stays buried until they
//   are done
//   full               every thread has a stack; who waits leaves it and queues (wait_queue.hpp)
// A task of the own deque is run first in both, as a call that comes back to the join.
// Not here: futures between threads that are no relatives under run to completion; they could wait for what
// they bury.
#pragma once

#include "base/own_memory.hpp"
#include "sched/policies.hpp"
#include "sched/wait_queue.hpp"
#include "sched/worker.hpp"

namespace godwit::sched {

template <class Policy>
class child_worker final : public worker {
 public:
  ~child_worker() override;
  void init(const worker_setup& setup) noexcept override;
  void start(void (*root)(void*), void* arg) noexcept override;
  bool spawn_point(bool child_may_leave, bool always_begins) noexcept override;
  ref pop_public(spawn_slot* b) noexcept override;
  ref spawn_task(detail::task_entry* entry, const detail::task_bytes& closure,
                 std::uintptr_t spawned_at) noexcept override;
  void yield_thread() noexcept override;
  bool migrate(worker_no to, bool exactly, std::uintptr_t frames,
               const detail::place& where) noexcept override;
  void arrive(const parcel& what, const data_part& data) noexcept override;
  void share(ref r) noexcept override;
  void complete(ref r) noexcept override;
  void end_of_root_thread() noexcept override;
  const char* overflow_of_thread(std::uintptr_t address) const noexcept override;
  stack::range private_stack() const noexcept override;
  std::uint64_t number_of_thread() const noexcept override { return full ? 0 : number_; }

 private:
  static constexpr bool full = Policy::full;
  static constexpr std::size_t descriptor_room = 128;  ///< of a thread, at the top of its stack

  /// A thread that has begun. Lies at the top of its stack; the root thread's is root_thread_.
  struct thread {
    ref record;
    std::byte* stack_low;      ///< of its stack, for reuse; null: the region
    std::uintptr_t caller_sp;  ///< the join that called it waits here for it; 0: it was started by the loop
    thread* caller;
    bool caller_left;  ///< and has left with this one, which it waits for
    ref waits_for;     ///< record of the join it stands at
    const detail::place* where;
    carried takes;  ///< while it waits
  };

  [[noreturn]] void loop() noexcept override;
  void block(ref r, const detail::place& where, const char* what) noexcept override;
  void run_here(ref) noexcept override {}  // who has begun stays anyway

  // Substrate sim: see continuation_worker.
  void uses_region(std::uintptr_t low) noexcept { here_.used_from = low; }
  void spend(base::step what) const noexcept {
    if (here_.shape.takes_turns) base::made_world->spend(what);
  }
  void catch_up() const noexcept {
    if (here_.shape.takes_turns) base::made_world->catch_up();
  }
  bool refers_to_stacks(const void* closure, std::size_t bytes) const noexcept;
  bool is_in_own_stack(std::uintptr_t word) const noexcept;
  void make_room() noexcept;
  ref pop_own() noexcept;
  bool begins_here(ref r) const noexcept;
  ref pop_here() noexcept;
  ref take_from(worker_no victim) noexcept;
  ref look_for_task() noexcept;
  void run_task(ref r, bool buried) noexcept;
  void finish_task(ref r) noexcept;
  void begin(ref r) noexcept;  // from the loop; does not come back

  // run to completion
  void bury(ref r, const detail::place& where) noexcept;
  void check_made_here(ref r, const detail::place& where) const noexcept;

  // full
  void call(ref task, ref waits_for, const detail::place& where) noexcept;
  void wait_in_queue(ref r, const detail::place& where) noexcept;
  void enqueue(thread& t, std::uintptr_t sp, ref waits_for, const detail::place& where) noexcept;
  void note_leaves(const thread& t, ref waits_for, const detail::place& where, std::uint64_t now) noexcept;
  void try_waiting() noexcept;  // does not come back if somebody is ready
  thread* new_thread(ref task) noexcept;

  std::size_t slots_ = 0;             ///< of the deque
  spawn_slot* compact_at_ = nullptr;  ///< spawn looks for slots to use again when it comes here
  ref running_ = 0;                   ///< run to completion: the thread on top
  std::uint64_t number_ = 1;          ///< likewise: its number, of those that began here
  std::uint64_t last_number_ = 1;
  ref starting_ = 0;  ///< the task that the loop is about to run
  thread root_thread_{};
  thread* current_ = nullptr;
  base::own_deque<ref> arrivals_;  ///< tasks that were sent here, and begin here
  wait_queue waiting_;
  // full: low ends of stacks
  base::own_vector<std::byte*> stacks_;  ///< all, in their order
  base::own_vector<std::byte*> free_stacks_;
};

}  // namespace godwit::sched
