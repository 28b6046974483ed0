// See waits.hpp. It knows some of glibc's data: that of the types in its public headers, which are part
// of its ABI.
#include "heap/waits.hpp"

#include "heap/malloc.hpp"
#include "heap/redirect.hpp"

#include "base/clock.hpp"
#include "base/world.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__GLIBC__)

namespace godwit::heap {

namespace {

/// The C library's functions that calls went to before.
struct real {
  int (*mutex_lock)(pthread_mutex_t*);
  int (*mutex_trylock)(pthread_mutex_t*);
  int (*mutex_timedlock)(pthread_mutex_t*, const timespec*);
  int (*mutex_clocklock)(pthread_mutex_t*, clockid_t, const timespec*);
  int (*cond_wait)(pthread_cond_t*, pthread_mutex_t*);
  int (*cond_timedwait)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  int (*cond_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  int (*rdlock)(pthread_rwlock_t*);
  int (*wrlock)(pthread_rwlock_t*);
  int (*tryrdlock)(pthread_rwlock_t*);
  int (*trywrlock)(pthread_rwlock_t*);
  int (*timedrdlock)(pthread_rwlock_t*, const timespec*);
  int (*timedwrlock)(pthread_rwlock_t*, const timespec*);
  int (*clockrdlock)(pthread_rwlock_t*, clockid_t, const timespec*);
  int (*clockwrlock)(pthread_rwlock_t*, clockid_t, const timespec*);
  int (*once)(pthread_once_t*, void (*)());
  int (*barrier_init)(pthread_barrier_t*, const pthread_barrierattr_t*, unsigned);
  int (*sem_init)(sem_t*, int, unsigned);
  long (*syscall)(long, ...);
};
real real_{};

constexpr int shared_mutex = 128;    // in __kind: PTHREAD_MUTEX_PSHARED_BIT
constexpr unsigned shared_cond = 1;  // in __wrefs

template <class Word>
void set_bits(Word& word, Word bits) noexcept {
  if ((__atomic_load_n(&word, __ATOMIC_RELAXED) & bits) == 0)
    __atomic_fetch_or(&word, bits, __ATOMIC_RELAXED);
}
pthread_mutex_t* open(pthread_mutex_t* m) noexcept {
  if (here.holds(m)) set_bits(m->__data.__kind, shared_mutex);
  return m;
}
pthread_cond_t* open(pthread_cond_t* c) noexcept {
  if (here.holds(c)) set_bits(c->__data.__wrefs, shared_cond);
  return c;
}
pthread_rwlock_t* open(pthread_rwlock_t* l) noexcept {
  if (here.holds(l)) l->__data.__shared = 1;
  return l;
}

int mutex_lock(pthread_mutex_t* m) { return real_.mutex_lock(open(m)); }
int mutex_trylock(pthread_mutex_t* m) { return real_.mutex_trylock(open(m)); }
int mutex_timedlock(pthread_mutex_t* m, const timespec* until) {
  return real_.mutex_timedlock(open(m), until);
}
int mutex_clocklock(pthread_mutex_t* m, clockid_t clock, const timespec* until) {
  return real_.mutex_clocklock(open(m), clock, until);
}
int cond_wait(pthread_cond_t* c, pthread_mutex_t* m) { return real_.cond_wait(open(c), m); }
int cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const timespec* until) {
  return real_.cond_timedwait(open(c), m, until);
}
int cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t clock, const timespec* until) {
  return real_.cond_clockwait(open(c), m, clock, until);
}
int rdlock(pthread_rwlock_t* l) { return real_.rdlock(open(l)); }
int wrlock(pthread_rwlock_t* l) { return real_.wrlock(open(l)); }
int tryrdlock(pthread_rwlock_t* l) { return real_.tryrdlock(open(l)); }
int trywrlock(pthread_rwlock_t* l) { return real_.trywrlock(open(l)); }
int timedrdlock(pthread_rwlock_t* l, const timespec* until) { return real_.timedrdlock(open(l), until); }
int timedwrlock(pthread_rwlock_t* l, const timespec* until) { return real_.timedwrlock(open(l), until); }
int clockrdlock(pthread_rwlock_t* l, clockid_t clock, const timespec* until) {
  return real_.clockrdlock(open(l), clock, until);
}
int clockwrlock(pthread_rwlock_t* l, clockid_t clock, const timespec* until) {
  return real_.clockwrlock(open(l), clock, until);
}

// 0: nobody has called; 1: somebody runs it; 2: it has run, for the C library as well.
int once(pthread_once_t* o, void (*f)()) {
  if (!here.holds(o)) return real_.once(o, f);
  std::atomic_ref<int> state(*o);
  for (;;) {
    int now = 0;
    if (state.compare_exchange_strong(now, 1, std::memory_order_acquire)) break;
    if (now == 2) return 0;
    base::nap(50'000);
  }
  struct undo {  // f may throw
    std::atomic_ref<int>& state;
    int to = 0;
    ~undo() { state.store(to, std::memory_order_release); }
  } at_the_end{state};
  f();
  at_the_end.to = 2;
  return 0;
}

int barrier_init(pthread_barrier_t* b, const pthread_barrierattr_t* how, unsigned count) {
  if (!here.holds(b)) return real_.barrier_init(b, how, count);
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  return real_.barrier_init(b, &shared, count);
}
int semaphore_init(sem_t* s, int shared, unsigned value) {
  return real_.sem_init(s, here.holds(s) ? 1 : shared, value);
}

bool is_over(const timespec& until, bool by_the_date) noexcept {
  timespec now{};
  if (by_the_date) {
    timespec_get(&now, TIME_UTC);
  } else {
    const std::uint64_t ns = base::now_ns();
    now = {static_cast<std::time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  }
  return now.tv_sec > until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec);
}

/// The variables of a loaded object: every process has its own.
struct variables {
  code of[256];
  unsigned count = 0;
  bool hold(long address) const noexcept {
    const auto* const at = reinterpret_cast<const void*>(address);
    return std::any_of(of, of + count, [&](const code& one) { return one.holds(at); });
  }
};
variables variables_;

void find_variables() noexcept {
  unsigned count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        unsigned& n = *static_cast<unsigned*>(found);
        for (unsigned i = 0; i < object->dlpi_phnum; ++i)
          if (const auto& part = object->dlpi_phdr[i];
              part.p_type == PT_LOAD && (part.p_flags & PF_W) != 0 && n < std::size(variables_.of))
            variables_.of[n++] = {object->dlpi_addr + part.p_vaddr, part.p_memsz};
        return 0;
      },
      &count);
  variables_.count = count;
}

/// Objects that were loaded so far, those that are gone included.
unsigned long long loads() noexcept {
  unsigned long long n = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        *static_cast<unsigned long long*>(found) = object->dlpi_adds;
        return 1;
      },
      &n);
  return n;
}

/// A worker's wait by std::atomic::wait and what is made of it. Who wakes asks a counter in its own
/// process whether anybody waits, so it wakes nobody of another: look again after a millisecond. (The
/// library's own waits are on memory of the run that is none of these.)
long system_call(long number, ...) {
  std::va_list list;
  va_start(list, number);
  long a[6];
  for (long& v : a) v = va_arg(list, long);
  va_end(list);
  const long op = a[1] & FUTEX_CMD_MASK;
  const bool waits = own_part() != nullptr && number == SYS_futex &&
                     (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET) &&
                     ((a[1] & FUTEX_PRIVATE_FLAG) != 0 || variables_.hold(a[0]) ||
                      here.holds(reinterpret_cast<const void*>(a[0])));
  if (!waits) return real_.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const timespec longest{0, 1'000'000};
  const auto* const own = reinterpret_cast<const timespec*>(a[3]);
  const bool duration = op == FUTEX_WAIT;  // else own is a point in time
  if (own != nullptr && duration && own->tv_sec == 0 && own->tv_nsec <= longest.tv_nsec)
    return real_.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const long r = real_.syscall(number, a[0], FUTEX_WAIT | FUTEX_PRIVATE_FLAG, a[2], &longest, 0L, 0L);
  if (r == 0 || errno != ETIMEDOUT) return r;
  return own != nullptr && !duration && is_over(*own, (a[1] & FUTEX_CLOCK_REALTIME) != 0) ? r : 0;
}

template <class F>
redirection find(F*& real, const char* name, F* ours) noexcept {
  real = reinterpret_cast<F*>(c_library_function(name));
  return {real != nullptr ? name : "", reinterpret_cast<void*>(ours)};  // what it has not nobody calls
}

}  // namespace

void watch_waits() noexcept {
  static const redirection all[] = {find(real_.mutex_lock, "pthread_mutex_lock", mutex_lock),
                                    find(real_.mutex_trylock, "pthread_mutex_trylock", mutex_trylock),
                                    find(real_.mutex_timedlock, "pthread_mutex_timedlock", mutex_timedlock),
                                    find(real_.mutex_clocklock, "pthread_mutex_clocklock", mutex_clocklock),
                                    find(real_.cond_wait, "pthread_cond_wait", cond_wait),
                                    find(real_.cond_timedwait, "pthread_cond_timedwait", cond_timedwait),
                                    find(real_.cond_clockwait, "pthread_cond_clockwait", cond_clockwait),
                                    find(real_.rdlock, "pthread_rwlock_rdlock", rdlock),
                                    find(real_.wrlock, "pthread_rwlock_wrlock", wrlock),
                                    find(real_.tryrdlock, "pthread_rwlock_tryrdlock", tryrdlock),
                                    find(real_.trywrlock, "pthread_rwlock_trywrlock", trywrlock),
                                    find(real_.timedrdlock, "pthread_rwlock_timedrdlock", timedrdlock),
                                    find(real_.timedwrlock, "pthread_rwlock_timedwrlock", timedwrlock),
                                    find(real_.clockrdlock, "pthread_rwlock_clockrdlock", clockrdlock),
                                    find(real_.clockwrlock, "pthread_rwlock_clockwrlock", clockwrlock),
                                    find(real_.once, "pthread_once", once),
                                    find(real_.barrier_init, "pthread_barrier_init", barrier_init),
                                    find(real_.sem_init, "sem_init", semaphore_init),
                                    find(real_.syscall, "syscall", system_call)};
  static unsigned long long seen = ~0ull;
  const unsigned long long now = loads();
  if (now == seen) return;
  seen = now;
  find_variables();
  redirect(all);
}

}  // namespace godwit::heap

#else

void godwit::heap::watch_waits() noexcept {}

#endif
