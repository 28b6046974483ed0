// See blocking_calls.hpp.
#include "base/blocking_calls.hpp"

#if defined(__x86_64__) || defined(__aarch64__)

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <string_view>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "base/interrupted_code.hpp"
#include "base/valgrind.hpp"

// The only code whose system calls are not looked at, so the handler's are here: a call, and the end of the
// handler itself. The end is the instructions by which unwinders know it; they look at the byte before, too.
#if defined(__x86_64__)
asm(R"(
        .pushsection .text
        .globl  godwit_sim_call, godwit_sim_restore, godwit_sim_restored
        .hidden godwit_sim_call, godwit_sim_restore, godwit_sim_restored
        .type   godwit_sim_call, @function
godwit_sim_call:
        .cfi_startproc
        endbr64
        movq    %rdi, %rax
        movq    %rsi, %r11
        movq    (%r11), %rdi
        movq    8(%r11), %rsi
        movq    16(%r11), %rdx
        movq    24(%r11), %r10
        movq    32(%r11), %r8
        movq    40(%r11), %r9
        syscall
        ret
        .cfi_endproc
        nop
        .type   godwit_sim_restore, @function
godwit_sim_restore:
        movq    $15, %rax
        syscall
godwit_sim_restored:
        .popsection
)");
#else
asm(R"(
        .pushsection .text
        .globl  godwit_sim_call, godwit_sim_restore, godwit_sim_restored
        .hidden godwit_sim_call, godwit_sim_restore, godwit_sim_restored
        .type   godwit_sim_call, @function
        .p2align 2
godwit_sim_call:
        .cfi_startproc
        hint    #34                     // bti c
        mov     x8, x0
        mov     x9, x1
        ldp     x0, x1, [x9]
        ldp     x2, x3, [x9, #16]
        ldp     x4, x5, [x9, #32]
        svc     #0
        ret
        .cfi_endproc
        nop
        .type   godwit_sim_restore, @function
godwit_sim_restore:
        mov     x8, #139
        svc     #0
godwit_sim_restored:
        .popsection
)");
#endif

extern "C" {
/// System call @p number as the kernel answers it: no errno.
long godwit_sim_call(long number, const long* arguments);
void godwit_sim_restore();
extern const char godwit_sim_restored[];  // the end
}

namespace godwit::base {

namespace {

// Of headers that are newer than some we build with.
constexpr int pr_set_syscall_user_dispatch = 59, sys_user_dispatch = 2;

using arguments = std::array<long, 6>;
constexpr long would_block = -4096;  // no error of the kernel's

constexpr long kernel_mask_bytes = 8;

void (*refuse_)(const blocking_call&) noexcept = nullptr;

long call(long number, const arguments& a) noexcept { return godwit_sim_call(number, a.data()); }
template <class T>
T* pointer(long argument) noexcept {
  return reinterpret_cast<T*>(argument);
}
template <class T>
long address(T* p) noexcept {
  return reinterpret_cast<long>(p);
}

// ---- calls that can block, and how to make them without ----

struct row;
using attempt = long (*)(const row& r, const arguments& a);

/// A call that can block. What `at`, `flag` and `nothing` mean is said with the attempt.
struct row {
  long number;
  const char* name;
  const char* advice;
  attempt make;  ///< gives back would_block instead of waiting
  unsigned at = 0;
  long flag = 0;
  long nothing = 0;
};

long never_returns(const row&, const arguments&) noexcept { return would_block; }

/// A timespec or timeval: what is behind pointer @p argument is no time at all.
bool is_zero(long argument) noexcept {
  const long* time = pointer<const long>(argument);
  return time != nullptr && time[0] == 0 && time[1] == 0;
}

/// Sleeps for the time that argument `at` points to.
long sleep(const row& r, const arguments& a) noexcept {
  return is_zero(a[r.at]) ? call(r.number, a) : would_block;
}
long clock_sleep(const row& r, const arguments& a) noexcept {
  if ((a[1] & TIMER_ABSTIME) == 0) return sleep(r, a);
  timespec now{};
  call(SYS_clock_gettime, {a[0], address(&now)});
  const auto* until = pointer<const timespec>(a[2]);
  const bool over =
      until->tv_sec < now.tv_sec || (until->tv_sec == now.tv_sec && until->tv_nsec <= now.tv_nsec);
  return over ? call(r.number, a) : would_block;
}

/// Argument `at` gets `flag`, and then the call gives `nothing` if it would have to wait.
long with_flag(const row& r, const arguments& a) noexcept {
  arguments b = a;
  b[r.at] |= r.flag;
  const long got = call(r.number, b);
  return got == r.nothing && b[r.at] != a[r.at] ? would_block : got;
}
/// Argument `at` is a time-out in milliseconds; `nothing`: what the call gives when it is over.
[[maybe_unused]] long no_time(const row& r, const arguments& a) noexcept {
  arguments b = a;
  b[r.at] = 0;
  const long got = call(r.number, b);
  return got == r.nothing && static_cast<int>(a[r.at]) != 0 ? would_block : got;
}
/// Likewise, and it points to a timespec or timeval.
long no_time_there(const row& r, const arguments& a) noexcept {
  long none[2] = {};
  arguments b = a;
  b[r.at] = address(none);
  const long got = call(r.number, b);
  return got == r.nothing && !is_zero(a[r.at]) ? would_block : got;
}

bool never_waits(long fd) noexcept {
  const long flags = call(SYS_fcntl, {fd, F_GETFL});
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}
/// Takes something from descriptor a[0], if there is something (or an end, or an error).
long take(const row& r, const arguments& a) noexcept {
  pollfd p{static_cast<int>(a[0]), POLLIN, 0};
  const timespec at_once{};
  const bool ready = call(SYS_ppoll, {address(&p), 1, address(&at_once)}) != 0;
  return ready || never_waits(a[0]) ? call(r.number, a) : would_block;
}
/// The same of a socket; argument `at` are the flags.
long receive(const row& r, const arguments& a) noexcept {
  return (a[r.at] & MSG_DONTWAIT) != 0 ? call(r.number, a) : take(r, a);
}
/// To another machine it waits for an answer.
long connect_to(const row& r, const arguments& a) noexcept {
  int type = 0, domain = 0;
  socklen_t bytes = sizeof(int);
  call(SYS_getsockopt, {a[0], SOL_SOCKET, SO_TYPE, address(&type), address(&bytes)});
  call(SYS_getsockopt, {a[0], SOL_SOCKET, SO_DOMAIN, address(&domain), address(&bytes)});
  return type == SOCK_STREAM && domain != AF_UNIX && !never_waits(a[0]) ? would_block : call(r.number, a);
}

long lock_file(const row& r, const arguments& a) noexcept {
  const int at_once = a[1] == F_SETLKW ? F_SETLK : a[1] == F_OFD_SETLKW ? F_OFD_SETLK : 0;
  if (at_once == 0) return call(r.number, a);
  const long got = call(r.number, {a[0], at_once, a[2]});
  return got == -EAGAIN || got == -EACCES ? would_block : got;
}

/// With WNOHANG it gives 0 and no process.
long wait_for_child(const row& r, const arguments& a) noexcept {
  if ((a[3] & WNOHANG) != 0) return call(r.number, a);
  siginfo_t unasked{};
  siginfo_t* const child = a[2] != 0 ? pointer<siginfo_t>(a[2]) : &unasked;
  child->si_pid = 0;
  const long got = call(r.number, {a[0], a[1], address(child), a[3] | WNOHANG, a[4]});
  return got == 0 && child->si_pid == 0 ? would_block : got;
}

/// All operations with IPC_NOWAIT.
long semaphores(const row& r, const arguments& a) noexcept {
  std::array<sembuf, 16> at_once{};
  const auto n = static_cast<std::size_t>(a[2]);
  if (n > at_once.size()) return call(r.number, a);
  bool waits = false;
  for (std::size_t i = 0; i < n; ++i) {
    at_once[i] = pointer<const sembuf>(a[1])[i];
    waits = waits || (at_once[i].sem_flg & IPC_NOWAIT) == 0;
    at_once[i].sem_flg |= IPC_NOWAIT;
  }
  const long got = call(r.number, {a[0], address(at_once.data()), a[2], a[3]});
  return got == -EAGAIN && waits ? would_block : got;
}

bool other_threads() noexcept {
  struct stat tasks {};
  // Two links, and one per thread. Where there is no /proc, there may be some.
  return call(SYS_newfstatat, {AT_FDCWD, address("/proc/self/task"), address(&tasks)}) != 0 ||
         tasks.st_nlink != 3;
}
/// What workers hold, no other worker can give back meanwhile. Another OS thread of the process can: it gets
/// ten seconds.
long wait_for_wake(const row& r, const arguments& a) noexcept {
  const long what = a[1] & FUTEX_CMD_MASK;
  if (what != FUTEX_WAIT && what != FUTEX_WAIT_BITSET) return call(r.number, a);
  const timespec patience{other_threads() ? 10 : 0, 0};
  const long got = call(r.number, {a[0], FUTEX_WAIT | (a[1] & FUTEX_PRIVATE_FLAG), a[2], address(&patience)});
  return got == -ETIMEDOUT ? would_block : got;
}

constexpr const char* let_time_pass = "let virtual time pass with godwit::sim::charge(ns)";
constexpr const char* not_in_a_run =
    "do it before or after the run, or take --godwit-substrate=threads, where godwit::io waits";
constexpr const char* wait_by_join =
    "wait for other threads with join, a future or a control object (docs/control.md), and hold no lock "
    "where "
    "others may have their turn: in spawn, join, charge, global memory";

constexpr row rows[] = {
    {SYS_nanosleep, "nanosleep", let_time_pass, sleep, 0},
    {SYS_clock_nanosleep, "clock_nanosleep", let_time_pass, clock_sleep, 2},
    {SYS_futex, "futex (a lock, a condition variable, the end of an OS thread)", wait_by_join, wait_for_wake},
    {SYS_read, "read", not_in_a_run, take},
    {SYS_readv, "readv", not_in_a_run, take},
    {SYS_recvfrom, "recvfrom", not_in_a_run, receive, 3},
    {SYS_recvmsg, "recvmsg", not_in_a_run, receive, 2},
    {SYS_recvmmsg, "recvmmsg", not_in_a_run, receive, 3},
    {SYS_accept, "accept", not_in_a_run, take},
    {SYS_accept4, "accept4", not_in_a_run, take},
    {SYS_connect, "connect", not_in_a_run, connect_to},
    {SYS_mq_timedreceive, "mq_timedreceive", not_in_a_run, take},
    {SYS_msgrcv, "msgrcv", not_in_a_run, with_flag, 4, IPC_NOWAIT, -ENOMSG},
    {SYS_semop, "semop", wait_by_join, semaphores},
    {SYS_semtimedop, "semtimedop", wait_by_join, semaphores},
    {SYS_ppoll, "ppoll", not_in_a_run, no_time_there, 2},
    {SYS_pselect6, "pselect6", not_in_a_run, no_time_there, 4},
    {SYS_epoll_pwait, "epoll_pwait", not_in_a_run, no_time, 3},
    {SYS_wait4, "wait4", not_in_a_run, with_flag, 2, WNOHANG, 0},
    {SYS_waitid, "waitid", not_in_a_run, wait_for_child},
    {SYS_rt_sigsuspend, "rt_sigsuspend", wait_by_join, never_returns},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", wait_by_join, no_time_there, 2, 0, -EAGAIN},
    {SYS_flock, "flock", not_in_a_run, with_flag, 1, LOCK_NB, -EWOULDBLOCK},
    {SYS_fcntl, "fcntl", not_in_a_run, lock_file},
#if defined(SYS_epoll_pwait2)
    {SYS_epoll_pwait2, "epoll_pwait2", not_in_a_run, no_time_there, 3},
#endif
#if defined(__x86_64__)  // later architectures have the more general call only
    {SYS_poll, "poll", not_in_a_run, no_time, 2},
    {SYS_select, "select", not_in_a_run, no_time_there, 4},
    {SYS_epoll_wait, "epoll_wait", not_in_a_run, no_time, 3},
    {SYS_pause, "pause", wait_by_join, never_returns},
#endif
};

const row* row_of(long number) noexcept {
  const row* found = std::ranges::find(rows, number, &row::number);
  return found != std::end(rows) ? found : nullptr;
}

// ---- the handler ----

/// The registers of a thread that makes a system call.
class calling_thread {
 public:
  explicit calling_thread(void* context) noexcept : context_(*static_cast<ucontext_t*>(context)) {}

#if defined(__x86_64__)
  arguments args() const noexcept {
    return {at(REG_RDI), at(REG_RSI), at(REG_RDX), at(REG_R10), at(REG_R8), at(REG_R9)};
  }
  std::uintptr_t code() const noexcept { return static_cast<std::uintptr_t>(at(REG_RIP)); }
  void go_on_with(long result) noexcept { set(REG_RAX, result); }
  void go_on_at(void (*code)()) noexcept { set(REG_RIP, reinterpret_cast<long>(code)); }
  void call_again() noexcept { set(REG_RIP, at(REG_RIP) - 2); }
#else
  arguments args() const noexcept { return {at(0), at(1), at(2), at(3), at(4), at(5)}; }
  std::uintptr_t code() const noexcept { return context_.uc_mcontext.pc; }
  void go_on_with(long result) noexcept { context_.uc_mcontext.regs[0] = static_cast<unsigned long>(result); }
  void go_on_at(void (*code)()) noexcept { context_.uc_mcontext.pc = reinterpret_cast<unsigned long>(code); }
  void call_again() noexcept { context_.uc_mcontext.pc -= 4; }
#endif
  /// It goes on with the signal mask that the handler has now, but for the one signal: while that is blocked,
  /// any call would be the end of the process.
  void keep_mask() noexcept {
    call(SYS_rt_sigprocmask, {SIG_BLOCK, 0, address(&context_.uc_sigmask), kernel_mask_bytes});
    sigdelset(&context_.uc_sigmask, SIGSYS);
  }

 private:
#if defined(__x86_64__)
  long at(int which) const noexcept { return context_.uc_mcontext.gregs[which]; }
  void set(int which, long value) noexcept { context_.uc_mcontext.gregs[which] = value; }
#else
  long at(int which) const noexcept { return static_cast<long>(context_.uc_mcontext.regs[which]); }
#endif
  ucontext_t& context_;
};

/// Calls that only their caller can make, since they go on on another stack or concern the one in use.
/// Whoever starts an OS thread or a program may wait for it, too, until its turn ends.
bool only_in_place(long number, const arguments& a) noexcept {
#if defined(__x86_64__)
  if (number == SYS_vfork) return true;
#endif
  return number == SYS_sigaltstack || number == SYS_clone3 || (number == SYS_clone && a[1] != 0);
}

void on_call(int, siginfo_t* info, void* context) {
  calling_thread caller(context);
  const long number = info->si_syscall;
  const arguments a = caller.args();
  if (info->si_code != sys_user_dispatch || only_in_place(number, a)) {
    no_blocking_calls::look(false);
    return caller.call_again();
  }
  if (number == SYS_rt_sigreturn) return caller.go_on_at(godwit_sim_restore);
  const row* blocks = row_of(number);
  const long result = blocks != nullptr ? blocks->make(*blocks, a) : call(number, a);
  if (number == SYS_rt_sigprocmask) caller.keep_mask();
  if (blocks == nullptr || result != would_block) return caller.go_on_with(result);
  no_blocking_calls::look(false);
  std::array<std::uintptr_t, 4> callers;
  const std::size_t n = find_callers(caller.code(), ~std::uintptr_t{0}, callers);
  refuse_({blocks->name, blocks->advice, {callers.data(), n}});
}

/// The kernel's struct sigaction. (The C library's function would put in an end of its own.)
struct kernel_action {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};
constexpr unsigned long sa_restorer = 0x04000000;
constexpr std::uint64_t only_sigsys = std::uint64_t{1} << (SIGSYS - 1);
bool refuses_ = false;
// What was there before.
kernel_action action_{};
std::uint64_t mask_ = 0;

}  // namespace

no_blocking_calls::no_blocking_calls(void (*refuse)(const blocking_call&) noexcept) noexcept {
  if (runs_under_valgrind()) return;  // would be refused calls of its own
  const auto begin = reinterpret_cast<std::uintptr_t>(&godwit_sim_call);
  const auto end = reinterpret_cast<std::uintptr_t>(godwit_sim_restored);
  look(false);
  // The end counts: where the kernel looks, the call has been read.
  if (prctl(pr_set_syscall_user_dispatch, 1, begin, end + 1 - begin, &looks_) != 0) return;
  refuse_ = refuse;
  refuses_ = true;
  const kernel_action action{on_call, SA_SIGINFO | SA_ONSTACK | SA_NODEFER | sa_restorer, godwit_sim_restore,
                             0};
  call(SYS_rt_sigaction, {SIGSYS, address(&action), address(&action_), kernel_mask_bytes});
  call(SYS_rt_sigprocmask, {SIG_UNBLOCK, address(&only_sigsys), address(&mask_), kernel_mask_bytes});
}

no_blocking_calls::~no_blocking_calls() {
  if (!refuses_) return;
  refuses_ = false;
  look(false);
  prctl(pr_set_syscall_user_dispatch, 0, 0, 0, 0);
  call(SYS_rt_sigaction, {SIGSYS, address(&action_), 0, kernel_mask_bytes});
  mask_ &= only_sigsys;
  call(SYS_rt_sigprocmask, {SIG_BLOCK, address(&mask_), 0, kernel_mask_bytes});
}

}  // namespace godwit::base

#else  // other architectures' calls are not refused

namespace godwit::base {
no_blocking_calls::no_blocking_calls(void (*)(const blocking_call&) noexcept) noexcept {}
no_blocking_calls::~no_blocking_calls() {}
}  // namespace godwit::base

#endif
