// Mutexes. The words are the C library's own: __lock is 0, 1 (held) or 2 (held, and somebody may wait), so static initialisers and
// what attributes say to pthread_mutex_init mean what they always mean. docs/pthread.md lists the kinds that are not supported.
#include <ctime>
#include <threads.h>

#include "real.hpp"
#include "report.hpp"
#include "thread.hpp"
#include "wait.hpp"

GODWIT_REAL(pthread_mutex_init);
GODWIT_REAL(pthread_mutex_destroy);

#include "mutex.hpp"

namespace godwit::pthread {

namespace {

constexpr int kind_mask = 3, robust = 16, inherit = 32, protect = 64, shared = 128;
constexpr unsigned spins = 60;  // about as long as a short critical section takes

int kind_of(const pthread_mutex_t* m) noexcept { return m->__data.__kind & kind_mask; }

bool is_shared(const pthread_mutex_t* m) noexcept { return (m->__data.__kind & shared) != 0; }

[[gnu::noinline]] int lock_slow(pthread_mutex_t* m, std::uint64_t deadline_ns) noexcept {
  auto* word = reinterpret_cast<std::uint32_t*>(&m->__data.__lock);
  for (unsigned i = 0; i < spins; ++i) {
    std::uint32_t expected = 0;
    if (__atomic_load_n(word, __ATOMIC_RELAXED) == 0 &&
        __atomic_compare_exchange_n(word, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return 0;
    __builtin_ia32_pause();
  }
  while (__atomic_exchange_n(word, 2, __ATOMIC_SEQ_CST) != 0)
    if (wait_while(word, 2, {.deadline_ns = deadline_ns, .what = "pthread mutex", .shared = is_shared(m)}) == waited::timed_out) {
      // The word may stay 2: then one unlock looks for waiters in vain.
      return ETIMEDOUT;
    }
  return 0;
}

[[gnu::noinline]] void say_unsupported(int kind) noexcept {
  static bool said[3];
  if ((kind & shared) != 0)
    not_supported(said[0], "a mutex shared between processes", "it works between the threads of this one");
  if ((kind & robust) != 0) not_supported(said[1], "a robust mutex", "it stays locked if its holder ends");
  if ((kind & (inherit | protect)) != 0) not_supported(said[2], "a priority protocol of a mutex", "threads have no priorities");
}

}  // namespace

int lock_mutex(pthread_mutex_t* m, std::uint64_t deadline_ns) noexcept {
  auto& d = m->__data;
  const int kind = kind_of(m);
  const int me = kind != PTHREAD_MUTEX_NORMAL ? own_tid() : 0;
  if (kind == PTHREAD_MUTEX_RECURSIVE || kind == PTHREAD_MUTEX_ERRORCHECK) {
    if (__atomic_load_n(&d.__owner, __ATOMIC_RELAXED) == me) {
      if (kind == PTHREAD_MUTEX_ERRORCHECK) return EDEADLK;
      if (d.__count + 1 == 0) return EAGAIN;
      ++d.__count;
      return 0;
    }
  }
  int expected = 0;
  if (!__atomic_compare_exchange_n(&d.__lock, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    if (const int error = lock_slow(m, deadline_ns); error != 0) return error;
  if (me != 0) __atomic_store_n(&d.__owner, me, __ATOMIC_RELAXED);
  if (kind == PTHREAD_MUTEX_RECURSIVE) d.__count = 1;
  return 0;
}

int unlock_mutex(pthread_mutex_t* m) noexcept {
  auto& d = m->__data;
  const int kind = kind_of(m);
  if (kind == PTHREAD_MUTEX_RECURSIVE || kind == PTHREAD_MUTEX_ERRORCHECK) {
    if (__atomic_load_n(&d.__owner, __ATOMIC_RELAXED) != own_tid()) return EPERM;
    if (kind == PTHREAD_MUTEX_RECURSIVE && --d.__count != 0) return 0;
  }
  if (kind != PTHREAD_MUTEX_NORMAL) __atomic_store_n(&d.__owner, 0, __ATOMIC_RELAXED);
  if (__atomic_exchange_n(&d.__lock, 0, __ATOMIC_SEQ_CST) == 2 && !is_shared(m)) wake(&d.__lock, 1);
  return 0;
}

}  // namespace godwit::pthread

using namespace godwit::pthread;

GODWIT_EXPORT int pthread_mutex_init(pthread_mutex_t* m, const pthread_mutexattr_t* attr) noexcept {
  const int error = REAL(pthread_mutex_init)(m, attr);
  if (error == 0 && (m->__data.__kind & (robust | inherit | protect | shared)) != 0) say_unsupported(m->__data.__kind);
  return error;
}
GODWIT_EXPORT int pthread_mutex_destroy(pthread_mutex_t* m) noexcept {
  return __atomic_load_n(&m->__data.__lock, __ATOMIC_RELAXED) != 0 ? EBUSY : 0;
}
GODWIT_EXPORT int pthread_mutex_lock(pthread_mutex_t* m) noexcept { return lock_mutex(m, no_deadline); }
GODWIT_EXPORT int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
  auto& d = m->__data;
  const int kind = kind_of(m);
  const int me = kind != PTHREAD_MUTEX_NORMAL ? own_tid() : 0;
  if (kind == PTHREAD_MUTEX_RECURSIVE && __atomic_load_n(&d.__owner, __ATOMIC_RELAXED) == me) {
    if (d.__count + 1 == 0) return EAGAIN;
    ++d.__count;
    return 0;
  }
  int expected = 0;
  if (!__atomic_compare_exchange_n(&d.__lock, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return EBUSY;
  if (me != 0) __atomic_store_n(&d.__owner, me, __ATOMIC_RELAXED);
  if (kind == PTHREAD_MUTEX_RECURSIVE) d.__count = 1;
  return 0;
}
GODWIT_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t clock, const timespec* at) noexcept {
  if (pthread_mutex_trylock(m) == 0) return 0;
  const when w = deadline_of(clock, at);
  return w.valid ? lock_mutex(m, w.deadline_ns) : EINVAL;
}
GODWIT_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* m, const timespec* at) noexcept {
  return pthread_mutex_clocklock(m, CLOCK_REALTIME, at);
}
GODWIT_EXPORT int pthread_mutex_unlock(pthread_mutex_t* m) noexcept { return unlock_mutex(m); }
extern "C" {
[[gnu::visibility("default"), gnu::alias("pthread_mutex_lock")]] int __pthread_mutex_lock(pthread_mutex_t*) noexcept;
[[gnu::visibility("default"), gnu::alias("pthread_mutex_trylock")]] int __pthread_mutex_trylock(pthread_mutex_t*) noexcept;
[[gnu::visibility("default"), gnu::alias("pthread_mutex_unlock")]] int __pthread_mutex_unlock(pthread_mutex_t*) noexcept;
}

namespace {
int c11(int error) noexcept {
  return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : error == EBUSY ? thrd_busy : thrd_error;
}
pthread_mutex_t* of(mtx_t* m) noexcept { return reinterpret_cast<pthread_mutex_t*>(m); }
}  // namespace

GODWIT_EXPORT int mtx_init(mtx_t* m, int type) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, (type & mtx_recursive) != 0 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
  return c11(pthread_mutex_init(of(m), &attr));
}
GODWIT_EXPORT void mtx_destroy(mtx_t*) {}
GODWIT_EXPORT int mtx_lock(mtx_t* m) { return c11(pthread_mutex_lock(of(m))); }
GODWIT_EXPORT int mtx_trylock(mtx_t* m) { return c11(pthread_mutex_trylock(of(m))); }
GODWIT_EXPORT int mtx_timedlock(mtx_t* m, const timespec* at) { return c11(pthread_mutex_timedlock(of(m), at)); }
GODWIT_EXPORT int mtx_unlock(mtx_t* m) { return c11(pthread_mutex_unlock(of(m))); }
