// What mutexes, sleeping, blocking I/O and threads that begin later are made of: suspend the caller until
// somebody wakes it. Substrate threads only: a waiter is an address, and these mean the same everywhere only
// inside one process.
//
// Not an interface for users. Implemented in src/runtime/entry.cpp on top of src/sched.
// docs/protocols/park.md.
#pragma once

#include <godwit/detail/slow_path.hpp>

#include <cstddef>
#include <cstdint>

namespace godwit::detail {

/// A suspended thread, as who will wake it knows it. Opaque; gone as soon as the thread runs again.
struct waiter;

/// Who will wake a suspended thread. Another thread of the run: if all wait for each other, that is a
/// deadlock, which is reported. Or something outside (a file descriptor, a clock): the run goes on as long as
/// somebody waits for that.
enum class wakes : std::uint32_t { inside, outside };

/// Called once the thread is completely saved, on another stack: make @p self known to who will wake it, and
/// let go of the lock that protects this (not before: it may run elsewhere at once). False: there is nothing
/// to wait for any more, the thread goes on. Must not block, throw, or touch the thread's stack after @p self
/// became known.
using publish_fn = bool(void* arg, waiter* self) noexcept;

/// Suspend the calling thread until unpark. @p what ("mutex", "read"...) and @p where are shown in deadlock
/// reports; @p what must be a literal. True: it was suspended, and may go on at another worker; false:
/// publish gave back false. Ends the run outside substrate threads. Cost: two switches, one queue operation.
bool park(publish_fn* publish, void* arg, wakes by, const char* what, const place& where) noexcept;

/// Make it ready to run, exactly once for each park that published it, with the same @p by. By a thread of
/// the run (or, from inside deliver, by a worker). Local, and wakes a sleeping worker.
void unpark(waiter* w, wakes by) noexcept;

/// A thread that begins some time later, at any worker (its creator goes on first). @p closure is relocated
/// (its bytes are taken);
/// @p entry runs it and puts its result into the record that this gives back. Cost: an object and a queue
/// operation; it gets a stack when it begins.
ref create_thread(task_entry* entry, const void* closure, std::size_t bytes);

/// Release the record of a thread that has ended, if that is all there is to a join: no value, no exception,
/// no other consumer. False: nothing has happened. Local.
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
  void* unused_[2];
};
/// The calling thread's. Never null inside a run on substrate threads; else null.
thread_block* this_block() noexcept;

/// Call @p f when the calling thread is done, on its stack, before its result can be had. f may suspend. One
/// per thread: f takes care of all that the block holds, and is reset before it is called. May migrate the
/// calling thread (once).
void at_thread_end(void (*f)(thread_block*) noexcept) noexcept;

/// Give the calling thread a thread pointer of its own (x86-64: the base of segment fs), with all that the C
/// library reaches by it: errno, thread_local variables, caches of malloc. It follows the thread; while the
/// thread does not run, its worker has its own. 0: the worker's again. A thread ends with 0. x86-64 only
/// (src/context says so elsewhere). Cost: one instruction, or a system call on old machines.
void set_thread_pointer(std::uintptr_t value) noexcept;

/// The caller is a thread of a run on substrate threads.
inline bool on_substrate_threads() noexcept {
  return hot_test<offsetof(hot_words, in_place)>() &&
         hot_load<offsetof(hot_words, free_stacks), void*>() != nullptr;
}
/// Ends the program with a message that says how to get it, unless on_substrate_threads().
void need_substrate_threads(const char* what) noexcept;

// Events from outside: who waits for them (wakes::outside) is woken by workers that have nothing else to do,
// and now and then by others.
struct event_source {
  /// Look for events, and wait up to @p wait_ns for one. True: there are some, and deliver must be called by
  /// the same worker. False: none, or another worker is looking. Must not make threads ready.
  bool (*collect)(std::int64_t wait_ns) noexcept;
  /// Wake those that can go on.
  void (*deliver)() noexcept;
  /// Let a worker that waits in collect come back. From any worker, also before it begins to wait.
  void (*interrupt)() noexcept;
};
/// For all runs that begin later. @p source lives as long as the program.
void set_event_source(const event_source* source) noexcept;

}  // namespace godwit::detail
