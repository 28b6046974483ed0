// Waiting for a word: what mutexes, conditions, semaphores, joins and sleeping are made of here.
//
// A futex in the process: threads queue under an address, in first-come order. Lightweight threads are
// suspended; OS threads (those that signal handlers run on, helpers of the C library, all threads of a forked
// child) sleep in the kernel. The lock of an address's queue is held from the test of the word until the
// waiter is saved, so no wake-up is lost. Used by all of integrations/pthread.
// docs/decisions/0013-pthread.md. Test: tests/pthread.
#pragma once

#include <cstdint>
#include <ctime>
#include <pthread.h>

namespace godwit::pthread {

enum class waited : std::uint32_t {
  changed,  ///< the word was not as expected: nothing was waited for
  woken,    ///< by wake
  timed_out,
  cancelled,    ///< pthread_cancel: only where asked for
  interrupted,  ///< a signal was handled: likewise
};

inline constexpr std::uint64_t no_deadline = 0;

struct wait_options {
  std::uint64_t deadline_ns = no_deadline;  ///< of CLOCK_MONOTONIC
  bool cancellable = false;
  bool interruptible = false;  ///< the wait ends when a signal has to be handled; else it goes on after that
  const char* what = "pthread";  ///< for reports, which know words like "mutex"; a literal
  /// the word lies in memory of several processes: it is looked at in turns, 20 us to 2 ms apart, because
  /// others wake nobody here
  bool shared = false;
};

/// Wait under the address @p word, as long as it holds @p expected.
/// Handlers of signals run in it, and may end the thread.
waited wait_while(const std::uint32_t* word, std::uint32_t expected, const wait_options& how);
/// The same without a word: until woken.
waited wait_under(const void* address, const wait_options& how);

/// Wake up to @p most of those that wait under @p address; how many they were.
unsigned wake(const void* address, unsigned most) noexcept;
inline constexpr unsigned all_of_them = ~0u;

/// The one thread, if it waits and may be disturbed for that reason. False: it does not.
struct thread;
/// @p sent: for a signal that it was sent; not if it has handled that meanwhile.
bool disturb(thread& t, waited why, bool sent = false) noexcept;
/// An OS thread, if it waits and may be cancelled.
void disturb_os_thread(pthread_t th) noexcept;

/// In a forked child: nobody waits any more.
void forget_waiters() noexcept;

/// Deadline in nanoseconds of CLOCK_MONOTONIC for an absolute time of @p clock. False: not a valid time or
/// clock.
struct when {
  bool valid;
  std::uint64_t deadline_ns;
};
when deadline_of(int clock, const timespec* at) noexcept;
std::uint64_t now_ns() noexcept;

}  // namespace godwit::pthread
