// Signals: what the files share. signals.cpp (masks, actions, the initial OS thread), pending.cpp (what
// waits), handlers.cpp (running them), signal_calls.cpp (the functions of the C library).
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>

#include "thread.hpp"

namespace godwit::pthread {

constexpr int most_signals = 64;

// Masks as one word: bit n - 1 is signal n, as the kernel has it.
inline std::uint64_t bit_of(int signal) noexcept { return std::uint64_t{1} << (signal - 1); }
inline std::uint64_t word_of(const sigset_t& set) noexcept { return set.__val[0]; }
inline sigset_t set_of(std::uint64_t word) noexcept {
  sigset_t set;
  sigemptyset(&set);
  set.__val[0] = word;
  return set;
}

struct spin_lock {
  std::atomic<std::uint32_t> held{0};  ///< W and R all
  void lock() noexcept {
    while (held.exchange(1, std::memory_order_acquire) != 0) __builtin_ia32_pause();
  }
  void unlock() noexcept { held.store(0, std::memory_order_release); }
};

/// For an OS thread that signals may reach, while it holds a lock that handlers take: a handler, of the
/// program's too, would wait for it for ever. Lightweight threads run where all are blocked: for them,
/// nothing.
class all_blocked {
 public:
  all_blocked() noexcept : changed_(!is_light()) {
    if (changed_) block();
  }
  ~all_blocked() {
    if (changed_) unblock();
  }
  all_blocked(const all_blocked&) = delete;

 private:
  void block() noexcept;
  void unblock() noexcept;
  bool changed_;
  sigset_t before_;
};

/// On the initial thread, before it has given its block away.
void begin_signals(thread& main) noexcept;
/// The initial OS thread, from then on: signals sent to the process arrive here.
[[noreturn]] void serve_signals() noexcept;
/// In a forked child, whose signals the kernel brings to its threads itself. Before use_real_mask.
void end_serving() noexcept;
/// A thread with this mask begins, or ends.
void count_mask(thread& t, bool begins) noexcept;
/// Give the calling OS thread the caller's mask, for a forked child.
void use_real_mask(const thread& t, sigset_t* before = nullptr) noexcept;
void set_real_mask(const sigset_t& mask) noexcept;
/// Of the calling thread; without looking for what may now be handled.
void put_mask(thread& t, std::uint64_t mask) noexcept;

/// What the program has asked for.
struct sigaction action_of(int signal) noexcept;
inline bool is_handled(const struct sigaction& a) noexcept {
  return a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN;
}
/// A signal that is neither handled nor ignored: the process ends, stops, or nothing happens.
void do_default(int signal) noexcept;
/// A signal to a thread of ours: an error number as pthread_kill's.
int send_to(thread& t, const siginfo_t& info) noexcept;
/// As tgkill: -1 and errno. If it is the caller, its handler has run before this comes back.
int send_signal(thread& t, int signal);
siginfo_t info_of(int signal, int code) noexcept;
/// The program's handler of @p info has run beside @p t, in signals.cpp; leave it, and let that thread end.
/// Does not come back if so.
void leave_handler_beside(void* result) noexcept;
/// The caller has sent signals to its own process: the initial OS thread has given them to threads, and the
/// caller has handled its own, before this comes back (or after 0.4 s, if a handler beside a thread takes
/// that long). Cost: two switches of OS threads.
void settle_signals();
/// The same, if the calling thread would handle @p signal: the initial OS thread may be late.
void settle_handled(int signal);
/// By the number that gettid gives. Null: no thread of ours that is alive.
thread* find_thread(int tid) noexcept;
/// The calling OS thread runs a handler beside a thread: which?
thread* beside_whom() noexcept;

// pending.cpp
/// @p to null: any thread. False: as many as may wait do, and the information is lost.
bool add_signal(thread* to, const siginfo_t& info) noexcept;
/// The lowest of @p wanted that waits for @p t, or for any thread if @p process_too. False: none.
bool take_signal(thread& t, std::uint64_t wanted, bool process_too, siginfo_t& out) noexcept;
/// @p t has ended. Calls @p lost for those that were sent to the process and given to it.
void forget_signals(thread& t) noexcept;
/// In a forked child.
void forget_all_signals() noexcept;

/// Handlers of the calling thread that run now.
struct handler_frame {
  handler_frame* outer;
  std::uint64_t mask_before;
  bool on_alternate;
};
inline bool on_alternate(const thread& t) noexcept {
  for (const handler_frame* f = t.handlers; f != nullptr; f = f->outer)
    if (f->on_alternate) return true;
  return false;
}

}  // namespace godwit::pthread
