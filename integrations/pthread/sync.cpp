// Barriers, spin locks, once, semaphores.
#include <climits>
#include <ctime>
#include <semaphore.h>
#include <threads.h>

#include "real.hpp"
#include "report.hpp"
#include "thread.hpp"
#include "wait.hpp"

GODWIT_REAL(sem_init);
GODWIT_REAL(sem_trywait);
GODWIT_REAL(sem_post);

using namespace godwit::pthread;

namespace {

struct alignas(8) barrier {
  std::uint32_t arrived_and_round[2];  ///< one word of 64 bits: who comes must see both as they were at one time
  std::uint32_t count;
  std::uint32_t inside;  ///< who destroys waits for them
};
static_assert(sizeof(barrier) <= sizeof(pthread_barrier_t));
barrier& of(pthread_barrier_t* b) noexcept { return *reinterpret_cast<barrier*>(b); }

}  // namespace

GODWIT_EXPORT int pthread_barrier_init(pthread_barrier_t* b, const pthread_barrierattr_t* attr, unsigned count) noexcept {
  if (count == 0 || count > INT_MAX) return EINVAL;
  of(b) = {{0, 0}, count, 0};
  if (attr != nullptr) {
    int shared = PTHREAD_PROCESS_PRIVATE;
    pthread_barrierattr_getpshared(attr, &shared);
    static bool said = false;
    if (shared == PTHREAD_PROCESS_SHARED)
      not_supported(said, "a barrier shared between processes", "it works between the threads of this one");
  }
  return 0;
}
GODWIT_EXPORT int pthread_barrier_wait(pthread_barrier_t* bar) noexcept {
  barrier& b = of(bar);
  __atomic_fetch_add(&b.inside, 1, __ATOMIC_SEQ_CST);
  auto* both = reinterpret_cast<std::uint64_t*>(b.arrived_and_round);
  std::uint32_t* round_word = &b.arrived_and_round[1];
  std::uint64_t seen = __atomic_load_n(both, __ATOMIC_SEQ_CST), then;
  bool last;
  do {
    last = static_cast<std::uint32_t>(seen) + 1 == b.count;
    then = last ? ((seen >> 32) + 1) << 32 : seen + 1;
  } while (!__atomic_compare_exchange_n(both, &seen, then, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  int result = 0;
  if (last) {
    wake(round_word, all_of_them);
    result = PTHREAD_BARRIER_SERIAL_THREAD;
  } else {
    const auto round = static_cast<std::uint32_t>(seen >> 32);
    while (__atomic_load_n(round_word, __ATOMIC_SEQ_CST) == round) wait_while(round_word, round, {.what = "pthread barrier"});
  }
  __atomic_fetch_sub(&b.inside, 1, __ATOMIC_SEQ_CST);
  return result;
}
GODWIT_EXPORT int pthread_barrier_destroy(pthread_barrier_t* b) noexcept {
  while (__atomic_load_n(&of(b).inside, __ATOMIC_SEQ_CST) != 0) give_way();
  return 0;
}

// 1: open; 0 and less: held (glibc's on x86-64, whose unlock and trylock stay in use).
GODWIT_EXPORT int pthread_spin_lock(pthread_spinlock_t* l) noexcept {
  for (unsigned spins = 0; __atomic_exchange_n(l, 0, __ATOMIC_ACQUIRE) != 1;)
    if (++spins % 64 == 0)
      give_way();  // its holder may have to run here
    else
      __builtin_ia32_pause();
  return 0;
}

namespace {
constexpr std::uint32_t once_never = 0, once_running = 1, once_done = 2;
}
GODWIT_EXPORT int pthread_once(pthread_once_t* once, void (*f)()) {
  auto* word = reinterpret_cast<std::uint32_t*>(once);
  for (;;) {
    std::uint32_t state = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (state == once_done) return 0;
    if (state == once_running) {
      wait_while(word, once_running, {.what = "pthread_once"});
      continue;
    }
    if (!__atomic_compare_exchange_n(word, &state, once_running, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) continue;
    try {
      f();
    } catch (...) {  // also when the thread is cancelled: somebody else tries again
      __atomic_store_n(word, once_never, __ATOMIC_SEQ_CST);
      wake(word, all_of_them);
      throw;
    }
    __atomic_store_n(word, once_done, __ATOMIC_SEQ_CST);
    wake(word, all_of_them);
    return 0;
  }
}
extern "C" [[gnu::visibility("default"), gnu::alias("pthread_once")]] int __pthread_once(pthread_once_t*, void (*)());
GODWIT_EXPORT void call_once(once_flag* once, void (*f)()) { pthread_once(reinterpret_cast<pthread_once_t*>(once), f); }

// Semaphores. The value lies where the C library has it; a semaphore of several processes stays the C library's, and is looked at in turns.
namespace {

struct semaphore {
  std::uint32_t value;
  std::uint32_t waiters;  ///< not used: who destroys would have to wait for their last touch
  std::int32_t shared;  ///< as glibc: 0, or 128
};
static_assert(sizeof(semaphore) <= sizeof(sem_t));
semaphore& of(sem_t* s) noexcept { return *reinterpret_cast<semaphore*>(s); }
bool is_shared(sem_t* s) noexcept { return of(s).shared != 0; }

bool try_take(semaphore& s) noexcept {
  std::uint32_t v = __atomic_load_n(&s.value, __ATOMIC_SEQ_CST);
  while (v != 0)
    if (__atomic_compare_exchange_n(&s.value, &v, v - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return true;
  return false;
}

int fail_with(int error) noexcept {
  errno = error;
  return -1;
}

int take_shared(sem_t* sem, std::uint64_t deadline_ns) {
  for (std::uint64_t pause_ns = 20'000;; pause_ns = pause_ns < 2'000'000 ? pause_ns * 2 : pause_ns) {
    test_cancel();
    if (REAL(sem_trywait)(sem) == 0) return 0;
    const std::uint64_t now = now_ns();
    if (deadline_ns != no_deadline && now >= deadline_ns) return fail_with(ETIMEDOUT);
    const waited w = wait_under(&pause_ns, {.deadline_ns = now + pause_ns, .cancellable = true, .interruptible = true, .what = "semaphore"});
    if (w == waited::cancelled) end_by_cancel();
    if (w == waited::interrupted) {
      handle_signals();
      return fail_with(EINTR);
    }
  }
}

int take(sem_t* sem, std::uint64_t deadline_ns) {
  test_cancel();
  if (is_shared(sem)) return take_shared(sem, deadline_ns);
  semaphore& s = of(sem);
  if (try_take(s)) return 0;
  waited w = waited::woken;
  bool taken = false;
  while (!(taken = try_take(s)) && (w == waited::woken || w == waited::changed))
    w = wait_while(&s.value, 0, {.deadline_ns = deadline_ns, .cancellable = true, .interruptible = true, .what = "semaphore"});
  if (taken) return 0;
  if (w == waited::cancelled) end_by_cancel();
  if (w == waited::interrupted) handle_signals();
  return fail_with(w == waited::timed_out ? ETIMEDOUT : EINTR);
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
