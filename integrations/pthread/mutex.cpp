// Mutexes. The words are the C library's own: __lock is 0, 1 (held) or 2 (held, and somebody may wait), so
// static initialisers and what attributes say to pthread_mutex_init mean what they always mean.
// docs/pthread.md lists the kinds that are not supported.
//
// Robust ones: each thread has a list of those that it holds, linked through the word where the C library has
// such a list. When it ends, the owner of each becomes `died`, and the mutex is open: who takes it next is
// told. Shared between processes, a holder may be gone without a word: who waits looks now and then whether
// its process lives. Test: tests/pthread/programs/robust.c
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

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

// Of a robust mutex, in __owner: as the C library has it. And in __spins: taken from one who died, and not
// made consistent yet.
constexpr int died = 0x7fffffff, not_recoverable = 0x7ffffffe;
__thread pthread_mutex_t* robust_held_ __attribute__((tls_model("initial-exec"))) = nullptr;

bool is_shared(const pthread_mutex_t* m) noexcept { return (m->__data.__kind & shared) != 0; }
bool is_robust(const pthread_mutex_t* m) noexcept { return (m->__data.__kind & robust) != 0; }
pthread_mutex_t* next_held(const pthread_mutex_t* m) noexcept {
  return reinterpret_cast<pthread_mutex_t*>(m->__data.__list.__next);
}
void set_next_held(pthread_mutex_t* m, pthread_mutex_t* next) noexcept {
  m->__data.__list.__next = reinterpret_cast<decltype(m->__data.__list.__next)>(next);
}

int kind_of(const pthread_mutex_t* m) noexcept { return m->__data.__kind & kind_mask; }

// Who holds it: __owner, and __nusers behind it, as one word that changes at once. The upper half is the
// process, where others may use the mutex: their threads have the same numbers. Robust ones always have it.
static_assert(offsetof(pthread_mutex_t, __data.__owner) % 8 == 0 &&
              offsetof(pthread_mutex_t, __data.__nusers) == offsetof(pthread_mutex_t, __data.__owner) + 4);
using two_words [[gnu::may_alias]] = std::uint64_t;
two_words* holder_word(pthread_mutex_t* m) noexcept {
  return reinterpret_cast<two_words*>(&m->__data.__owner);
}
constexpr std::uint64_t holder(int tid, pid_t pid) noexcept {
  return static_cast<std::uint32_t>(tid) | std::uint64_t{static_cast<std::uint32_t>(pid)} << 32;
}
/// What the caller writes there.
std::uint64_t own_name(const pthread_mutex_t* m) noexcept {
  return holder(own_tid(), (m->__data.__kind & (shared | robust)) != 0 ? ::getpid() : 0);
}
std::uint64_t holder_of(pthread_mutex_t* m) noexcept {
  return __atomic_load_n(holder_word(m), __ATOMIC_RELAXED);
}
void set_holder(pthread_mutex_t* m, std::uint64_t name) noexcept {
  __atomic_store_n(holder_word(m), name, __ATOMIC_RELEASE);
}

/// The process of the holder of a robust mutex, which has it in __nusers: is it gone, or only waits to be
/// waited for?
bool holder_is_gone(const pthread_mutex_t* m) noexcept {
  const auto pid = static_cast<pid_t>(__atomic_load_n(&m->__data.__nusers, __ATOMIC_SEQ_CST));
  if (pid <= 0 || pid == ::getpid()) return false;
  if (::kill(pid, 0) != 0) return errno == ESRCH;
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  text[n > 0 ? n : 0] = '\0';
  const char* end = std::strrchr(text, ')');  // of its name
  return end != nullptr && (end[2] == 'Z' || end[2] == 'X');
}

/// Let go of it, and wake up to @p most of those who wait. The next one may destroy it at once: what is to be
/// known of it is read before, and afterwards only its address counts.
void let_go(pthread_mutex_t* m, unsigned most) noexcept {
  const bool shared = is_shared(m);
  auto* word = &m->__data.__lock;
  if (__atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST) != 2) return;
  if (shared)  // ours look at it in turns; programs without this library sleep in the kernel
    ::syscall(SYS_futex, word, FUTEX_WAKE, most == 1 ? 1 : INT_MAX, nullptr, nullptr, 0);
  else
    wake(word, most);
}

/// The caller holds it now. 0, or what it has to be told.
int begin_robust(pthread_mutex_t* m) noexcept {
  auto& d = m->__data;
  const int before = d.__owner;
  if (before == not_recoverable) {
    let_go(m, all_of_them);
    return ENOTRECOVERABLE;
  }
  set_holder(m, own_name(m));
  d.__spins = before == died || d.__spins != 0 ? 1 : 0;
  d.__count = kind_of(m) == PTHREAD_MUTEX_RECURSIVE ? 1 : 0;
  set_next_held(m, robust_held_);
  robust_held_ = m;
  return d.__spins != 0 ? EOWNERDEAD : 0;
}

void end_robust(pthread_mutex_t* m) noexcept {
  pthread_mutex_t* before = nullptr;
  for (pthread_mutex_t* h = robust_held_; h != m && h != nullptr; h = next_held(h)) before = h;
  if (before == nullptr)
    robust_held_ = next_held(m);
  else
    set_next_held(before, next_held(m));
  set_holder(m, holder(m->__data.__spins != 0 ? not_recoverable : 0, 0));
  m->__data.__spins = 0;
}

/// Contended, and shared between processes: in turns, with a look at the holder.
int wait_for_robust(pthread_mutex_t* m, std::uint32_t* word, std::uint64_t deadline_ns) noexcept {
  const std::uint64_t now = now_ns(), a_while = now + 20'000'000;
  const std::uint64_t until = deadline_ns != no_deadline && deadline_ns < a_while ? deadline_ns : a_while;
  if (wait_while(word, 2, {.deadline_ns = until, .what = "mutex", .shared = true}) != waited::timed_out)
    return 0;
  if (deadline_ns != no_deadline && now_ns() >= deadline_ns) return ETIMEDOUT;
  const std::uint32_t owner = static_cast<std::uint32_t>(m->__data.__owner), pid = m->__data.__nusers;
  std::uint32_t expected = pid;
  // One of those that find it takes it away from the dead.
  if (owner != 0 && pid != 0 && holder_is_gone(m) &&
      __atomic_compare_exchange_n(&m->__data.__nusers, &expected, 0, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST)) {
    __atomic_store_n(&m->__data.__owner, died, __ATOMIC_SEQ_CST);
    __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
  }
  return 0;
}

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
    if (is_robust(m) && is_shared(m)) {
      if (const int error = wait_for_robust(m, word, deadline_ns); error != 0) return error;
    } else if (wait_while(word, 2, {.deadline_ns = deadline_ns, .what = "mutex", .shared = is_shared(m)}) ==
               waited::timed_out) {
      // The word may stay 2: then one unlock looks for waiters in vain.
      return ETIMEDOUT;
    }
  return 0;
}

[[gnu::noinline]] void say_unsupported() noexcept {
  static bool said = false;
  not_supported(said, "a priority protocol of a mutex", "threads have no priorities");
}

}  // namespace

int lock_mutex(pthread_mutex_t* m, std::uint64_t deadline_ns) noexcept {
  auto& d = m->__data;
  const int kind = kind_of(m);
  const std::uint64_t me = kind != PTHREAD_MUTEX_NORMAL ? own_name(m) : 0;
  if (kind == PTHREAD_MUTEX_RECURSIVE || kind == PTHREAD_MUTEX_ERRORCHECK) {
    if (holder_of(m) == me) {
      if (kind == PTHREAD_MUTEX_ERRORCHECK) return EDEADLK;
      if (d.__count + 1 == 0) return EAGAIN;
      ++d.__count;
      return 0;
    }
  }
  int expected = 0;
  if (!__atomic_compare_exchange_n(&d.__lock, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    if (const int error = lock_slow(m, deadline_ns); error != 0) return error;
  if (is_robust(m)) return begin_robust(m);
  if (me != 0) set_holder(m, me);
  if (kind == PTHREAD_MUTEX_RECURSIVE) d.__count = 1;
  return 0;
}

int unlock_mutex(pthread_mutex_t* m) noexcept {
  auto& d = m->__data;
  const int kind = kind_of(m);
  if (is_robust(m)) {
    if (holder_of(m) != own_name(m)) return EPERM;
    if (kind == PTHREAD_MUTEX_RECURSIVE && --d.__count != 0) return 0;
    end_robust(m);
    const bool closed = d.__owner == not_recoverable;
    let_go(m, closed ? all_of_them : 1);
    return 0;
  }
  if (kind == PTHREAD_MUTEX_RECURSIVE || kind == PTHREAD_MUTEX_ERRORCHECK) {
    if (holder_of(m) != own_name(m)) return EPERM;
    if (kind == PTHREAD_MUTEX_RECURSIVE && --d.__count != 0) return 0;
  }
  if (kind != PTHREAD_MUTEX_NORMAL) set_holder(m, 0);
  let_go(m, 1);
  return 0;
}

void die_with_robust_mutexes() noexcept {
  while (pthread_mutex_t* m = robust_held_) {
    robust_held_ = next_held(m);
    m->__data.__spins = 0;
    set_holder(m, holder(died, 0));
    let_go(m, 1);
  }
}

void forget_robust_mutexes() noexcept { robust_held_ = nullptr; }

}  // namespace godwit::pthread

using namespace godwit::pthread;

GODWIT_EXPORT int pthread_mutex_consistent(pthread_mutex_t* m) noexcept {
  if (!is_robust(m) || holder_of(m) != own_name(m) || m->__data.__spins == 0) return EINVAL;
  m->__data.__spins = 0;
  return 0;
}
GODWIT_EXPORT int pthread_mutex_init(pthread_mutex_t* m, const pthread_mutexattr_t* attr) noexcept {
  const int error = REAL(pthread_mutex_init)(m, attr);
  if (error == 0 && (m->__data.__kind & (inherit | protect)) != 0) say_unsupported();
  return error;
}
GODWIT_EXPORT int pthread_mutex_destroy(pthread_mutex_t* m) noexcept {
  return __atomic_load_n(&m->__data.__lock, __ATOMIC_RELAXED) != 0 ? EBUSY : 0;
}
GODWIT_EXPORT int pthread_mutex_lock(pthread_mutex_t* m) noexcept { return lock_mutex(m, no_deadline); }
GODWIT_EXPORT int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
  auto& d = m->__data;
  const int kind = kind_of(m);
  const std::uint64_t me = kind != PTHREAD_MUTEX_NORMAL ? own_name(m) : 0;
  if (kind == PTHREAD_MUTEX_RECURSIVE && holder_of(m) == me) {
    if (d.__count + 1 == 0) return EAGAIN;
    ++d.__count;
    return 0;
  }
  int expected = 0;
  if (!__atomic_compare_exchange_n(&d.__lock, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return EBUSY;
  if (is_robust(m)) return begin_robust(m);
  if (me != 0) set_holder(m, me);
  if (kind == PTHREAD_MUTEX_RECURSIVE) d.__count = 1;
  return 0;
}
GODWIT_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t clock, const timespec* at) noexcept {
  if (const int error = pthread_mutex_trylock(m); error != EBUSY) return error;
  const when w = deadline_of(clock, at);
  return w.valid ? lock_mutex(m, w.deadline_ns) : EINVAL;
}
GODWIT_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* m, const timespec* at) noexcept {
  return pthread_mutex_clocklock(m, CLOCK_REALTIME, at);
}
GODWIT_EXPORT int pthread_mutex_unlock(pthread_mutex_t* m) noexcept { return unlock_mutex(m); }
extern "C" {
[[gnu::visibility("default"), gnu::alias("pthread_mutex_lock")]] int __pthread_mutex_lock(
    pthread_mutex_t*) noexcept;
[[gnu::visibility("default"), gnu::alias("pthread_mutex_trylock")]] int __pthread_mutex_trylock(
    pthread_mutex_t*) noexcept;
[[gnu::visibility("default"), gnu::alias("pthread_mutex_unlock")]] int __pthread_mutex_unlock(
    pthread_mutex_t*) noexcept;
}

namespace {
int c11(int error) noexcept {
  return error == 0           ? thrd_success
         : error == ETIMEDOUT ? thrd_timedout
         : error == EBUSY     ? thrd_busy
                              : thrd_error;
}
pthread_mutex_t* of(mtx_t* m) noexcept { return reinterpret_cast<pthread_mutex_t*>(m); }
}  // namespace

GODWIT_EXPORT int mtx_init(mtx_t* m, int type) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr,
                            (type & mtx_recursive) != 0 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
  return c11(pthread_mutex_init(of(m), &attr));
}
GODWIT_EXPORT void mtx_destroy(mtx_t*) {}
GODWIT_EXPORT int mtx_lock(mtx_t* m) { return c11(pthread_mutex_lock(of(m))); }
GODWIT_EXPORT int mtx_trylock(mtx_t* m) { return c11(pthread_mutex_trylock(of(m))); }
GODWIT_EXPORT int mtx_timedlock(mtx_t* m, const timespec* at) {
  return c11(pthread_mutex_timedlock(of(m), at));
}
GODWIT_EXPORT int mtx_unlock(mtx_t* m) { return c11(pthread_mutex_unlock(of(m))); }
