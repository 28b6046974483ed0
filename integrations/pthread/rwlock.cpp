// Read-write locks. The layout is ours, but for the kind (prefer writers or not), which static initialisers
// put where the C library has it.
#include <cstddef>
#include <ctime>
#include <unistd.h>

#include "real.hpp"
#include "thread.hpp"
#include "wait.hpp"

namespace godwit::pthread {

namespace {

constexpr std::uint32_t writing = 1u << 31, waited_for = 1u << 30;  // below: how many readers

struct rwlock {
  /// readers, or `writing`; and `waited_for`, which who waits sets before it looks once more. W holders
  std::uint32_t state;
  std::uint32_t waiting_writers;
  std::uint64_t writer;  ///< its number; the upper half is its process, if others may use the lock
};
static_assert(sizeof(rwlock) <= offsetof(pthread_rwlock_t, __data.__shared) &&
              sizeof(rwlock) <= offsetof(pthread_rwlock_t, __data.__flags));
rwlock& of(pthread_rwlock_t* l) noexcept { return *reinterpret_cast<rwlock*>(l); }

bool is_shared(const pthread_rwlock_t* l) noexcept { return l->__data.__shared != 0; }
bool prefers_writers(const pthread_rwlock_t* l) noexcept {
  return l->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}
/// The caller, as a writer. Threads of other processes have the same numbers.
std::uint64_t own_name(const pthread_rwlock_t* l) noexcept {
  const auto pid = static_cast<std::uint32_t>(is_shared(l) ? ::getpid() : 0);
  return static_cast<std::uint32_t>(own_tid()) | std::uint64_t{pid} << 32;
}

int try_read(pthread_rwlock_t* lock) noexcept {
  rwlock& l = of(lock);
  std::uint32_t s = __atomic_load_n(&l.state, __ATOMIC_SEQ_CST);
  for (;;) {
    const std::uint32_t holders = s & ~waited_for;
    if ((s & writing) != 0) return EBUSY;
    if (holders != 0 && prefers_writers(lock) && __atomic_load_n(&l.waiting_writers, __ATOMIC_SEQ_CST) != 0)
      return EBUSY;
    if (holders + 1 == waited_for) return EAGAIN;
    if (__atomic_compare_exchange_n(&l.state, &s, s + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 0;
  }
}
int try_write(pthread_rwlock_t* lock) noexcept {
  rwlock& l = of(lock);
  std::uint32_t s = __atomic_load_n(&l.state, __ATOMIC_SEQ_CST);
  do
    if ((s & ~waited_for) != 0) return EBUSY;
  while (!__atomic_compare_exchange_n(&l.state, &s, s | writing, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  __atomic_store_n(&l.writer, own_name(lock), __ATOMIC_RELAXED);
  return 0;
}

int take(pthread_rwlock_t* lock, int (*attempt)(pthread_rwlock_t*) noexcept,
         std::uint64_t deadline_ns) noexcept {
  int error = attempt(lock);
  if (error != EBUSY) return error;
  rwlock& l = of(lock);
  if ((__atomic_load_n(&l.state, __ATOMIC_SEQ_CST) & writing) != 0 &&
      __atomic_load_n(&l.writer, __ATOMIC_RELAXED) == own_name(lock))
    return EDEADLK;
  const bool writes = attempt == try_write;
  if (writes) __atomic_fetch_add(&l.waiting_writers, 1, __ATOMIC_SEQ_CST);
  bool timed_out = false;
  for (;;) {
    // before the attempt: who opens it afterwards wakes us
    const std::uint32_t seen = __atomic_or_fetch(&l.state, waited_for, __ATOMIC_SEQ_CST);
    error = attempt(lock);
    if (error != EBUSY) break;
    if (timed_out) {
      error = ETIMEDOUT;
      break;
    }
    timed_out = wait_while(&l.state, seen,
                           {.deadline_ns = deadline_ns,
                            .what = writes ? "shared mutex" : "shared mutex (to read)",
                            .shared = is_shared(lock)}) == waited::timed_out;
  }
  // A writer that gives up may have been what readers waited for.
  if (writes && __atomic_sub_fetch(&l.waiting_writers, 1, __ATOMIC_SEQ_CST) == 0 && error == ETIMEDOUT) {
    __atomic_fetch_and(&l.state, ~waited_for, __ATOMIC_SEQ_CST);
    if (!is_shared(lock)) wake(&l.state, all_of_them);
  }
  return error;
}

int take_until(pthread_rwlock_t* lock, int (*attempt)(pthread_rwlock_t*) noexcept, int clock,
               const timespec* at) noexcept {
  const int error = attempt(lock);
  if (error != EBUSY) return error;
  const when w = deadline_of(clock, at);
  return w.valid ? take(lock, attempt, w.deadline_ns) : EINVAL;
}

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
  return take(l, try_read, no_deadline);
}
GODWIT_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t* l) noexcept { return try_read(l); }
GODWIT_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* l, clockid_t clock,
                                             const timespec* at) noexcept {
  return take_until(l, try_read, clock, at);
}
GODWIT_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* l, const timespec* at) noexcept {
  return take_until(l, try_read, CLOCK_REALTIME, at);
}
GODWIT_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* l) noexcept {
  return take(l, try_write, no_deadline);
}
GODWIT_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t* l) noexcept { return try_write(l); }
GODWIT_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* l, clockid_t clock,
                                             const timespec* at) noexcept {
  return take_until(l, try_write, clock, at);
}
GODWIT_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* l, const timespec* at) noexcept {
  return take_until(l, try_write, CLOCK_REALTIME, at);
}
GODWIT_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  rwlock& l = of(lock);
  // Read before it is let go: the next one may destroy it at once, and then only its address counts.
  const bool shared = is_shared(lock);
  std::uint32_t s = __atomic_load_n(&l.state, __ATOMIC_RELAXED), then;
  if ((s & writing) != 0) __atomic_store_n(&l.writer, 0, __ATOMIC_RELAXED);
  do {
    const bool opens = (s & writing) != 0 || (s & ~waited_for) == 1;
    then = opens ? 0 : s - 1;
  } while (!__atomic_compare_exchange_n(&l.state, &s, then, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  if (then == 0 && (s & waited_for) != 0 && !shared) wake(&l.state, all_of_them);
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
