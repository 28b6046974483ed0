// The C library's functions for signals. What they mean for threads of ours: signals.cpp, pending.cpp,
// handlers.cpp.
#include <csignal>
#include <cstdlib>
#include <sys/syscall.h>
#include <unistd.h>

#include "real.hpp"
#include "signals.hpp"
#include "wait.hpp"

GODWIT_REAL(pthread_kill);
GODWIT_REAL(pthread_sigqueue);
GODWIT_REAL(raise);
GODWIT_REAL(kill);
GODWIT_REAL(killpg);
GODWIT_REAL(tgkill);
GODWIT_REAL(sigqueue);
GODWIT_REAL(sigpending);
GODWIT_REAL(sigtimedwait);
GODWIT_REAL(sigsuspend);
GODWIT_REAL(pause);
GODWIT_REAL(sigaltstack);

using namespace godwit::pthread;

namespace {

int fail_with(int error) noexcept {
  errno = error;
  return -1;
}
bool is_signal(int signal) noexcept { return signal >= 0 && signal <= most_signals; }

/// Sent to a thread of ours. If it is the caller, the handler runs before this comes back.
int send(thread& t, const siginfo_t& info) {
  const int error = send_to(t, info);
  if (error == 0 && &t == self()) handle_signals();
  return error;
}

/// A signal to this process from one of its own threads: who does not block it takes it itself, before this
/// comes back. False: the kernel's.
bool take_own(const siginfo_t& info) {
  thread* t = self();
  if (!is_light() || info.si_signo == 0 || !is_signal(info.si_signo)) return false;
  if ((t->blocked.load(std::memory_order_seq_cst) & bit_of(info.si_signo)) != 0 ||
      action_of(info.si_signo).sa_handler == SIG_IGN)
    return false;
  if (info.si_signo == SIGKILL || info.si_signo == SIGSTOP) return false;
  send(*t, info);
  return true;
}

/// It has been sent to a group that this process belongs to. Who blocks it need not see it handled.
void settle(int signal) {
  if (is_light() && signal > 0 && is_signal(signal) &&
      (self()->blocked.load(std::memory_order_seq_cst) & bit_of(signal)) == 0)
    settle_signals();
}

}  // namespace

GODWIT_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_signal_mask(how, set, before);
}
GODWIT_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  const int error = change_signal_mask(how, set, before);
  return error == 0 ? 0 : fail_with(error);
}
GODWIT_EXPORT int sigpending(sigset_t* set) noexcept {
  if (REAL(sigpending)(set) != 0) return -1;
  const thread* t = self();
  if (is_light())
    *set = set_of((word_of(*set) | t->signals.load(std::memory_order_seq_cst) |
                   process_signals_.load(std::memory_order_seq_cst)) &
                  t->blocked.load(std::memory_order_seq_cst));
  return 0;
}

GODWIT_EXPORT int pthread_kill(pthread_t th, int signal) noexcept {
  thread* t = thread_of(th);
  if (t == nullptr || t->heavy) return REAL(pthread_kill)(th, signal);
  if (!is_signal(signal)) return EINVAL;
  if (signal == 0) return __atomic_load_n(&t->state, __ATOMIC_SEQ_CST) == thread::ended ? ESRCH : 0;
  return send(*t, info_of(signal, SI_TKILL));
}
GODWIT_EXPORT int pthread_sigqueue(pthread_t th, int signal, const sigval value) noexcept {
  thread* t = thread_of(th);
  if (t == nullptr || t->heavy) return REAL(pthread_sigqueue)(th, signal, value);
  if (!is_signal(signal) || signal == 0) return EINVAL;
  siginfo_t info = info_of(signal, SI_QUEUE);
  info.si_value = value;
  return send(*t, info);
}
GODWIT_EXPORT int raise(int signal) noexcept {
  if (!is_light() || (signal == SIGABRT && !is_handled(action_of(signal)))) return REAL(raise)(signal);
  const int error = pthread_kill(::pthread_self(), signal);
  return error == 0 ? 0 : fail_with(error);
}
GODWIT_EXPORT int kill(pid_t pid, int signal) noexcept {
  if (pid == ::getpid() && take_own(info_of(signal, SI_USER))) return 0;
  const int r = REAL(kill)(pid, signal);
  if (r == 0 && (pid == 0 || pid == -1 || (pid < 0 && -pid == ::getpgrp()))) settle(signal);
  return r;
}
GODWIT_EXPORT int killpg(pid_t group, int signal) noexcept {
  const int r = REAL(killpg)(group, signal);
  if (r == 0 && (group == 0 || group == ::getpgrp())) settle(signal);
  return r;
}
namespace godwit::pthread {
int send_signal(thread& t, int signal) {
  if (!is_signal(signal)) return fail_with(EINVAL);
  const int error = signal != 0 ? send(t, info_of(signal, SI_TKILL)) : 0;
  return error == 0 ? 0 : fail_with(error);
}
}  // namespace godwit::pthread
GODWIT_EXPORT int tgkill(pid_t pid, pid_t tid, int signal) {
  thread* t = pid == ::getpid() && is_light() ? find_thread(tid) : nullptr;
  return t != nullptr ? send_signal(*t, signal) : REAL(tgkill)(pid, tid, signal);
}
GODWIT_EXPORT int sigqueue(pid_t pid, int signal, const sigval value) noexcept {
  siginfo_t info = info_of(signal, SI_QUEUE);
  info.si_value = value;
  if (pid == ::getpid() && take_own(info)) return 0;
  return REAL(sigqueue)(pid, signal, value);
}

namespace {
/// Signals that were sent before are still handled as the program wanted them to be then.
int change_action(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  if (action != nullptr && is_signal(signal)) settle_handled(signal);
  return change_signal_action(signal, action, before);
}
}  // namespace
GODWIT_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  return change_action(signal, action, before);
}
namespace {
sighandler_t set_handler(int number, sighandler_t handler, int flags) noexcept {
  struct sigaction action {
  }, before{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  return change_action(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}
std::uint64_t restarting_off_ = 0;  // siginterrupt
}  // namespace
GODWIT_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  const bool off = number > 0 && number <= most_signals && (restarting_off_ & bit_of(number)) != 0;
  return set_handler(number, handler, off ? 0 : SA_RESTART);
}
extern "C" {
[[gnu::visibility("default"), gnu::alias("signal")]] sighandler_t bsd_signal(int, sighandler_t) noexcept;
[[gnu::visibility("default"), gnu::alias("signal")]] sighandler_t ssignal(int, sighandler_t) noexcept;
}
GODWIT_EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
  return set_handler(number, handler, static_cast<int>(SA_RESETHAND | SA_NODEFER));
}
GODWIT_EXPORT int siginterrupt(int number, int interrupts) noexcept {
  struct sigaction action {};
  if (change_signal_action(number, nullptr, &action) != 0) return -1;
  if (interrupts != 0) {
    restarting_off_ |= bit_of(number);
    action.sa_flags &= ~SA_RESTART;
  } else {
    restarting_off_ &= ~bit_of(number);
    action.sa_flags |= SA_RESTART;
  }
  return change_signal_action(number, &action, nullptr);
}

// Of System V and BSD.
namespace {
int change_one(int how, int number) noexcept {
  sigset_t set;
  sigemptyset(&set);
  if (sigaddset(&set, number) != 0) return -1;
  return sigprocmask(how, &set, nullptr);
}
}  // namespace
GODWIT_EXPORT int sighold(int number) noexcept { return change_one(SIG_BLOCK, number); }
GODWIT_EXPORT int sigrelse(int number) noexcept { return change_one(SIG_UNBLOCK, number); }
GODWIT_EXPORT int sigignore(int number) noexcept {
  return set_handler(number, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}
GODWIT_EXPORT sighandler_t sigset(int number, sighandler_t handler) noexcept {
  sigset_t set, before;
  sigemptyset(&set);
  if (handler == SIG_ERR || sigaddset(&set, number) != 0) {
    errno = EINVAL;
    return SIG_ERR;
  }
  struct sigaction old {};
  if (handler == SIG_HOLD) {
    sigprocmask(SIG_BLOCK, &set, &before);
    if (sigismember(&before, number) == 1) return SIG_HOLD;
    return change_signal_action(number, nullptr, &old) == 0 ? old.sa_handler : SIG_ERR;
  }
  const sighandler_t was = set_handler(number, handler, 0);
  if (was == SIG_ERR) return SIG_ERR;
  sigprocmask(SIG_UNBLOCK, &set, &before);
  return sigismember(&before, number) == 1 ? SIG_HOLD : was;
}
GODWIT_EXPORT int sigblock(int mask) noexcept {
  const sigset_t set = set_of(static_cast<unsigned>(mask));
  sigset_t before;
  sigprocmask(SIG_BLOCK, &set, &before);
  return static_cast<int>(word_of(before));
}
GODWIT_EXPORT int sigsetmask(int mask) noexcept {
  const sigset_t set = set_of(static_cast<unsigned>(mask));
  sigset_t before;
  sigprocmask(SIG_SETMASK, &set, &before);
  return static_cast<int>(word_of(before));
}

// Workers have alternate stacks of their own, where faults are handled; a thread's serves the handlers of
// signals that are sent.
GODWIT_EXPORT int sigaltstack(const stack_t* stack, stack_t* before) noexcept {
  if (!is_light()) return REAL(sigaltstack)(stack, before);
  thread& t = *self();
  const bool in_use = on_alternate(t);
  const stack_t now = {t.alternate.ss_sp, t.alternate.ss_flags | (in_use ? SS_ONSTACK : 0),
                       t.alternate.ss_size};
  if (stack != nullptr) {
    constexpr int autodisarm = static_cast<int>(1u << 31);
    const int mode = stack->ss_flags & ~autodisarm;
    if (in_use) return fail_with(EPERM);
    if (mode != 0 && mode != SS_DISABLE && mode != SS_ONSTACK) return fail_with(EINVAL);
    if (mode != SS_DISABLE && stack->ss_size < static_cast<std::size_t>(sysconf(_SC_MINSIGSTKSZ)))
      return fail_with(ENOMEM);
    if (mode == SS_DISABLE)
      t.alternate = {nullptr, SS_DISABLE, 0};
    else
      t.alternate = {stack->ss_sp, stack->ss_flags & autodisarm, stack->ss_size};
  }
  if (before != nullptr) *before = now;
  return 0;
}

GODWIT_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* limit) {
  if (!is_light()) return REAL(sigtimedwait)(set, info, limit);
  if (limit != nullptr && (limit->tv_nsec < 0 || limit->tv_nsec >= 1'000'000'000 || limit->tv_sec < 0))
    return fail_with(EINVAL);
  thread* t = self();
  const std::uint64_t wanted = word_of(*set);
  const std::uint64_t end = limit != nullptr
                                ? now_ns() + static_cast<std::uint64_t>(limit->tv_sec) * 1'000'000'000 +
                                      static_cast<std::uint64_t>(limit->tv_nsec)
                                : ~0ull;
  // Those sent to the process wait in the kernel, which tells nobody that they are there.
  for (std::uint64_t pause_ns = 100'000;; pause_ns = pause_ns < 5'000'000 ? pause_ns * 2 : pause_ns) {
    test_cancel();
    t->waits_for_signals.store(wanted, std::memory_order_seq_cst);
    siginfo_t mine;
    if (take_signal(*t, wanted, true, mine)) {
      t->waits_for_signals.store(0, std::memory_order_seq_cst);
      if (info != nullptr) *info = mine;
      return mine.si_signo;
    }
    constexpr timespec now{};
    int number = REAL(sigtimedwait)(set, info, &now);
    const std::uint64_t time = now_ns();
    if (number < 0 && errno == EAGAIN && time < end) {
      const std::uint64_t until = time + pause_ns;
      const waited w = wait_under(t, {.deadline_ns = until < end ? until : end,
                                      .cancellable = true,
                                      .interruptible = true,
                                      .what = "signal"});
      if (w == waited::cancelled) {
        t->waits_for_signals.store(0, std::memory_order_seq_cst);
        end_by_cancel();
      }
      // Handlers of others run, and end this even with SA_RESTART.
      const std::uint32_t handled = __atomic_load_n(&t->handled, __ATOMIC_SEQ_CST);
      if (w == waited::interrupted) handle_signals();
      if (handled == __atomic_load_n(&t->handled, __ATOMIC_SEQ_CST)) continue;
      errno = EINTR;
    }
    t->waits_for_signals.store(0, std::memory_order_seq_cst);
    return number;
  }
}
GODWIT_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  return sigtimedwait(set, info, nullptr);
}
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
/// Until a handler has run for the caller since @p seen.
int wait_for_handler(std::uint32_t seen) {
  thread* t = self();
  while (__atomic_load_n(&t->handled, __ATOMIC_SEQ_CST) == seen) {
    const waited w =
        wait_while(&t->handled, seen, {.cancellable = true, .interruptible = true, .what = "signal"});
    if (w == waited::cancelled) end_by_cancel();
    if (w == waited::interrupted) handle_signals();
  }
  return fail_with(EINTR);
}
int suspend_with(const sigset_t* mask) {
  test_cancel();
  const std::uint32_t seen = __atomic_load_n(&self()->handled, __ATOMIC_SEQ_CST);
  sigset_t before;
  change_signal_mask(SIG_SETMASK, mask, &before);
  wait_for_handler(seen);
  change_signal_mask(SIG_SETMASK, &before, nullptr);
  return fail_with(EINTR);
}
}  // namespace
GODWIT_EXPORT int pause() {
  if (!is_light()) return REAL(pause)();
  test_cancel();
  return wait_for_handler(__atomic_load_n(&self()->handled, __ATOMIC_SEQ_CST));
}
GODWIT_EXPORT int sigsuspend(const sigset_t* mask) {
  return is_light() ? suspend_with(mask) : REAL(sigsuspend)(mask);
}

// The header makes sigpause a name of one of these, whichever standard is asked for.
extern "C" {
[[gnu::visibility("default")]] int pause_of_bsd(int) __asm__("sigpause");
[[gnu::visibility("default")]] int pause_of_system_v(int) __asm__("__xpg_sigpause");
[[gnu::visibility("default")]] int pause_of_either(int, int) __asm__("__sigpause");
}
int pause_of_bsd(int word) {
  const sigset_t mask = set_of(static_cast<unsigned>(word));
  return sigsuspend(&mask);
}
int pause_of_system_v(int number) {
  sigset_t mask;
  if (change_signal_mask(SIG_BLOCK, nullptr, &mask) != 0 || sigdelset(&mask, number) != 0) return -1;
  return sigsuspend(&mask);
}
int pause_of_either(int number_or_word, int is_number) {
  return is_number != 0 ? pause_of_system_v(number_or_word) : pause_of_bsd(number_or_word);
}
