// Read-write locks. The layout is ours, but for the kind (prefer writers or not), which static initialisers
// put where the C library has it.
#include <cstddef>
#include <ctime>

#include "real.hpp"
#include "thread.hpp"
#include "wait.hpp"

namespace godwit::pthread {

namespace {

constexpr std::uint32_t writing = 1u << 31;

struct rwlock {
  std::uint32_t state;  ///< readers, or `writing`. W holders
  std::uint32_t waiting_writers;
  std::uint32_t waiting_readers;
  std::int32_t writer;  ///< its number
  std::uint32_t epoch;  ///< raised when it opens; waiters wait for it to change
};
static_assert(sizeof(rwlock) <= offsetof(pthread_rwlock_t, __data.__shared) &&
              sizeof(rwlock) <= offsetof(pthread_rwlock_t, __data.__flags));
rwlock& of(pthread_rwlock_t* l) noexcept { return *reinterpret_cast<rwlock*>(l); }

bool is_shared(const pthread_rwlock_t* l) noexcept { return l->__data.__shared != 0; }
bool prefers_writers(const pthread_rwlock_t* l) noexcept {
  return l->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

int try_read(pthread_rwlock_t* lock) noexcept {
  rwlock& l = of(lock);
  std::uint32_t s = __atomic_load_n(&l.state, __ATOMIC_SEQ_CST);
  for (;;) {
    if ((s & writing) != 0) return EBUSY;
    if (s != 0 && prefers_writers(lock) && __atomic_load_n(&l.waiting_writers, __ATOMIC_SEQ_CST) != 0)
      return EBUSY;
    if (s + 1 == writing) return EAGAIN;
    if (__atomic_compare_exchange_n(&l.state, &s, s + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 0;
  }
}
int try_write(pthread_rwlock_t* lock) noexcept {
  rwlock& l = of(lock);
  std::uint32_t s = 0;
  if (!__atomic_compare_exchange_n(&l.state, &s, writing, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    return EBUSY;
  __atomic_store_n(&l.writer, own_tid(), __ATOMIC_RELAXED);
  return 0;
}

int take(pthread_rwlock_t* lock, int (*attempt)(pthread_rwlock_t*) noexcept, std::uint32_t rwlock::*waiting,
         std::uint64_t deadline_ns) noexcept {
  int error = attempt(lock);
  if (error != EBUSY) return error;
  rwlock& l = of(lock);
  if ((__atomic_load_n(&l.state, __ATOMIC_SEQ_CST) & writing) != 0 &&
      __atomic_load_n(&l.writer, __ATOMIC_RELAXED) == own_tid())
    return EDEADLK;
  // before the look at the state: who opens it looks here afterwards.
  __atomic_fetch_add(&(l.*waiting), 1, __ATOMIC_SEQ_CST);
  bool timed_out = false;
  for (;;) {
    const std::uint32_t seen = __atomic_load_n(&l.epoch, __ATOMIC_SEQ_CST);
    error = attempt(lock);
    if (error != EBUSY) break;
    if (timed_out) {
      error = ETIMEDOUT;
      break;
    }
    timed_out =
        wait_while(&l.epoch, seen,
                   {.deadline_ns = deadline_ns,
                    .what = waiting == &rwlock::waiting_writers ? "shared mutex" : "shared mutex (to read)",
                    .shared = is_shared(lock)}) == waited::timed_out;
  }
  const std::uint32_t left = __atomic_sub_fetch(&(l.*waiting), 1, __ATOMIC_SEQ_CST);
  // A writer that gives up may have been what readers waited for.
  if (error == ETIMEDOUT && waiting == &rwlock::waiting_writers && left == 0 &&
      __atomic_load_n(&l.waiting_readers, __ATOMIC_SEQ_CST) != 0) {
    __atomic_fetch_add(&l.epoch, 1, __ATOMIC_SEQ_CST);
    if (!is_shared(lock)) wake(&l.epoch, all_of_them);
  }
  return error;
}

int take_until(pthread_rwlock_t* lock, int (*attempt)(pthread_rwlock_t*) noexcept,
               std::uint32_t rwlock::*waiting, int clock, const timespec* at) noexcept {
  const int error = attempt(lock);
  if (error != EBUSY) return error;
  const when w = deadline_of(clock, at);
  return w.valid ? take(lock, attempt, waiting, w.deadline_ns) : EINVAL;
}

constexpr auto readers = &rwlock::waiting_readers, writers = &rwlock::waiting_writers;

}  // namespace
}  // namespace godwit::pthread

using namespace godwit::pthread;

GODWIT_EXPORT int pthread_rwlock_init(pthread_rwlock_t* l, const pthread_rwlockattr_t* attr) noexcept {
  *l = PTHREAD_RWLOCK_INITIALIZER;
  if (attr != nullptr) {
    int kind = 0, shared = PTHREAD_PROCESS_PRIVATE;
    pthread_rwlockattr_getkind_np(attr, &kind);
    l->__data.__flags = static_cast<unsigned>(kind);
    pthread_rwlockattr_getpshared(attr, &shared);
    l->__data.__shared = shared == PTHREAD_PROCESS_SHARED;
  }
  return 0;
}
GODWIT_EXPORT int pthread_rwlock_destroy(pthread_rwlock_t*) noexcept { return 0; }
GODWIT_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* l) noexcept {
  return take(l, try_read, readers, no_deadline);
}
GODWIT_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t* l) noexcept { return try_read(l); }
GODWIT_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* l, clockid_t clock,
                                             const timespec* at) noexcept {
  return take_until(l, try_read, readers, clock, at);
}
GODWIT_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* l, const timespec* at) noexcept {
  return take_until(l, try_read, readers, CLOCK_REALTIME, at);
}
GODWIT_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* l) noexcept {
  return take(l, try_write, writers, no_deadline);
}
GODWIT_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t* l) noexcept { return try_write(l); }
GODWIT_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* l, clockid_t clock,
                                             const timespec* at) noexcept {
  return take_until(l, try_write, writers, clock, at);
}
GODWIT_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* l, const timespec* at) noexcept {
  return take_until(l, try_write, writers, CLOCK_REALTIME, at);
}
GODWIT_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  rwlock& l = of(lock);
  std::uint32_t left = 0;
  if ((__atomic_load_n(&l.state, __ATOMIC_RELAXED) & writing) != 0) {
    __atomic_store_n(&l.writer, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&l.state, 0, __ATOMIC_SEQ_CST);
  } else {
    left = __atomic_sub_fetch(&l.state, 1, __ATOMIC_SEQ_CST);
  }
  if (left == 0 && (__atomic_load_n(&l.waiting_writers, __ATOMIC_SEQ_CST) |
                    __atomic_load_n(&l.waiting_readers, __ATOMIC_SEQ_CST)) != 0) {
    __atomic_fetch_add(&l.epoch, 1, __ATOMIC_SEQ_CST);  // after the state
    if (!is_shared(lock)) wake(&l.epoch, all_of_them);
  }
  return 0;
}
extern "C" {
[[gnu::visibility("default"), gnu::alias("pthread_rwlock_rdlock")]] int __pthread_rwlock_rdlock(
    pthread_rwlock_t*) noexcept;
[[gnu::visibility("default"), gnu::alias("pthread_rwlock_wrlock")]] int __pthread_rwlock_wrlock(
    pthread_rwlock_t*) noexcept;
[[gnu::visibility("default"), gnu::alias("pthread_rwlock_unlock")]] int __pthread_rwlock_unlock(
    pthread_rwlock_t*) noexcept;
}
