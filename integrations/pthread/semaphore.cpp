// Semaphores. The value lies where the C library has it; a semaphore of several processes stays the C
// library's, and is looked at in turns.
#include <climits>
#include <ctime>
#include <semaphore.h>

#include "real.hpp"
#include "thread.hpp"
#include "wait.hpp"

GODWIT_REAL(sem_init);
GODWIT_REAL(sem_trywait);
GODWIT_REAL(sem_post);

using namespace godwit::pthread;

namespace {

struct semaphore {
  std::uint32_t value;
  std::uint32_t waiters;  ///< not used: who destroys would have to wait for their last touch
  std::int32_t shared;    ///< as glibc: 0, or 128
};
static_assert(sizeof(semaphore) <= sizeof(sem_t));
semaphore& of(sem_t* s) noexcept { return *reinterpret_cast<semaphore*>(s); }
bool is_shared(sem_t* s) noexcept { return of(s).shared != 0; }

bool try_take(semaphore& s) noexcept {
  std::uint32_t v = __atomic_load_n(&s.value, __ATOMIC_SEQ_CST);
  while (v != 0)
    if (__atomic_compare_exchange_n(&s.value, &v, v - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return true;
  return false;
}

int fail_with(int error) noexcept {
  errno = error;
  return -1;
}

/// The caller is interrupted: handlers run. With a deadline each of them ends the wait, as in the kernel;
/// without one, only those that were installed without SA_RESTART.
bool ends_wait(std::uint64_t deadline_ns) {
  const bool interrupts = handle_signals();
  return interrupts || deadline_ns != no_deadline;
}

int take_shared(sem_t* sem, std::uint64_t deadline_ns) {
  for (std::uint64_t pause_ns = 20'000;; pause_ns = pause_ns < 2'000'000 ? pause_ns * 2 : pause_ns) {
    test_cancel();
    if (REAL(sem_trywait)(sem) == 0) return 0;
    const std::uint64_t now = now_ns();
    if (deadline_ns != no_deadline && now >= deadline_ns) return fail_with(ETIMEDOUT);
    const waited w = wait_under(
        &pause_ns,
        {.deadline_ns = now + pause_ns, .cancellable = true, .interruptible = true, .what = "semaphore"});
    if (w == waited::cancelled) end_by_cancel();
    if (w == waited::interrupted && ends_wait(deadline_ns)) return fail_with(EINTR);
  }
}

int take(sem_t* sem, std::uint64_t deadline_ns) {
  test_cancel();
  if (is_shared(sem)) return take_shared(sem, deadline_ns);
  semaphore& s = of(sem);
  for (waited w = waited::woken; !try_take(s);) {
    if (w == waited::cancelled) end_by_cancel();
    if (w == waited::timed_out) return fail_with(ETIMEDOUT);
    if (w == waited::interrupted && ends_wait(deadline_ns)) return fail_with(EINTR);
    w = wait_while(
        &s.value, 0,
        {.deadline_ns = deadline_ns, .cancellable = true, .interruptible = true, .what = "semaphore"});
  }
  return 0;
}

}  // namespace

GODWIT_EXPORT int sem_init(sem_t* s, int shared, unsigned value) noexcept {
  if (shared != 0) return REAL(sem_init)(s, shared, value);
  if (value > SEM_VALUE_MAX) return fail_with(EINVAL);
  of(s) = {value, 0, 0};
  return 0;
}
GODWIT_EXPORT int sem_destroy(sem_t*) noexcept { return 0; }
GODWIT_EXPORT int sem_wait(sem_t* s) { return take(s, no_deadline); }
GODWIT_EXPORT int sem_trywait(sem_t* s) noexcept {
  if (is_shared(s)) return REAL(sem_trywait)(s);
  return try_take(of(s)) ? 0 : fail_with(EAGAIN);
}
GODWIT_EXPORT int sem_clockwait(sem_t* s, clockid_t clock, const timespec* at) {
  if (sem_trywait(s) == 0) return 0;
  const when w = deadline_of(clock, at);
  return w.valid ? take(s, w.deadline_ns) : fail_with(EINVAL);
}
GODWIT_EXPORT int sem_timedwait(sem_t* s, const timespec* at) { return sem_clockwait(s, CLOCK_REALTIME, at); }
GODWIT_EXPORT int sem_post(sem_t* sem) noexcept {
  if (is_shared(sem)) return REAL(sem_post)(sem);
  semaphore& s = of(sem);
  std::uint32_t v = __atomic_load_n(&s.value, __ATOMIC_RELAXED);
  do {
    if (v == SEM_VALUE_MAX) return fail_with(EOVERFLOW);
  } while (!__atomic_compare_exchange_n(&s.value, &v, v + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  // Who takes it may destroy the semaphore: from here on only its address counts.
  wake(&s.value, 1);
  return 0;
}
GODWIT_EXPORT int sem_getvalue(sem_t* s, int* value) noexcept {
  *value = static_cast<int>(__atomic_load_n(&of(s).value, __ATOMIC_SEQ_CST));
  return 0;
}
