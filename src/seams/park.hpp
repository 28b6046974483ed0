// What mutexes, sleeping and blocking I/O are made of: suspend the caller until somebody wakes it. And where
// events from outside come in.
//
// A seam: src/sync, src/io and integrations/pthread call it, and know no scheduler; implemented in
// src/runtime/slow_path.cpp on top of src/sched. Substrate threads only. docs/protocols/park.md.
#pragma once

#include <godwit/detail/park.hpp>

#include <cstdint>

namespace godwit::detail {

/// on_substrate_threads(), and not an OS thread that a thread of the run started: on x86-64 that has its
/// worker's register, and must neither wait nor wake as that worker. Cost: some nanoseconds; a system call
/// where the caller's stack is no thread's.
bool on_worker() noexcept;

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

/// Call @p f when the calling thread is done, on its stack, before its result can be had. f may suspend. One
/// per thread: f takes care of all that the block holds, and is reset before it is called. May migrate the
/// calling thread (once).
void at_thread_end(void (*f)(thread_block*) noexcept) noexcept;

/// Give the calling thread a thread pointer of its own (x86-64: the base of segment fs), with all that the C
/// library reaches by it: errno, thread_local variables, caches of malloc. It follows the thread; while the
/// thread does not run, its worker has its own. 0: the worker's again. A thread ends with 0. x86-64 only
/// (src/context says so elsewhere). Cost: one instruction, or a system call on old machines.
void set_thread_pointer(std::uintptr_t value) noexcept;

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
  /// A scope was cancelled: threads that sleep in one, whichever, come back to ask. From any OS thread.
  void (*hasten)() noexcept;
};
/// For all runs that begin later. @p source lives as long as the program.
void set_event_source(const event_source* source) noexcept;

}  // namespace godwit::detail
