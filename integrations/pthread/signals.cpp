// Signals: who handles them, and masks.
//
// Workers block all signals that can be blocked. Those sent to the process reach the initial OS thread, and handlers run there, beside
// the program's threads, never on top of one. Its mask is what all threads block: a signal that one of them would take is taken. A signal that is
// sent to a thread (pthread_kill) is kept until that thread calls something that may block, where its handler runs; a wait that
// signals interrupt is interrupted for it. docs/pthread.md, "Signals".
#include "signals.hpp"

#include <csignal>
#include <linux/futex.h>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>

#include "real.hpp"
#include "report.hpp"
#include "wait.hpp"

GODWIT_REAL(pthread_kill);
GODWIT_REAL(pthread_sigmask);
GODWIT_REAL(pthread_sigqueue);
GODWIT_REAL(raise);

namespace godwit::pthread {

namespace {

constexpr int most = 64;

// Masks as one word: bit n - 1 is signal n, as the kernel has it.
std::uint64_t word_of(const sigset_t& set) noexcept { return set.__val[0]; }
sigset_t set_of(std::uint64_t word) noexcept {
  sigset_t set;
  sigemptyset(&set);
  set.__val[0] = word;
  return set;
}
constexpr std::uint64_t never_blocked = (1ull << (SIGKILL - 1)) | (1ull << (SIGSTOP - 1)) | (3ull << 31);  // 32, 33: the C library's

struct spin_lock {
  std::atomic<std::uint32_t> held{0};
  void lock() noexcept {
    while (held.exchange(1, std::memory_order_acquire) != 0) __builtin_ia32_pause();
  }
  void unlock() noexcept { held.store(0, std::memory_order_release); }
};

spin_lock masks;
std::uint32_t threads_ = 0;         // under masks
std::uint32_t blockers_[most] = {};  // by how many of them each signal is blocked
std::uint32_t masked_ = 0;          // threads that block any
std::uint64_t mask_now_ = 0;
// What the initial thread is asked for, and has done.
std::uint64_t asked_mask_ = 0;
std::uint32_t asked_ = 0, done_ = 0;  // futexes

void futex(std::uint32_t* word, int op, std::uint32_t value, const timespec* limit = nullptr) noexcept {
  ::syscall(SYS_futex, word, op, value, limit, nullptr, 0);
}

void count(std::uint64_t blocked, int by) noexcept {
  if (blocked != 0) masked_ += static_cast<std::uint32_t>(by);
  for (int i = 0; i < most && blocked != 0; ++i, blocked >>= 1)
    if ((blocked & 1) != 0) blockers_[i] += static_cast<std::uint32_t>(by);
}

/// Under masks. What the initial thread has to be asked for; 0: nothing.
std::uint32_t update() noexcept {
  if (masked_ == 0 && mask_now_ == 0) return 0;
  std::uint64_t mask = 0;
  for (int i = 0; i < most; ++i)
    if (threads_ != 0 && blockers_[i] == threads_) mask |= std::uint64_t{1} << i;
  if (mask == mask_now_) return 0;
  mask_now_ = mask;
  __atomic_store_n(&asked_mask_, mask, __ATOMIC_RELAXED);
  return __atomic_add_fetch(&asked_, 1, __ATOMIC_SEQ_CST);
}

/// Wait until it has been done: but a handler that runs there now may last.
void apply(std::uint32_t number) noexcept {
  if (number == 0) return;
  futex(&asked_, FUTEX_WAKE_PRIVATE, 1);
  for (int i = 0; i < 10; ++i) {
    const std::uint32_t done = __atomic_load_n(&done_, __ATOMIC_SEQ_CST);
    if (static_cast<std::int32_t>(done - number) >= 0) return;
    constexpr timespec a_while{0, 1'000'000};
    futex(&done_, FUTEX_WAIT_PRIVATE, done, &a_while);
  }
}

int change_mask(thread& t, int how, const sigset_t* set, sigset_t* before) noexcept {
  const std::uint64_t old = t.blocked.load();
  if (before != nullptr) *before = set_of(old);
  if (set == nullptr) return 0;
  std::uint64_t mask = word_of(*set) & ~never_blocked;
  if (how == SIG_BLOCK)
    mask |= old;
  else if (how == SIG_UNBLOCK)
    mask = old & ~mask;
  else if (how != SIG_SETMASK)
    return EINVAL;
  if (mask == old) return 0;
  std::uint32_t number;
  {
    const std::lock_guard hold(masks);
    count(old, -1);
    count(mask, 1);
    t.blocked.store(mask);
    number = update();
  }
  apply(number);
  handle_signals();
  return 0;
}

/// Send to a thread of ours.
int send(thread& t, int signal) noexcept {
  if (signal < 0 || signal > most) return EINVAL;
  if (__atomic_load_n(&t.state, __ATOMIC_SEQ_CST) == thread::ended) return ESRCH;
  if (signal == 0) return 0;
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  // What is not handled ends, stops or leaves alone the process, whichever thread it was sent to.
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
    if (action.sa_handler == SIG_DFL) ::kill(::getpid(), signal);
    return 0;
  }
  t.signals.fetch_or(std::uint64_t{1} << (signal - 1));
  if (&t == self())
    handle_signals();
  else
    disturb(t, waited::interrupted);
  return 0;
}

}  // namespace

void begin_signals(thread& main) noexcept {
  sigset_t now;
  REAL(pthread_sigmask)(SIG_SETMASK, nullptr, &now);
  main.blocked.store(word_of(now));
  count_mask(main, true);
  mask_now_ = word_of(now);
}

void count_mask(const thread& t, bool begins) noexcept {
  std::uint32_t number;
  {
    const std::lock_guard hold(masks);
    threads_ += begins ? 1u : ~0u;
    count(t.blocked.load(), begins ? 1 : -1);
    number = update();
  }
  apply(number);
}

void use_real_mask(const thread& t) noexcept {
  const sigset_t set = set_of(t.blocked.load());
  REAL(pthread_sigmask)(SIG_SETMASK, &set, nullptr);
}

void serve_signals() noexcept {
  for (std::uint32_t seen = 0;;) {
    const std::uint32_t asked = __atomic_load_n(&asked_, __ATOMIC_SEQ_CST);
    if (asked == seen) {
      futex(&asked_, FUTEX_WAIT_PRIVATE, asked);
      continue;
    }
    const sigset_t set = set_of(__atomic_load_n(&asked_mask_, __ATOMIC_RELAXED));
    REAL(pthread_sigmask)(SIG_SETMASK, &set, nullptr);
    seen = asked;
    __atomic_store_n(&done_, asked, __ATOMIC_SEQ_CST);
    futex(&done_, FUTEX_WAKE_PRIVATE, 1 << 30);
  }
}

void handle_signals() noexcept {
  thread* t = self();
  if (t == nullptr || !t->has_signals()) return;
  for (int signal = 1; signal <= most; ++signal) {
    const std::uint64_t bit = std::uint64_t{1} << (signal - 1);
    if ((t->signals.load() & ~t->blocked.load() & bit) == 0) continue;
    t->signals.fetch_and(~bit);
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) continue;
    const std::uint64_t before = t->blocked.load();
    t->blocked.store(before | word_of(action.sa_mask) | ((action.sa_flags & SA_NODEFER) != 0 ? 0 : bit));
    if ((action.sa_flags & SA_SIGINFO) != 0) {
      siginfo_t info{};
      info.si_signo = signal;
      info.si_code = SI_TKILL;
      info.si_pid = ::getpid();
      info.si_uid = ::getuid();
      action.sa_sigaction(signal, &info, nullptr);
    } else {
      action.sa_handler(signal);
    }
    t->blocked.store(before);
  }
}

}  // namespace godwit::pthread

using namespace godwit::pthread;

GODWIT_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return is_light() ? change_mask(*self(), how, set, before) : REAL(pthread_sigmask)(how, set, before);
}
GODWIT_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  const int error = pthread_sigmask(how, set, before);
  if (error == 0) return 0;
  errno = error;
  return -1;
}
GODWIT_EXPORT int pthread_kill(pthread_t th, int signal) noexcept {
  thread* t = thread_of(th);
  return t == nullptr || t->heavy ? REAL(pthread_kill)(th, signal) : send(*t, signal);
}
GODWIT_EXPORT int pthread_sigqueue(pthread_t th, int signal, const sigval value) noexcept {
  thread* t = thread_of(th);
  if (t == nullptr || t->heavy) return REAL(pthread_sigqueue)(th, signal, value);
  static bool said = false;
  not_supported(said, "a value sent with pthread_sigqueue", "the signal comes without it");
  return send(*t, signal);
}
GODWIT_EXPORT int raise(int signal) noexcept {
  if (!is_light() || signal == SIGABRT) return REAL(raise)(signal);
  const int error = send(*self(), signal);
  if (error == 0) return 0;
  errno = error;
  return -1;
}
