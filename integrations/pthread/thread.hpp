// One POSIX thread that is a lightweight thread of Godwit.
//
// Its pthread_t is the address of its block of thread-local storage (tls.hpp), as in the C library; the word
// `self_` in that block leads here. Objects are used again, with their blocks, never freed: a late look at an
// old pthread_t finds a thread that has ended. Code: thread.cpp (create, end, join), cancel.cpp,
// attributes.cpp, start.cpp (main). docs/pthread.md.
#pragma once

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <pthread.h>
#include <resolv.h>

#include "real.hpp"

GODWIT_REAL(pthread_testcancel);

namespace godwit::pthread {

struct specific_values;
struct handler_frame;

/// Signals sent to the process that are kept until some thread wants them. pending.cpp
extern std::atomic<std::uint64_t> process_signals_ __attribute__((visibility("hidden")));

struct thread {
  char* block = nullptr;   ///< thread-local storage: also the pthread_t
  thread* next = nullptr;  ///< in the list of unused ones
  void* (*start)(void*) = nullptr;
  int (*start_c11)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  int tid = 0;
  bool is_main = false;
  bool heavy = false;  ///< in a forked child: an OS thread now
  char name[16] = {};

  /// How it ends. W as said: alive -> (by itself) ended; joinable -> detached or joining (by anybody, once);
  /// gone: joined, or ended detached.
  static constexpr std::uint32_t alive = 0, ended = 1;
  std::uint32_t state = alive;  ///< atomic; joiners wait for it
  enum class fate : std::uint32_t { joinable, joining, detached, over, gone };
  std::atomic<fate> what_then{fate::joinable};  ///< W the thread at its end, who joins or detaches it; R all

  // Cancellation. docs/pthread.md says where.
  std::atomic<bool> cancel_asked{false};  ///< W all (pthread_cancel), R the thread
  bool cancel_enabled = true;
  int cancel_type = PTHREAD_CANCEL_DEFERRED;
  bool ending = false;
  bool to_be_cancelled() const noexcept {
    return cancel_asked.load(std::memory_order_seq_cst) && cancel_enabled && !ending;
  }
  std::atomic<const void*> waits_under{nullptr};  ///< W the thread, R who disturbs it. See wait_once

  // Waiting for descriptors: see io.cpp.
  std::atomic<std::uint32_t> io_lock{0};  ///< W and R the thread, who disturbs it
  void* io_wait = nullptr;                ///< under io_lock
  bool io_disturbed = false;              ///< likewise
  bool io_to_cancel = false;              ///< the reason: likewise
  bool io_refused = false;                ///< it is to look only, not to wait. W and R the thread

  // Signals that wait for this thread, and those that it does not want. pending.cpp, signals.cpp
  std::atomic<std::uint64_t> signals{0};            ///< W who sends one and who takes one, R all
  std::atomic<std::uint64_t> blocked{0};            ///< W the thread, R all
  std::atomic<std::uint64_t> waits_for_signals{0};  ///< W the thread in sigwait, R who sends
  bool has_signals() const noexcept {
    return ((signals.load(std::memory_order_seq_cst) | process_signals_.load(std::memory_order_seq_cst)) &
            ~blocked.load(std::memory_order_relaxed)) != 0;
  }
  /// handlers that have run for it; atomic, sigsuspend waits for it to change
  std::uint32_t handled = 0;
  handler_frame* handlers = nullptr;  ///< those that run now, the innermost first. W the thread
  stack_t alternate{nullptr, SS_DISABLE, 0};
  thread* next_alive = nullptr;  ///< list of all, under the lock of signals.cpp
  thread* prev_alive = nullptr;
  bool exit_asked = false;  ///< a handler that ran beside it has called pthread_exit. W before cancel_asked
  void* exit_result = nullptr;

  char* stack_low = nullptr;  ///< the scheduler's
  char* stack_high = nullptr;
  /// where it runs, if that is another: the program's, or one of ours that is larger
  char* program_stack = nullptr;
  std::size_t program_stack_bytes = 0;
  bool program_stack_is_ours = false;

  struct __res_state resolver {};  ///< of the C library's name look-ups
};

extern __thread thread* self_ __attribute__((tls_model("initial-exec"), visibility("hidden")));

/// The calling thread; null: an OS thread.
inline thread* self() noexcept { return self_; }
/// It runs on a worker and may be suspended.
inline bool is_light() noexcept {
  const thread* t = self_;
  return t != nullptr && !t->heavy;
}
/// The thread of that name; null: an OS thread's.
thread* thread_of(pthread_t t) noexcept;

/// Let another thread run, if one is ready.
void give_way() noexcept;

/// The run is on, and there are lightweight threads.
extern bool running_ __attribute__((visibility("hidden")));
/// A forked child: all its threads are OS threads. W its first one
extern bool forked_ __attribute__((visibility("hidden")));

/// The calling thread's destructors of specific values (keys.cpp).
void run_key_destructors() noexcept;
/// When the calling OS thread ends, run these, and then end_os_thread.
void watch_os_thread() noexcept;
void end_os_thread() noexcept;

/// What pthread_exit, pthread_sigmask and sigaction do here. Inside this library these names mean the C
/// library's own functions (real.hpp).
[[noreturn]] void exit_thread(void* result);
int change_signal_mask(int how, const sigset_t* set, sigset_t* before);
int change_signal_action(int signal, const struct sigaction* action, struct sigaction* before) noexcept;

/// Where a wait found that the thread is to be cancelled. Does not come back.
[[noreturn]] void end_by_cancel();
/// At a cancellation point.
inline void test_cancel() {
  if (!is_light())
    REAL(pthread_testcancel)();
  else if (self()->to_be_cancelled()) [[unlikely]]
    end_by_cancel();
}
/// In a forked child, whose first thread was @p t: what that one has said about its cancellation.
void use_real_cancellation(const thread& t) noexcept;

/// On its own stack, with the worker's thread-local storage: make the calling lightweight thread @p t and
/// call its function.
void run_as(thread& t) noexcept;
/// For the thread that runs main: the initial OS thread's block.
void describe_main(thread& t, char* block) noexcept;
/// main has called pthread_exit, or the first thread of a forked child has ended: end the process when the
/// others have ended. Does not come back.
[[noreturn]] void wait_for_others_and_exit() noexcept;
/// In a forked child: there are none yet.
void forget_other_threads() noexcept;

/// f(argument) with the stack pointer at @p top; real.S.
extern "C" __attribute__((visibility("hidden"))) void godwit_pthread_call_on(void* top, void (*f)(void*),
                                                                             void* argument);
/// What suspends the caller. The scheduler finds a thread by its stack; a coroutine of its own (swapcontext)
/// and a handler on an alternate stack have others, and go to the far end of the thread's stack for that.
template <class F>
void on_own_stack(F f) noexcept {
  constexpr std::size_t room = 32 << 10;
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  const thread* t = self();
  if (t == nullptr || t->heavy || (here >= t->stack_low && here < t->stack_high)) [[likely]]
    f();
  else
    godwit_pthread_call_on(
        t->stack_low + room, [](void* p) { (*static_cast<F*>(p))(); }, &f);
}

/// What pthread_setschedparam gives back: there are no real-time threads.
int check_scheduling(int policy, int priority) noexcept;

/// Of every thread, main included: a power of two.
std::size_t thread_stack_bytes() noexcept;

/// This thread's number, in the C library's locks and ours. Local.
int own_tid() noexcept;

/// Signals: those sent to the calling thread are handled now. False: a call that was interrupted for them
/// goes on (SA_RESTART). Handlers may end the thread (pthread_exit). handlers.cpp
bool handle_signals();
/// If the thread waits for a descriptor, it goes on, and this gives back true. io.cpp
bool disturb_io(thread& t, bool to_cancel, bool sent) noexcept;
/// Before the run.
void watch_io() noexcept;

}  // namespace godwit::pthread
