// Condition variables: a number that every signal raises, and a queue under its address. The object's layout
// is ours: users see only zeros in static initialisers.
#include <ctime>
#include <threads.h>

#include "mutex.hpp"
#include "real.hpp"
#include "thread.hpp"
#include "wait.hpp"

namespace godwit::pthread {

namespace {

struct condition {
  std::uint32_t signals;  ///< W who signals, R who waits
  std::uint32_t clock;    ///< W init
  std::uint32_t waiters;  ///< from before they give up the mutex. W they, R who signals
  std::uint32_t shared;   ///< between processes. W init
};
static_assert(sizeof(condition) <= sizeof(pthread_cond_t));
condition& of(pthread_cond_t* c) noexcept { return *reinterpret_cast<condition*>(c); }

int wait(pthread_cond_t* cond, pthread_mutex_t* m, std::uint64_t deadline_ns) {
  condition& c = of(cond);
  test_cancel();
  const std::uint32_t seen = __atomic_load_n(&c.signals, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&c.waiters, 1, __ATOMIC_SEQ_CST);
  if (const int error = unlock_mutex(m); error != 0) {
    __atomic_fetch_sub(&c.waiters, 1, __ATOMIC_SEQ_CST);
    return error;
  }
  const waited w = wait_while(&c.signals, seen,
                              {.deadline_ns = deadline_ns,
                               .cancellable = true,
                               .what = "condition variable",
                               .shared = c.shared != 0});
  __atomic_fetch_sub(&c.waiters, 1, __ATOMIC_SEQ_CST);  // the last touch: who destroys waits for it
  const int error = lock_mutex(m, no_deadline);
  if (w == waited::cancelled) end_by_cancel();  // with the mutex held, as cleanup handlers expect
  if (error != 0) return error;                 // a robust one: EOWNERDEAD
  return w == waited::timed_out ? ETIMEDOUT : 0;
}

}  // namespace
}  // namespace godwit::pthread

using namespace godwit::pthread;

GODWIT_EXPORT int pthread_cond_init(pthread_cond_t* cond, const pthread_condattr_t* attr) noexcept {
  of(cond) = {};
  if (attr != nullptr) {
    clockid_t clock = CLOCK_REALTIME;
    pthread_condattr_getclock(attr, &clock);
    of(cond).clock = static_cast<std::uint32_t>(clock);
    int shared = PTHREAD_PROCESS_PRIVATE;
    pthread_condattr_getpshared(attr, &shared);
    of(cond).shared = shared == PTHREAD_PROCESS_SHARED;
  }
  return 0;
}
GODWIT_EXPORT int pthread_cond_destroy(pthread_cond_t* cond) noexcept {
  // Those that a signal has woken may be destroyed under, if they have not come out yet.
  while (__atomic_load_n(&of(cond).waiters, __ATOMIC_SEQ_CST) != 0) give_way();
  return 0;
}
GODWIT_EXPORT int pthread_cond_wait(pthread_cond_t* cond, pthread_mutex_t* m) {
  return wait(cond, m, no_deadline);
}
GODWIT_EXPORT int pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* m, clockid_t clock,
                                         const timespec* at) {
  const when w = deadline_of(clock, at);
  return w.valid ? wait(cond, m, w.deadline_ns) : EINVAL;
}
GODWIT_EXPORT int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* m, const timespec* at) {
  return pthread_cond_clockwait(cond, m, static_cast<clockid_t>(of(cond).clock), at);
}
GODWIT_EXPORT int pthread_cond_signal(pthread_cond_t* cond) noexcept {
  condition& c = of(cond);
  if (__atomic_load_n(&c.waiters, __ATOMIC_SEQ_CST) == 0) return 0;
  __atomic_fetch_add(&c.signals, 1, __ATOMIC_SEQ_CST);
  if (c.shared == 0) wake(&c.signals, 1);
  return 0;
}
GODWIT_EXPORT int pthread_cond_broadcast(pthread_cond_t* cond) noexcept {
  condition& c = of(cond);
  if (__atomic_load_n(&c.waiters, __ATOMIC_SEQ_CST) == 0) return 0;
  __atomic_fetch_add(&c.signals, 1, __ATOMIC_SEQ_CST);
  if (c.shared == 0) wake(&c.signals, all_of_them);
  return 0;
}

static pthread_cond_t* of(cnd_t* c) noexcept { return reinterpret_cast<pthread_cond_t*>(c); }
GODWIT_EXPORT int cnd_init(cnd_t* c) {
  return pthread_cond_init(of(c), nullptr) == 0 ? thrd_success : thrd_error;
}
GODWIT_EXPORT void cnd_destroy(cnd_t* c) { pthread_cond_destroy(of(c)); }
GODWIT_EXPORT int cnd_wait(cnd_t* c, mtx_t* m) {
  return pthread_cond_wait(of(c), reinterpret_cast<pthread_mutex_t*>(m)) == 0 ? thrd_success : thrd_error;
}
GODWIT_EXPORT int cnd_timedwait(cnd_t* c, mtx_t* m, const timespec* at) {
  const int error = pthread_cond_timedwait(of(c), reinterpret_cast<pthread_mutex_t*>(m), at);
  return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}
GODWIT_EXPORT int cnd_signal(cnd_t* c) { return pthread_cond_signal(of(c)) == 0 ? thrd_success : thrd_error; }
GODWIT_EXPORT int cnd_broadcast(cnd_t* c) {
  return pthread_cond_broadcast(of(c)) == 0 ? thrd_success : thrd_error;
}
