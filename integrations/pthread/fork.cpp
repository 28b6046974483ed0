// Forking: the child is a program with one OS thread, and starts more as OS threads. And system calls by
// number.
#include <algorithm>
#include <cstdarg>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <godwit/io.hpp>

#include "context/context.hpp"
#include "io/events.hpp"

#include "identity.hpp"
#include "mutex.hpp"
#include "real.hpp"
#include "signals.hpp"
#include "thread.hpp"
#include "wait.hpp"

GODWIT_REAL(syscall);

using namespace godwit::pthread;

namespace {

/// In the child: the caller is its only thread.
void in_child() noexcept {
  unlock_identity();
  end_serving();
  forked_ = true;
  forget_waiters();
  forget_other_threads();
  forget_robust_mutexes();
  godwit::events::close_ours();
  godwit::context::use_hot_words(nullptr);  // no worker any more
  thread* t = self();
  if (t == nullptr || t->heavy) return;
  t->heavy = true;
  t->signals.store(0, std::memory_order_seq_cst);
  t->handlers = nullptr;
  use_real_mask(*t);
  use_real_cancellation(*t);
}
// Not in a fork of our own: the C library's daemon and the like call it inside.
[[gnu::constructor]] void watch_forks() noexcept { pthread_atfork(lock_identity, unlock_identity, in_child); }

}  // namespace

namespace {
/// May other processes have the memory at @p address, too? It has just been read: the kernel has its page.
bool may_be_shared(const void* address) noexcept {
  constexpr std::uint64_t present = 1ull << 63, file_or_shared = 1ull << 61;
  constexpr unsigned page_bits = 12;
  const int fd = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  std::uint64_t page = 0;
  const auto at = static_cast<off_t>((reinterpret_cast<std::uintptr_t>(address) >> page_bits) * sizeof page);
  const bool known = ::pread(fd, &page, sizeof page, at) == sizeof page;
  ::close(fd);
  return !known || (page & present) == 0 || (page & file_or_shared) != 0;
}

/// The arguments of a call of the kernel's.
struct futex_call {
  std::uint32_t* word;
  int op;
  std::uint32_t value;
  const timespec* limit;  ///< in calls that do not wait, a second value
  std::uint32_t* other;
  std::uint32_t mask;  ///< or a third value

  bool within_process() const noexcept { return (op & FUTEX_PRIVATE_FLAG) != 0; }
  std::uint32_t second_value() const noexcept {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(limit));
  }
  long by_kernel(std::uint32_t wanted) const noexcept {
    return REAL(syscall)(SYS_futex, word, op, wanted, limit, other, mask);
  }
};

/// Other processes wake nobody here: in their memory the word is looked at in turns. The flag that tells
/// whether it is theirs is missing in many libraries (libstdc++ before 13), so a wait that lasts finds out.
waited wait_for_word(const futex_call& c, const wait_options& how) noexcept {
  if (c.within_process()) return wait_while(c.word, c.value, how);
  wait_options first = how, later = how;
  const std::uint64_t soon = now_ns() + 1'000'000;
  const bool may_last = how.deadline_ns == no_deadline || how.deadline_ns > soon;
  if (may_last) first.deadline_ns = soon;
  const waited w = wait_while(c.word, c.value, first);
  if (w != waited::timed_out || !may_last) return w;
  later.shared = may_be_shared(c.word);
  const waited then = wait_while(c.word, c.value, later);
  return then == waited::changed ? waited::woken : then;
}

long wait_by_futex(const futex_call& c) noexcept {
  wait_options how{.interruptible = true, .what = "futex"};
  if (c.limit != nullptr) {
    const int clock = (c.op & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    if ((c.op & FUTEX_CMD_MASK) == FUTEX_WAIT)
      how.deadline_ns =
          now_ns() + static_cast<std::uint64_t>(std::min<time_t>(c.limit->tv_sec, 1 << 30)) * 1'000'000'000 +
          static_cast<std::uint64_t>(c.limit->tv_nsec);
    else
      how.deadline_ns = deadline_of(clock, c.limit).deadline_ns;
  }
  waited w = wait_for_word(c, how);
  while (w == waited::interrupted && !handle_signals() && c.limit == nullptr)  // as the kernel restarts it
    w = wait_for_word(c, how);
  errno = w == waited::changed       ? EAGAIN
          : w == waited::timed_out   ? ETIMEDOUT
          : w == waited::interrupted ? EINTR
                                     : errno;
  return w == waited::woken ? 0 : -1;
}

long wake_by_futex(const futex_call& c) noexcept {
  // Masks are not kept: threads with another one are woken for nothing, and wait again.
  const bool for_any = (c.op & FUTEX_CMD_MASK) == FUTEX_WAKE || c.mask == FUTEX_BITSET_MATCH_ANY;
  const std::uint32_t woken = std::min(wake(c.word, for_any ? c.value : all_of_them), c.value);
  if (c.within_process() || woken == c.value) return woken;
  const long others = c.by_kernel(c.value - woken);
  return woken + std::max(others, 0l);
}

/// Futexes as libraries without pthreads use them. All threads wait for them in this process, OS threads too,
/// so that any of them can wake any. False: the kernel's alone.
bool local_futex(const futex_call& c, long& result) noexcept {
  const int what = c.op & FUTEX_CMD_MASK;
  const bool refused = (what == FUTEX_WAIT_BITSET || what == FUTEX_WAKE_BITSET) && c.mask == 0;
  if (forked_ || refused) return false;
  switch (what) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      result = wait_by_futex(c);
      return true;
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
      result = wake_by_futex(c);
      return true;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:  // who would go on waiting for the other word comes back, as it may at any time
      result = c.by_kernel(c.value);
      if (result >= 0) result += wake(c.word, all_of_them);
      return true;
    case FUTEX_WAKE_OP:  // the kernel alone knows whether those of the other word are to be woken: they are
      result = c.by_kernel(c.value);
      if (result >= 0) result += wake(c.word, c.value) + wake(c.other, c.second_value());
      return true;
    default:
      return false;
  }
}
}  // namespace

GODWIT_EXPORT long syscall(long number, ...) noexcept {
  va_list args;
  va_start(args, number);
  long a[6];
  for (long& v : a) v = va_arg(args, long);
  va_end(args);
  if (number == SYS_futex) {
    const futex_call call{reinterpret_cast<std::uint32_t*>(a[0]), static_cast<int>(a[1]),
                          static_cast<std::uint32_t>(a[2]),       reinterpret_cast<const timespec*>(a[3]),
                          reinterpret_cast<std::uint32_t*>(a[4]), static_cast<std::uint32_t>(a[5])};
    if (long result; local_futex(call, result)) return result;
  } else if (is_light()) {
    if (number == SYS_gettid) return self()->tid;
    if (number == SYS_sched_yield) {
      give_way();
      return 0;
    }
    if (number == SYS_close) return godwit::io::close(static_cast<int>(a[0]));
    if (number == SYS_close_range)
      return godwit::io::close_range(static_cast<unsigned>(a[0]), static_cast<unsigned>(a[1]),
                                     static_cast<unsigned>(a[2]));
    if (number == SYS_tgkill || number == SYS_tkill) {
      const bool both = number == SYS_tgkill;
      if (thread* t = both && a[0] != getpid() ? nullptr : find_thread(static_cast<int>(a[both ? 1 : 0]));
          t != nullptr)
        return send_signal(*t, static_cast<int>(a[both ? 2 : 1]));
    }
    if (number == SYS_kill || number == SYS_pidfd_send_signal) {
      const long r = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
      if (r == 0 && a[1] != 0) settle_signals();  // it may have been this process
      return r;
    }
  }
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
