// Forking: the child is a program with one OS thread, and starts more as OS threads. And system calls by
// number.
#include <algorithm>
#include <cstdarg>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <godwit/io.hpp>

#include "context/context.hpp"
#include "io/events.hpp"

#include "identity.hpp"
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
  godwit::events::close_ours();
  thread* t = self();
  if (t == nullptr || t->heavy) return;
  t->heavy = true;
  t->signals.store(0, std::memory_order_seq_cst);
  t->handlers = nullptr;
  godwit::context::use_hot_words(nullptr);  // no worker any more
  forget_waiters();
  use_real_mask(*t);
}
// Not in a fork of our own: the C library's daemon and the like call it inside.
[[gnu::constructor]] void watch_forks() noexcept { pthread_atfork(lock_identity, unlock_identity, in_child); }

}  // namespace

namespace {
/// FUTEX_WAIT and FUTEX_WAKE of the threads of this process, as libraries without pthreads use them.
bool local_futex(std::uint32_t* word, int op, std::uint32_t value, const timespec* limit, std::uint32_t mask,
                 long& result) noexcept {
  const int clock = (op & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const int what = op & FUTEX_CMD_MASK;
  if (!running_) return false;
  if (what == FUTEX_WAKE || (what == FUTEX_WAKE_BITSET && mask == FUTEX_BITSET_MATCH_ANY)) {
    result = wake(word, value);
    // Without the flag somebody in another process may wait (libstdc++ before 13 leaves it out where nobody
    // can).
    if ((op & FUTEX_PRIVATE_FLAG) == 0 && result < static_cast<long>(value)) {
      const long others = REAL(syscall)(SYS_futex, word, op, value - static_cast<std::uint32_t>(result),
                                        nullptr, nullptr, mask);
      if (others > 0) result += others;
    }
    return true;
  }
  if (what != FUTEX_WAIT && !(what == FUTEX_WAIT_BITSET && mask == FUTEX_BITSET_MATCH_ANY)) return false;
  wait_options how{.interruptible = true, .what = "futex"};
  if (limit != nullptr) {
    if (what == FUTEX_WAIT)
      how.deadline_ns = now_ns() +
                        static_cast<std::uint64_t>(std::min<time_t>(limit->tv_sec, 1 << 30)) * 1'000'000'000 +
                        static_cast<std::uint64_t>(limit->tv_nsec);
    else
      how.deadline_ns = deadline_of(clock, limit).deadline_ns;
  }
  waited w = wait_while(word, value, how);
  while (w == waited::interrupted && !handle_signals() && limit == nullptr)  // as the kernel restarts it
    w = wait_while(word, value, how);
  errno = w == waited::changed       ? EAGAIN
          : w == waited::timed_out   ? ETIMEDOUT
          : w == waited::interrupted ? EINTR
                                     : errno;
  result = w == waited::woken ? 0 : -1;
  return true;
}
}  // namespace

GODWIT_EXPORT long syscall(long number, ...) noexcept {
  va_list args;
  va_start(args, number);
  long a[6];
  for (long& v : a) v = va_arg(args, long);
  va_end(args);
  if (self() != nullptr && is_light()) {
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
    if (number == SYS_futex) {
      long result;
      if (local_futex(reinterpret_cast<std::uint32_t*>(a[0]), static_cast<int>(a[1]),
                      static_cast<std::uint32_t>(a[2]), reinterpret_cast<const timespec*>(a[3]),
                      static_cast<std::uint32_t>(a[5]), result))
        return result;
    }
  }
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
