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
GODWIT_REAL(sigtimedwait);
GODWIT_REAL(sigsuspend);
GODWIT_REAL(pause);
GODWIT_REAL(sigaltstack);
extern "C" int __wrap_sigaction(int, const struct sigaction*, struct sigaction*);

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

// What the program asked for. Under actions_lock.
spin_lock actions_lock;
struct sigaction actions_[most + 1];
bool is_ours_[most + 1] = {};  // installed: on_signal
thread* main_ = nullptr;
std::uint32_t handled_ = 0;  // raised by every handler that has run; pause waits for it

bool is_fault(int signal) noexcept {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP || signal == SIGABRT ||
         signal == SIGSYS;
}

void was_handled(bool restart) noexcept {
  __atomic_fetch_add(&handled_, 1, __ATOMIC_SEQ_CST);
  wake(&handled_, all_of_them);
  if (!restart && main_ != nullptr && !main_->heavy) disturb(*main_, waited::interrupted);  // one thread: as if it had handled it
}

/// On the initial OS thread, or some other that is no worker's.
void on_signal(int signal, siginfo_t* info, void* context) {
  const int before = errno;
  actions_lock.lock();
  const struct sigaction action = actions_[signal];
  actions_lock.unlock();
  if ((action.sa_flags & SA_SIGINFO) != 0)
    action.sa_sigaction(signal, info, context);
  else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
    action.sa_handler(signal);
  if (running_) was_handled((action.sa_flags & SA_RESTART) != 0);
  errno = before;
}

/// Send to a thread of ours.
int send(thread& t, int signal) noexcept {
  if (signal < 0 || signal > most) return EINVAL;
  if (__atomic_load_n(&t.state, __ATOMIC_SEQ_CST) == thread::ended) return ESRCH;
  if (signal == 0) return 0;
  const std::uint64_t bit = std::uint64_t{1} << (signal - 1);
  if ((t.blocked.load() & bit) != 0) {  // until it is unblocked, or waited for
    t.signals.fetch_or(bit);
    if ((t.waits_for_signals.load() & bit) != 0) disturb(t, waited::interrupted, true);
    return 0;
  }
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  // What is not handled ends, stops or leaves alone the process, whichever thread it was sent to.
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
    if (action.sa_handler == SIG_DFL) ::kill(::getpid(), signal);
    return 0;
  }
  t.signals.fetch_or(bit);
  if (&t == self())
    handle_signals();
  else
    disturb(t, waited::interrupted, true);
  return 0;
}

}  // namespace

void begin_signals(thread& main) noexcept {
  sigset_t now;
  main_ = &main;
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

void use_real_mask(const thread& t, sigset_t* before) noexcept {
  const sigset_t set = set_of(t.blocked.load());
  REAL(pthread_sigmask)(SIG_SETMASK, &set, before);
}
void set_real_mask(const sigset_t& mask) noexcept { REAL(pthread_sigmask)(SIG_SETMASK, &mask, nullptr); }

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

bool handle_signals() noexcept {
  thread* t = self();
  if (t == nullptr || !t->has_signals()) return true;
  bool restart = true;
  for (int signal = 1; signal <= most; ++signal) {
    const std::uint64_t bit = std::uint64_t{1} << (signal - 1);
    if ((t->signals.load() & ~t->blocked.load() & bit) == 0) continue;
    t->signals.fetch_and(~bit);
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    if (action.sa_handler == SIG_DFL) {
      ::kill(::getpid(), signal);
      continue;
    }
    restart = restart && (action.sa_flags & SA_RESTART) != 0;
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
    __atomic_fetch_add(&handled_, 1, __ATOMIC_SEQ_CST);
  }
  return !restart;
}

}  // namespace godwit::pthread

using namespace godwit::pthread;

namespace godwit::pthread {
int change_signal_mask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return is_light() ? change_mask(*self(), how, set, before) : REAL(pthread_sigmask)(how, set, before);
}
int change_signal_action(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  return sigaction(signal, action, before);
}
}  // namespace godwit::pthread
GODWIT_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_signal_mask(how, set, before);
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

GODWIT_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  if (signal < 1 || signal > most || is_fault(signal)) return REAL(sigaction)(signal, action, before);
  const std::lock_guard hold(actions_lock);
  const bool ours = is_ours_[signal];
  const struct sigaction old = actions_[signal];
  struct sigaction real {};
  int error = 0;
  if (action == nullptr) {
    error = REAL(sigaction)(signal, nullptr, &real);
  } else {
    struct sigaction mine = *action;
    const bool handler = action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
    if (handler) {
      mine.sa_sigaction = on_signal;
      mine.sa_flags = (mine.sa_flags | SA_SIGINFO) & ~SA_ONSTACK;
    }
    const struct sigaction asked = *action;  // before may be the same object
    actions_[signal] = asked;
    is_ours_[signal] = handler;
    error = REAL(sigaction)(signal, &mine, &real);
    if (error != 0) {
      actions_[signal] = old;
      is_ours_[signal] = ours;
    }
  }
  // SA_RESETHAND: it may be the default again.
  if (error == 0 && before != nullptr) *before = ours && real.sa_sigaction == on_signal ? old : real;
  return error;
}
GODWIT_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  struct sigaction action {}, before {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

// Workers have alternate stacks of their own, and handlers of faults run there.
GODWIT_EXPORT int sigaltstack(const stack_t* stack, stack_t* before) noexcept {
  if (!is_light()) return REAL(sigaltstack)(stack, before);
  if (before != nullptr) *before = {nullptr, SS_DISABLE, 0};
  return 0;
}

GODWIT_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* limit) {
  thread* t = self();
  if (!is_light()) return REAL(sigtimedwait)(set, info, limit);
  const std::uint64_t wanted = word_of(*set);
  const std::uint64_t end = limit != nullptr ? now_ns() + static_cast<std::uint64_t>(limit->tv_sec) * 1'000'000'000 +
                                                   static_cast<std::uint64_t>(limit->tv_nsec)
                                             : ~0ull;
  // Those sent to the process wait in the kernel, which tells nobody that they are there.
  for (std::uint64_t pause_ns = 100'000;; pause_ns = pause_ns < 5'000'000 ? pause_ns * 2 : pause_ns) {
    test_cancel();
    t->waits_for_signals.store(wanted);
    if (const std::uint64_t mine = t->signals.load() & wanted; mine != 0) {
      const int number = __builtin_ctzll(mine) + 1;
      t->signals.fetch_and(~(std::uint64_t{1} << (number - 1)));
      t->waits_for_signals.store(0);
      if (info != nullptr) {
        *info = {};
        info->si_signo = number;
        info->si_code = SI_TKILL;
        info->si_pid = ::getpid();
        info->si_uid = ::getuid();
      }
      return number;
    }
    constexpr timespec now{};
    int number = REAL(sigtimedwait)(set, info, &now);
    const std::uint64_t time = now_ns();
    if (number < 0 && errno == EAGAIN && time < end) {
      const std::uint64_t until = time + pause_ns;
      const waited w = wait_under(t, {.deadline_ns = until < end ? until : end, .cancellable = true, .interruptible = true, .what = "signal"});
      if (w == waited::cancelled) {
        t->waits_for_signals.store(0);
        end_by_cancel();
      }
      if (w != waited::interrupted || !t->has_signals()) continue;
      if (!handle_signals()) continue;
      errno = EINTR;
    }
    t->waits_for_signals.store(0);
    return number;
  }
}
GODWIT_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) { return sigtimedwait(set, info, nullptr); }
GODWIT_EXPORT int sigwait(const sigset_t* set, int* number) {
  for (;;) {
    const int n = sigtimedwait(set, nullptr, nullptr);
    if (n > 0) {
      *number = n;
      return 0;
    }
    if (errno != EINTR) return errno;
  }
}

namespace {
/// Until a handler has run since @p seen.
int wait_for_handler(std::uint32_t seen) {
  while (__atomic_load_n(&handled_, __ATOMIC_SEQ_CST) == seen) {
    const waited w = wait_while(&handled_, seen, {.cancellable = true, .interruptible = true, .what = "signal"});
    if (w == waited::cancelled) end_by_cancel();
    if (w == waited::interrupted) handle_signals();
    if (w == waited::interrupted || w == waited::woken) break;
  }
  errno = EINTR;
  return -1;
}
}  // namespace
GODWIT_EXPORT int pause() {
  if (!is_light()) return REAL(pause)();
  test_cancel();
  return wait_for_handler(__atomic_load_n(&handled_, __ATOMIC_SEQ_CST));
}
GODWIT_EXPORT int sigsuspend(const sigset_t* mask) {
  if (!is_light()) return REAL(sigsuspend)(mask);
  test_cancel();
  const std::uint32_t seen = __atomic_load_n(&handled_, __ATOMIC_SEQ_CST);
  sigset_t before;
  change_mask(*self(), SIG_SETMASK, mask, &before);
  wait_for_handler(seen);
  change_mask(*self(), SIG_SETMASK, &before, nullptr);
  errno = EINTR;
  return -1;
}
