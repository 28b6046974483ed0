// Signals: masks, what the program asked for, and the initial OS thread.
//
// Workers block all signals that can be blocked, but for those that a thread's own write makes (on_write).
// Those sent to the process reach the initial OS thread, which does nothing else. Its mask is what all
// threads block: a signal that one of them would take is taken, and given to such a thread, main if it would.
// If that thread waits, it goes on to run the handler; if it runs, it has a while to come to one of our
// calls; a thread that computes gets the handler run beside it, on the initial OS thread. docs/pthread.md,
// "Signals". Tests: tests/pthread/programs/signals.c, handlers.c
#include "signals.hpp"

#include <csetjmp>
#include <linux/futex.h>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>

#include "real.hpp"
#include "report.hpp"
#include "wait.hpp"

GODWIT_REAL(pthread_sigmask);
GODWIT_REAL(sigtimedwait);
extern "C" int __wrap_sigaction(int, const struct sigaction*, struct sigaction*);

namespace godwit::pthread {

namespace {

// 32, 33: the C library's
constexpr std::uint64_t never_blocked = (1ull << (SIGKILL - 1)) | (1ull << (SIGSTOP - 1)) | (3ull << 31);

/// The kernel sends these to the OS thread that wrote, and workers leave them open.
constexpr std::uint64_t made_by_writes = (1ull << (SIGPIPE - 1)) | (1ull << (SIGXFSZ - 1));

spin_lock masks;
thread* alive_ = nullptr;                    // under masks: all threads, main last
std::uint32_t threads_ = 0;                  // likewise, and what follows
std::uint32_t blockers_[most_signals] = {};  // by how many of them each signal is blocked
std::uint32_t masked_ = 0;                   // threads that block any
std::uint64_t mask_now_ = 0;
// What the initial thread is asked for, and has done.
std::uint64_t asked_mask_ = 0;
std::uint32_t asked_ = 0, done_ = 0;  // futexes

thread* main_ = nullptr;
bool serving_ = false;  // W the initial thread, and the only one of a forked child
// Where the calling OS thread runs a handler beside a thread. Others do not see it, nor do the threads of a
// child that one of them forks.
__thread thread* beside_ = nullptr;
__thread sigjmp_buf* way_out_ = nullptr;
// the last one that did not come to take a signal in time. W also that one: it is here
std::atomic<thread*> computes_{nullptr};

void futex(std::uint32_t* word, int op, std::uint32_t value, const timespec* limit = nullptr) noexcept {
  ::syscall(SYS_futex, word, op, value, limit, nullptr, 0);
}

void count(std::uint64_t blocked, int by) noexcept {
  if (blocked != 0) masked_ += static_cast<std::uint32_t>(by);
  for (int i = 0; i < most_signals && blocked != 0; ++i, blocked >>= 1)
    if ((blocked & 1) != 0) blockers_[i] += static_cast<std::uint32_t>(by);
}

/// Under masks. What the initial thread has to be asked for; 0: nothing.
std::uint32_t update() noexcept {
  if (masked_ == 0 && mask_now_ == 0) return 0;
  std::uint64_t mask = 0;
  for (int i = 0; i < most_signals; ++i)
    if (threads_ != 0 && blockers_[i] == threads_) mask |= std::uint64_t{1} << i;
  mask &= ~made_by_writes;  // when others send them they are to come here, not to any worker
  if (mask == mask_now_) return 0;
  mask_now_ = mask;
  __atomic_store_n(&asked_mask_, mask, __ATOMIC_RELAXED);
  return __atomic_add_fetch(&asked_, 1, __ATOMIC_SEQ_CST);
}

std::uint32_t store_mask(thread& t, std::uint64_t mask) noexcept {
  const std::lock_guard hold(masks);
  count(t.blocked.load(std::memory_order_seq_cst), -1);
  count(mask, 1);
  t.blocked.store(mask, std::memory_order_seq_cst);
  return update();
}

/// Wait until it has been done: but a handler that runs there now may last, and what it gives to the caller
/// comes first.
void apply(std::uint32_t number) {
  if (number == 0) return;
  thread* here = self();
  computes_.compare_exchange_strong(here, nullptr, std::memory_order_seq_cst);
  futex(&asked_, FUTEX_WAKE_PRIVATE, 1);
  for (int i = 0; i < 2000; ++i) {
    const std::uint32_t done = __atomic_load_n(&done_, __ATOMIC_SEQ_CST);
    if (static_cast<std::int32_t>(done - number) >= 0) return;
    if (self() != nullptr && self()->has_signals()) handle_signals();
    constexpr timespec a_while{0, 200'000};
    futex(&done_, FUTEX_WAIT_PRIVATE, done, &a_while);
  }
}

/// Those of @p bits that wait in the kernel for the process, and have handlers, are the caller's.
void take_from_kernel(thread& t, std::uint64_t bits) noexcept {
  sigset_t waiting;
  if (bits == 0 || sigpending(&waiting) != 0) return;
  std::uint64_t wanted = 0;
  for (std::uint64_t left = word_of(waiting) & bits; left != 0; left &= left - 1)
    if (const int signal = __builtin_ctzll(left) + 1; is_handled(action_of(signal))) wanted |= bit_of(signal);
  if (wanted == 0) return;
  const sigset_t set = set_of(wanted);
  constexpr timespec now{};
  siginfo_t info;
  while (REAL(sigtimedwait)(&set, &info, &now) > 0) add_signal(&t, info);
}

int change_mask(thread& t, int how, const sigset_t* set, sigset_t* before) {
  const std::uint64_t old = t.blocked.load(std::memory_order_seq_cst);
  std::uint64_t mask = set != nullptr ? word_of(*set) & ~never_blocked : 0;
  if (set != nullptr) {
    if (how == SIG_BLOCK)
      mask |= old;
    else if (how == SIG_UNBLOCK)
      mask = old & ~mask;
    else if (how != SIG_SETMASK)
      return EINVAL;
  }
  if (before != nullptr) *before = set_of(old);
  if (set == nullptr || mask == old) return 0;
  const std::uint32_t number = store_mask(t, mask);
  take_from_kernel(t, old & ~mask);
  apply(number);
  handle_signals();
  return 0;
}

// What the program asked for. Under actions_lock.
spin_lock actions_lock;
struct sigaction actions_[most_signals + 1];
bool is_ours_[most_signals + 1] = {};  // installed: on_signal

bool is_fault(int signal) noexcept {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP ||
         signal == SIGABRT || signal == SIGSYS;
}

/// As the kernel would have, had the program's handler been installed.
void call_as_kernel(int signal, siginfo_t* info, void* context, const struct sigaction& action) {
  if (action.sa_handler == SIG_DFL) do_default(signal);
  if (!is_handled(action)) return;
  if ((action.sa_flags & SA_RESETHAND) != 0) {
    struct sigaction again = action;
    again.sa_handler = SIG_DFL;
    again.sa_flags &= ~SA_SIGINFO;
    change_signal_action(signal, &again, nullptr);
  }
  const sigset_t mask =
      set_of(word_of(static_cast<const ucontext_t*>(context)->uc_sigmask) | word_of(action.sa_mask) |
             ((action.sa_flags & SA_NODEFER) != 0 ? 0 : bit_of(signal)));
  sigset_t all;
  REAL(pthread_sigmask)(SIG_SETMASK, &mask, &all);
  if ((action.sa_flags & SA_SIGINFO) != 0)
    action.sa_sigaction(signal, info, context);
  else
    action.sa_handler(signal);
  REAL(pthread_sigmask)(SIG_SETMASK, &all, nullptr);
}

/// A thread that would take it; the signal waits for that one, or for any that does not block it any more.
/// All signals are blocked here.
thread* give(const siginfo_t& info) noexcept {
  const std::uint64_t bit = bit_of(info.si_signo);
  const std::lock_guard hold(masks);  // until it is given: a thread that ends leaves the list first
  thread* t =
      main_ != nullptr && (main_->blocked.load(std::memory_order_seq_cst) & bit) == 0 ? main_ : alive_;
  while (t != nullptr && (t->blocked.load(std::memory_order_seq_cst) & bit) != 0) t = t->next_alive;
  add_signal(t, info);
  return t;
}

/// A while for it to come. False: it has not, and the signal is ours again.
bool waits_for(thread& t, siginfo_t& info) noexcept {
  constexpr int most_rounds = 100;
  constexpr timespec a_while{0, 200'000};
  const std::uint64_t bit = bit_of(info.si_signo);
  for (int i = computes_.load(std::memory_order_seq_cst) == &t ? most_rounds : 0;
       i < most_rounds && (t.signals.load(std::memory_order_seq_cst) & bit) != 0; ++i) {
    futex(&done_, FUTEX_WAKE_PRIVATE, 1 << 30);  // it may wait for a change of its mask: apply
    ::syscall(SYS_nanosleep, &a_while, nullptr);
    if (disturb(t, waited::interrupted, true)) return true;
  }
  if (!take_signal(t, bit, false, info)) {
    computes_ = nullptr;
    return true;
  }
  computes_ = &t;
  return false;
}

void run_beside(thread& t, int signal, siginfo_t* info, void* context) {
  const struct sigaction action = action_of(signal);
  thread* const outer = beside_;
  sigjmp_buf* const outer_way = way_out_;
  sigjmp_buf way_out;
  beside_ = &t;
  way_out_ = &way_out;
  if (sigsetjmp(way_out, 1) == 0) call_as_kernel(signal, info, context, action);
  beside_ = outer;
  way_out_ = outer_way;
  __atomic_fetch_add(&t.handled, 1, __ATOMIC_SEQ_CST);
  wake(&t.handled, all_of_them);
  if ((action.sa_flags & SA_RESTART) == 0) disturb(t, waited::interrupted);  // as if it had handled it
}

/// On the initial OS thread; in a forked child, and before the run, on any. Signals are blocked.
void on_signal(int signal, siginfo_t* info, void* context) {
  const int before = errno;
  if (!serving_) {
    call_as_kernel(signal, info, context, action_of(signal));
  } else if (::syscall(SYS_gettid) != ::getpid()) {
    // On a worker that has its thread's mask for a moment (processes.cpp). That thread may hold what give()
    // would wait for: the initial OS thread gets the signal. The kernel allows no code but SI_QUEUE.
    siginfo_t again = *info;
    again.si_code = SI_QUEUE;
    ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::getpid(), signal, &again);
  } else {
    siginfo_t own = *info;
    thread* t = give(own);
    if (t != nullptr && !disturb(*t, waited::interrupted, true) && !waits_for(*t, own))
      run_beside(*t, signal, &own, context);
  }
  errno = before;
}

/// SIGPIPE and SIGXFSZ, also where the program wants what is usual: they are the thread's that wrote. It
/// takes them at the end of that call, or at its next one, if the C library wrote for it. No locks: the
/// thread may hold any.
void on_write(int signal, siginfo_t* info, void* context) {
  if (!serving_ || ::syscall(SYS_gettid) == ::getpid()) {  // somebody sent it
    on_signal(signal, info, context);
    return;
  }
  const int before = errno;
  thread* t = self();
  const std::uint64_t bit = bit_of(signal);
  (t != nullptr ? t->signals : process_signals_).fetch_or(bit, std::memory_order_seq_cst);
  const bool blocked = t != nullptr && (t->blocked.load(std::memory_order_seq_cst) & bit) != 0;
  if (!blocked && actions_[signal].sa_handler == SIG_DFL) do_default(signal);
  errno = before;
}

/// SIGSEGV and its like, SIGABRT too. A fault, or what a thread does to itself (abort), is handled where it
/// happens; sent to the process, it is a signal as any other.
void on_fault(int signal, siginfo_t* info, void* context) {
  if (serving_ && info->si_code <= 0 && self() == nullptr && ::syscall(SYS_gettid) == ::getpid()) {
    const all_blocked none;
    on_signal(signal, info, context);
    return;
  }
  const int before = errno;
  const struct sigaction action = actions_[signal];  // without the lock: the thread may hold it
  if ((action.sa_flags & SA_SIGINFO) != 0)
    action.sa_sigaction(signal, info, context);
  else if (is_handled(action))
    action.sa_handler(signal);
  errno = before;
}

}  // namespace

void all_blocked::block() noexcept {
  sigset_t all;
  sigfillset(&all);
  REAL(pthread_sigmask)(SIG_SETMASK, &all, &before_);
}
void all_blocked::unblock() noexcept { REAL(pthread_sigmask)(SIG_SETMASK, &before_, nullptr); }

struct sigaction action_of(int signal) noexcept {
  struct sigaction a {};
  change_signal_action(signal, nullptr, &a);
  return a;
}

siginfo_t info_of(int signal, int code) noexcept {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = code;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  return info;
}

void do_default(int signal) noexcept {
  // open on every worker: the calling one dies of it at once
  if (is_fault(signal) || (bit_of(signal) & made_by_writes) != 0) {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    __wrap_sigaction(signal, &none, nullptr);
    ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), signal);
  }
  ::kill(::getpid(), signal);
  if (signal == SIGCHLD || signal == SIGCONT || signal == SIGURG || signal == SIGWINCH || signal == SIGTSTP ||
      signal == SIGTTIN || signal == SIGTTOU || signal == SIGSTOP)
    return;
  // It ends the process, but the initial OS thread may first have to come to it: the program must not see
  // that.
  constexpr timespec a_while{0, 1'000'000};
  for (int i = 0; i < 1000; ++i) ::syscall(SYS_nanosleep, &a_while, nullptr);
}

int send_to(thread& t, const siginfo_t& info) noexcept {
  const int signal = info.si_signo;
  if (__atomic_load_n(&t.state, __ATOMIC_SEQ_CST) == thread::ended) return ESRCH;
  const bool blocked = (t.blocked.load(std::memory_order_seq_cst) & bit_of(signal)) != 0;
  if (!blocked) {
    const struct sigaction action = action_of(signal);
    // What is not handled ends, stops or leaves alone the process, whichever thread it was sent to.
    if (action.sa_handler == SIG_DFL) do_default(signal);
    if (!is_handled(action)) return 0;
  }
  if (!add_signal(&t, info)) return EAGAIN;
  // A blocked one waits until it is unblocked, or waited for.
  if (&t != self() &&
      (!blocked || (t.waits_for_signals.load(std::memory_order_seq_cst) & bit_of(signal)) != 0))
    disturb(t, waited::interrupted, true);
  return 0;
}

void settle_signals() {
  if (!is_light()) return;
  std::uint32_t number;
  {
    const std::lock_guard hold(masks);
    number = __atomic_add_fetch(&asked_, 1, __ATOMIC_SEQ_CST);
  }
  apply(number);
  handle_signals();
}

void settle_handled(int signal) {
  if (is_light() && (self()->blocked.load(std::memory_order_seq_cst) & bit_of(signal)) == 0 &&
      is_handled(action_of(signal)))
    settle_signals();
}

thread* find_thread(int tid) noexcept {
  const std::lock_guard hold(masks);
  thread* t = alive_;
  while (t != nullptr && t->tid != tid) t = t->next_alive;
  return t;
}

thread* beside_whom() noexcept { return beside_; }

void leave_handler_beside(void* result) noexcept {
  thread* t = beside_whom();
  if (t == nullptr) return;
  t->exit_result = result;
  t->exit_asked = true;
  t->cancel_asked.store(true, std::memory_order_seq_cst);
  disturb(*t, waited::cancelled);
  siglongjmp(*way_out_, 1);
}

void begin_signals(thread& main) noexcept {
  sigset_t now;
  main_ = &main;
  REAL(pthread_sigmask)(SIG_SETMASK, nullptr, &now);
  main.blocked.store(word_of(now), std::memory_order_seq_cst);
  count_mask(main, true);
  mask_now_ = word_of(now);
  for (const int signal : {SIGPIPE, SIGXFSZ})
    if (const struct sigaction usual = action_of(signal); usual.sa_handler == SIG_DFL)
      change_signal_action(signal, &usual, nullptr);  // from now on: on_write
}

void count_mask(thread& t, bool begins) noexcept {
  std::uint32_t number;
  {
    const std::lock_guard hold(masks);
    threads_ += begins ? 1u : ~0u;
    count(t.blocked.load(std::memory_order_seq_cst), begins ? 1 : -1);
    if (begins) {
      t.prev_alive = nullptr;
      t.next_alive = alive_;
      if (alive_ != nullptr) alive_->prev_alive = &t;
      alive_ = &t;
    } else {
      (t.prev_alive != nullptr ? t.prev_alive->next_alive : alive_) = t.next_alive;
      if (t.next_alive != nullptr) t.next_alive->prev_alive = t.prev_alive;
      if (&t == main_) main_ = nullptr;
    }
    number = update();
  }
  if (number != 0) futex(&asked_, FUTEX_WAKE_PRIVATE, 1);
  if (!begins) forget_signals(t);
}

void put_mask(thread& t, std::uint64_t mask) noexcept {
  if (mask == t.blocked.load(std::memory_order_seq_cst)) return;
  if (store_mask(t, mask & ~never_blocked) != 0) futex(&asked_, FUTEX_WAKE_PRIVATE, 1);
}

void use_real_mask(const thread& t, sigset_t* before) noexcept {
  const sigset_t set = set_of(t.blocked.load(std::memory_order_seq_cst));
  REAL(pthread_sigmask)(SIG_SETMASK, &set, before);
}
void set_real_mask(const sigset_t& mask) noexcept { REAL(pthread_sigmask)(SIG_SETMASK, &mask, nullptr); }

void serve_signals() noexcept {
  serving_ = true;
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

void end_serving() noexcept {
  serving_ = false;
  masks.unlock();
  actions_lock.unlock();
  forget_all_signals();
  if (forked_) return;  // a child of a child: its handlers are the program's already
  for (int signal = 1; signal <= most_signals; ++signal) {
    struct sigaction now {};
    if (__wrap_sigaction(signal, nullptr, &now) != 0 || !is_handled(now)) continue;
    // What the program asked for; the runtime's own handlers end with the runtime.
    struct sigaction then {};
    then.sa_handler = SIG_DFL;
    __wrap_sigaction(signal, is_ours_[signal] ? &actions_[signal] : &then, nullptr);
  }
}

int change_signal_mask(int how, const sigset_t* set, sigset_t* before) {
  return is_light() ? change_mask(*self(), how, set, before) : REAL(pthread_sigmask)(how, set, before);
}

int change_signal_action(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  if (signal < 1 || signal > most_signals || forked_) return __wrap_sigaction(signal, action, before);
  const all_blocked none;
  const std::lock_guard hold(actions_lock);
  const struct sigaction old = actions_[signal];
  const bool ours = is_ours_[signal], fault = is_fault(signal),
             of_writes = (bit_of(signal) & made_by_writes) != 0;
  struct sigaction real {};
  int error = 0;
  if (action == nullptr) {
    error = __wrap_sigaction(signal, nullptr, &real);
  } else {
    const struct sigaction asked = *action;  // before may be the same object
    struct sigaction mine = asked;
    const bool handler = of_writes ? asked.sa_handler != SIG_IGN : is_handled(asked);
    if (handler) {
      mine.sa_flags |= SA_SIGINFO;
      mine.sa_sigaction = fault ? on_fault : of_writes ? on_write : on_signal;
      if (!fault) {
        mine.sa_flags &= ~(SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
        sigfillset(&mine.sa_mask);
      }
      actions_[signal] = asked;  // first: a fault does not wait for the lock
    }
    error = __wrap_sigaction(signal, &mine, &real);
    if (error == 0) {
      actions_[signal] = asked;
      is_ours_[signal] = handler;
    } else {
      actions_[signal] = old;
    }
  }
  if (error != 0 || before == nullptr) return error;
  *before = real;
  if (ours &&
      (real.sa_sigaction == on_signal || real.sa_sigaction == on_fault || real.sa_sigaction == on_write))
    *before = old;
  else if (fault && is_handled(real))  // the runtime's own, which explains the fault
    *before = {};
  return 0;
}

}  // namespace godwit::pthread
