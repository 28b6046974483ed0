// What mutexes, sleeping and threads that begin later know of a thread that waits. Substrate threads only: a
// waiter is an address, and these mean the same everywhere only inside one process.
//
// Not an interface for users. Implemented in src/runtime/slow_path.cpp on top of src/sched; whoever suspends
// and wakes threads includes src/seams/park.hpp. docs/protocols/park.md.
#pragma once

#include <godwit/detail/slow_path.hpp>

#include <cstddef>
#include <cstdint>

namespace godwit {

/// Of threads that begin later (thread.hpp): of those that are ready at a worker, the high ones go first.
enum class priority : std::uint8_t { normal, high };

}  // namespace godwit

namespace godwit::detail {

/// A suspended thread, as who will wake it knows it. Opaque; gone as soon as the thread runs again.
struct waiter;

/// Who will wake a suspended thread. Another thread of the run: if all wait for each other, that is a
/// deadlock, which is reported. Or something outside (a file descriptor, a clock): the run goes on as long as
/// somebody waits for that.
enum class wakes : std::uint32_t { inside, outside };

/// A thread that begins some time later, at any worker (its creator goes on first). @p closure is relocated
/// (its bytes are taken);
/// @p entry runs it, unless it is cancelled (run_into), and puts its result into the record that this gives
/// back. Cost: an object and a queue operation; it gets a stack when it begins.
ref create_thread(task_entry* entry, const void* closure, std::size_t bytes,
                  priority level = priority::normal);

/// Release the record of a thread that has ended, if that is all there is to a join: no value, no exception,
/// no other consumer. A thread that has not begun does so here, on a stack of its own. False: it has not
/// ended, or there is more to do. May migrate.
bool take_finished(ref record) noexcept;

/// What belongs to a thread, at the end of its stack. All zero when a thread begins.
struct thread_block {
  void* suspended;                         ///< the scheduler's
  void* local;                             ///< values of thread_specific
  void (*at_end)(thread_block*) noexcept;  ///< see at_thread_end
  /// this_thread::get_id: the record of a thread that was created later; 0: one that was spawned
  std::uint64_t number;
  void* foreign;                  ///< of a layer above: the pthread that this thread is
  std::uintptr_t thread_pointer;  ///< see set_thread_pointer. 0: the worker's
  std::uint64_t high;             ///< not 0: of high priority
  void* unused_;
};
/// The calling thread's. Never null inside a run on substrate threads; else null.
thread_block* this_block() noexcept;

/// The caller is a thread of a run on substrate threads.
inline bool on_substrate_threads() noexcept {
  return hot_test<offsetof(hot_words, in_place)>() &&
         hot_load<offsetof(hot_words, free_stacks), void*>() != nullptr;
}
/// Ends the program with a message that says how to get it, unless on_substrate_threads().
void need_substrate_threads(const char* what) noexcept;

}  // namespace godwit::detail
