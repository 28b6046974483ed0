// Threads: create, end, join, detach. See thread.hpp.
#include "thread.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>
#include <utility>

#include <godwit/detail/promise.hpp>

#include "seams/park.hpp"

#include "runtime/substrate.hpp"

#include "mutex.hpp"
#include "real.hpp"
#include "report.hpp"
#include "signals.hpp"
#include "tls.hpp"
#include "wait.hpp"

GODWIT_REAL(pthread_create);
GODWIT_REAL(pthread_join);
GODWIT_REAL(pthread_tryjoin_np);
GODWIT_REAL(pthread_clockjoin_np);
GODWIT_REAL(pthread_timedjoin_np);
GODWIT_REAL(pthread_detach);
extern "C" [[noreturn]] void __wrap_pthread_exit(void*);
extern "C" int __sigsetjmp(struct __jmp_buf_tag*, int) noexcept __attribute__((returns_twice));
extern "C" void __pthread_register_cancel(__pthread_unwind_buf_t*);
extern "C" void __pthread_unregister_cancel(__pthread_unwind_buf_t*);

namespace godwit::pthread {

__thread thread* self_ = nullptr;
bool running_ = false;
bool forked_ = false;

namespace {

std::atomic<std::uint32_t> pool_lock_{0};
thread* pool_ = nullptr;
std::atomic<std::uint32_t> alive_{0};  // threads besides main, in a forked child besides its first one
std::uint32_t others_ended_ = 0;       // atomic; that one waits for it in pthread_exit
std::atomic<bool> main_waits_{false};
// Beyond the numbers that kernels give, so that no lock of the C library takes one of our threads for an OS
// thread.
std::atomic<int> next_tid_{1 << 24};

void lock_pool() noexcept {
  while (pool_lock_.exchange(1, std::memory_order_acquire) != 0) __builtin_ia32_pause();
}
void unlock_pool() noexcept { pool_lock_.store(0, std::memory_order_release); }

__thread bool counted_ = false;  // an OS thread: in alive_

thread*& word_in(const char* block) noexcept {
  const std::ptrdiff_t at = reinterpret_cast<char*>(&self_) - reinterpret_cast<char*>(pthread_self());
  return *reinterpret_cast<thread**>(const_cast<char*>(block) + at);
}

/// For a new thread: unused, with everything as it is at the begin but what pthread_create says.
thread* take_thread() noexcept {
  lock_pool();
  thread* t = pool_;
  if (t != nullptr) pool_ = t->next;
  unlock_pool();
  char* block = nullptr;
  if (t == nullptr) {
    block = tls::make();
    if (block == nullptr) return nullptr;
    t = new (std::nothrow) thread;
    if (t == nullptr) return nullptr;  // so short of memory that a lost block makes no difference
  } else {
    block = t->block;
    tls::clean(block);
    struct __res_state resolver = t->resolver;
    t->~thread();
    new (t) thread;
    t->resolver = resolver;  // the C library's, like its variables in the block
  }
  t->block = block;
  t->tid = next_tid_.fetch_add(1, std::memory_order_relaxed);
  if (t->tid > (1 << 29)) next_tid_.store(1 << 24, std::memory_order_relaxed);
  tls::set_tid(block, t->tid);
  word_in(block) = t;
  return t;
}

/// Nobody will ask for it any more.
void give_thread(thread* t) noexcept {
  forget_signals(*t);  // who sent one while it ended: its next user is not to get that
  t->what_then.store(thread::fate::gone, std::memory_order_seq_cst);
  lock_pool();
  t->next = pool_;
  pool_ = t;
  unlock_pool();
}

/// The thread's function, and all that ends with it. With the thread's own thread-local storage.
[[gnu::noinline]] void call_start(thread* begins) {
  tls::begin_thread(&begins->resolver);
  // Where pthread_exit and cancellation unwind to.
  __pthread_unwind_buf_t end;
  if (__sigsetjmp(reinterpret_cast<struct __jmp_buf_tag*>(reinterpret_cast<void*>(end.__cancel_jmp_buf)),
                  0) == 0) {
    __pthread_register_cancel(&end);
    begins->result =
        begins->start_c11 != nullptr
            ? reinterpret_cast<void*>(static_cast<std::intptr_t>(begins->start_c11(begins->argument)))
            : begins->start(begins->argument);
    __pthread_unregister_cancel(&end);
  }
  thread* t = self();
  t->ending = true;
  tls::run_destructors();
  run_key_destructors();
  die_with_robust_mutexes();
  if (t->heavy) wait_for_others_and_exit();  // in a forked child, whose first thread it was
}

[[gnu::noinline]] void leave_block() noexcept { detail::set_thread_pointer(0); }
[[gnu::noinline]] void enter_block(thread& t) noexcept {
  detail::set_thread_pointer(reinterpret_cast<std::uintptr_t>(t.block));
}

void find_stack(thread& t, std::size_t bytes) noexcept {
  t.stack_high = reinterpret_cast<char*>(detail::this_block());
  t.stack_low = t.stack_high + 256 - bytes + 4096;
}

/// A thread is no more, or was none.
void count_end() noexcept {
  if (alive_.fetch_sub(1, std::memory_order_seq_cst) != 1 || !main_waits_.load(std::memory_order_seq_cst))
    return;
  __atomic_store_n(&others_ended_, 1, __ATOMIC_SEQ_CST);
  wake(&others_ended_, 1);
}

void thread_entry(void* closure, std::size_t, detail::ref) {
  thread* t;
  std::memcpy(&t, closure, sizeof t);
  find_stack(*t, thread_stack_bytes());
  enter_block(*t);
  if (t->program_stack == nullptr)
    call_start(t);
  else
    godwit_pthread_call_on(
        t->program_stack + t->program_stack_bytes, [](void* p) { call_start(static_cast<thread*>(p)); }, t);
  leave_block();
  if (t->program_stack_is_ours) ::munmap(t->program_stack, t->program_stack_bytes);
  count_mask(*t, false);
  count_end();  // before anybody can see that it has ended: who saw all end has room for as many
  // From here on whoever joins may take the block for another thread.
  const auto then = t->what_then.exchange(thread::fate::over, std::memory_order_seq_cst);
  if (then == thread::fate::detached) {
    __atomic_store_n(&t->state, thread::ended, __ATOMIC_SEQ_CST);
    give_thread(t);
  } else {
    __atomic_store_n(&t->state, thread::ended, __ATOMIC_SEQ_CST);
    if (then == thread::fate::joining) wake(&t->state, 1);
  }
}

/// What an attribute says that nobody has given a size.
std::size_t default_stack_bytes() noexcept {
  static const std::size_t bytes = [] {
    pthread_attr_t a;
    std::size_t n = 0;
    if (pthread_attr_init(&a) == 0) {
      pthread_attr_getstacksize(&a, &n);
      pthread_attr_destroy(&a);
    }
    return n;
  }();
  return bytes;
}

/// With a guard of a page at its low end. Given back when the thread ends.
bool make_large_stack(thread& t, std::size_t bytes) noexcept {
  constexpr std::size_t page = 4096;
  bytes = (bytes + page - 1) / page * page + page;
  void* low =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (low == MAP_FAILED) return false;
  ::mprotect(low, page, PROT_NONE);
  t.program_stack = static_cast<char*>(low);
  t.program_stack_bytes = bytes;
  t.program_stack_is_ours = true;
  return true;
}

int create(pthread_t* out, const pthread_attr_t* attr, void* (*start)(void*), int (*start_c11)(void*),
           void* argument) noexcept {
  static const std::uint64_t most = runtime::most_threads() - 1;  // one is ours: start.cpp
  if (alive_.fetch_add(1, std::memory_order_seq_cst) >= most) {
    count_end();
    return EAGAIN;
  }
  thread* t = take_thread();
  if (t == nullptr) {
    count_end();
    return EAGAIN;
  }
  t->start = start;
  t->start_c11 = start_c11;
  t->argument = argument;
  t->blocked.store(self()->blocked.load(std::memory_order_relaxed), std::memory_order_relaxed);
  std::memcpy(t->name, self()->name, sizeof t->name);
  if (attr != nullptr) {
    int detached = 0;
    std::size_t bytes = 0;
    void* at = nullptr;
    pthread_attr_getdetachstate(attr, &detached);
    if (detached == PTHREAD_CREATE_DETACHED)
      t->what_then.store(thread::fate::detached, std::memory_order_relaxed);
    int inherits = 0, policy = SCHED_OTHER;
    sched_param param{};
    pthread_attr_getinheritsched(attr, &inherits);
    pthread_attr_getschedpolicy(attr, &policy);
    pthread_attr_getschedparam(attr, &param);
    if (const int error =
            inherits == PTHREAD_EXPLICIT_SCHED ? check_scheduling(policy, param.sched_priority) : 0;
        error != 0) {
      give_thread(t);
      count_end();
      return error;
    }
    pthread_attr_getstack(attr, &at, &bytes);
    // its end is what the C library keeps; null: none was given
    if (reinterpret_cast<std::uintptr_t>(at) + bytes != 0) {
      t->program_stack = static_cast<char*>(at);
      t->program_stack_bytes = bytes;
    }
    pthread_attr_getstacksize(attr, &bytes);
    if (t->program_stack == nullptr && bytes > thread_stack_bytes() && bytes != default_stack_bytes() &&
        !make_large_stack(*t, bytes)) {
      give_thread(t);
      count_end();
      return EAGAIN;
    }
  }
  count_mask(*t, true);
  *out = reinterpret_cast<pthread_t>(t->block);
  detail::create_detached(thread_entry, &t, sizeof t);
  return 0;
}

struct os_thread_start {
  void* (*function)(void*);
  void* argument;
};
void* start_os_thread(void* p) {
  const os_thread_start s = *static_cast<os_thread_start*>(p);
  delete static_cast<os_thread_start*>(p);
  counted_ = true;
  watch_os_thread();
  return s.function(s.argument);
}
/// For an OS thread, as in a forked child: another one.
int create_os_thread(pthread_t* out, const pthread_attr_t* attr, void* (*start)(void*),
                     void* argument) noexcept {
  auto* s = new (std::nothrow) os_thread_start{start, argument};
  if (s == nullptr) return EAGAIN;
  alive_.fetch_add(1, std::memory_order_seq_cst);
  const int error = REAL(pthread_create)(out, attr, start_os_thread, s);
  if (error == 0) return 0;
  delete s;
  count_end();
  return error;
}

/// Ends with the thread's object given back, or with an error.
int join(thread* t, void** result, const wait_options& how, bool wait) {
  if (t == self()) return EDEADLK;
  if (how.cancellable) test_cancel();
  auto before = thread::fate::joinable;
  if (t->what_then.load(std::memory_order_seq_cst) == thread::fate::gone) return ESRCH;
  if (!wait && __atomic_load_n(&t->state, __ATOMIC_SEQ_CST) != thread::ended &&
      t->what_then.load(std::memory_order_seq_cst) != thread::fate::over)
    return t->what_then.load(std::memory_order_seq_cst) == thread::fate::detached ? EINVAL : EBUSY;
  if (!t->what_then.compare_exchange_strong(before, thread::fate::joining, std::memory_order_seq_cst)) {
    if (before != thread::fate::over) return before == thread::fate::gone ? ESRCH : EINVAL;
    // It found nobody to wake, and is about to say that it has ended: a few instructions away, at another
    // worker.
    for (unsigned spins = 0; __atomic_load_n(&t->state, __ATOMIC_SEQ_CST) != thread::ended;)
      if (++spins % 64 == 0)
        ::sched_yield();
      else
        __builtin_ia32_pause();
  }
  while (__atomic_load_n(&t->state, __ATOMIC_SEQ_CST) != thread::ended) {
    const waited w = wait_while(&t->state, thread::alive, how);
    if (w != waited::timed_out && w != waited::cancelled) continue;
    before = thread::fate::joining;
    if (!t->what_then.compare_exchange_strong(before, thread::fate::joinable, std::memory_order_seq_cst))
      continue;  // it has just ended
    if (w == waited::timed_out) return ETIMEDOUT;
    end_by_cancel();
  }
  if (result != nullptr) *result = t->result;
  give_thread(t);
  return 0;
}

}  // namespace

std::size_t thread_stack_bytes() noexcept {
  static std::atomic<std::size_t> bytes{0};
  if (bytes.load(std::memory_order_relaxed) == 0) {
    rlimit limit{};
    constexpr std::size_t usual = 8 << 20, least = 1 << 20;
    std::size_t n = usual;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) n = limit.rlim_cur;
    // With few addresses (ulimit -v) rather smaller stacks than a handful of threads.
    constexpr std::size_t of_limit = 512;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      n = std::min(n, std::bit_floor(limit.rlim_cur / of_limit));
    if (const char* text = std::getenv("GODWIT_THREAD_STACK_BYTES"); text != nullptr) {
      char* end = nullptr;
      const unsigned long long value = std::strtoull(text, &end, 10);
      const unsigned shift = *end == 'K' || *end == 'k'   ? 10
                             : *end == 'M' || *end == 'm' ? 20
                             : *end == 'G' || *end == 'g' ? 30
                                                          : 0;
      if (end != text) n = value << shift;
    }
    std::size_t rounded = 1 << 16;
    while (rounded < n) rounded *= 2;
    bytes.store(rounded < least ? least : rounded, std::memory_order_relaxed);
  }
  return bytes.load(std::memory_order_relaxed);
}

thread* thread_of(pthread_t t) noexcept {
  return t != 0 ? word_in(reinterpret_cast<const char*>(t)) : nullptr;
}

int own_tid() noexcept { return tls::tid_of(reinterpret_cast<const char*>(pthread_self())); }

void describe_main(thread& t, char* block) noexcept {
  t.block = block;
  t.tid = tls::tid_of(block);
  t.is_main = true;
  word_in(block) = &t;
}

void run_as(thread& t) noexcept {
  find_stack(t, thread_stack_bytes());
  enter_block(t);
}

void end_os_thread() noexcept {
  die_with_robust_mutexes();
  if (std::exchange(counted_, false)) count_end();
}

void forget_other_threads() noexcept {
  unlock_pool();
  alive_.store(0, std::memory_order_seq_cst);
  others_ended_ = 0;
  main_waits_.store(false, std::memory_order_seq_cst);
  counted_ = false;
}

void wait_for_others_and_exit() noexcept {
  main_waits_.store(true, std::memory_order_seq_cst);
  if (alive_.load(std::memory_order_seq_cst) != 0)
    while (__atomic_load_n(&others_ended_, __ATOMIC_SEQ_CST) == 0)
      wait_while(&others_ended_, 0, {.what = "pthread_exit in main"});
  ::exit(0);
}

}  // namespace godwit::pthread

using namespace godwit::pthread;

GODWIT_EXPORT int pthread_create(pthread_t* out, const pthread_attr_t* attr, void* (*start)(void*),
                                 void* argument) noexcept {
  if (!is_light()) return create_os_thread(out, attr, start, argument);
  return create(out, attr, start, nullptr, argument);
}
GODWIT_EXPORT int pthread_join(pthread_t th, void** result) {
  thread* t = thread_of(th);
  return t == nullptr || t->heavy ? REAL(pthread_join)(th, result)
                                  : join(t, result, {.cancellable = true, .what = "pthread_join"}, true);
}
GODWIT_EXPORT int pthread_tryjoin_np(pthread_t th, void** result) noexcept {
  thread* t = thread_of(th);
  return t == nullptr || t->heavy ? REAL(pthread_tryjoin_np)(th, result) : join(t, result, {}, false);
}
GODWIT_EXPORT int pthread_clockjoin_np(pthread_t th, void** result, clockid_t clock, const timespec* at) {
  thread* t = thread_of(th);
  if (t == nullptr || t->heavy) return REAL(pthread_clockjoin_np)(th, result, clock, at);
  if (at == nullptr) return join(t, result, {.cancellable = true, .what = "pthread_join"}, true);
  const when w = deadline_of(clock, at);
  if (!w.valid) return EINVAL;
  return join(t, result, {.deadline_ns = w.deadline_ns, .cancellable = true, .what = "pthread_join"}, true);
}
GODWIT_EXPORT int pthread_timedjoin_np(pthread_t th, void** result, const timespec* at) {
  return pthread_clockjoin_np(th, result, CLOCK_REALTIME, at);
}
GODWIT_EXPORT int pthread_detach(pthread_t th) noexcept {
  thread* t = thread_of(th);
  if (t == nullptr || t->heavy) return REAL(pthread_detach)(th);
  auto before = thread::fate::joinable;
  if (t->what_then.compare_exchange_strong(before, thread::fate::detached, std::memory_order_seq_cst))
    return 0;
  if (before != thread::fate::over) return before == thread::fate::gone ? ESRCH : EINVAL;
  // a few instructions
  while (__atomic_load_n(&t->state, __ATOMIC_SEQ_CST) != thread::ended) ::sched_yield();
  give_thread(t);
  return 0;
}
namespace godwit::pthread {
void exit_thread(void* result) {
  leave_handler_beside(result);
  if (thread* t = self(); t != nullptr) {
    t->handlers = nullptr;
    t->result = result;
    t->ending = true;
  }
  REAL(pthread_exit)(result);
}
}  // namespace godwit::pthread
GODWIT_EXPORT void pthread_exit(void* value) { exit_thread(value); }

// C11, on the same threads.
GODWIT_EXPORT int thrd_create(thrd_t* out, thrd_start_t start, void* argument) {
  const int error =
      is_light()
          ? create(out, nullptr, nullptr, start, argument)
          : create_os_thread(out, nullptr, reinterpret_cast<void* (*)(void*)>(reinterpret_cast<void*>(start)),
                             argument);
  return error == 0 ? thrd_success : error == EAGAIN || error == ENOMEM ? thrd_nomem : thrd_error;
}
GODWIT_EXPORT int thrd_join(thrd_t th, int* result) {
  void* value = nullptr;
  if (pthread_join(th, &value) != 0) return thrd_error;
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
  return thrd_success;
}
GODWIT_EXPORT int thrd_detach(thrd_t th) { return pthread_detach(th) == 0 ? thrd_success : thrd_error; }
GODWIT_EXPORT void thrd_exit(int result) {
  pthread_exit(reinterpret_cast<void*>(static_cast<std::intptr_t>(result)));
}
