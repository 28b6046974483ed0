// Futexes by system call, as libraries without pthreads use them: between processes, between threads, and
// from a handler.
#define _GNU_SOURCE
#include "check.h"
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static long futex(uint32_t* word, int op, uint32_t value, uintptr_t limit, uint32_t* other, uint32_t last) {
  return syscall(SYS_futex, word, op, value, limit, other, last);
}
static uint32_t get(uint32_t* word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
static void set(uint32_t* word, uint32_t value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }
/// Until it is not @p value any more.
static void wait_for(uint32_t* word, uint32_t value, int op, uint32_t mask) {
  while (get(word) == value)
    CHECK(futex(word, op, value, 0, NULL, mask) == 0 || errno == EAGAIN || errno == EINTR);
}
static void let_it_wait(void) { usleep(20000); }

// One process waits, the other changes the word; in turns. Without the flag of one process.
static void between_processes(void) {
  uint32_t* word = mmap(NULL, sizeof *word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(word != MAP_FAILED);
  const pid_t child = fork();
  for (uint32_t i = 0; i < 20; ++i) {
    if ((child == 0) == (i % 2 == 0)) {
      if (i < 4) let_it_wait();
      set(word, i + 1);
      futex(word, FUTEX_WAKE, 1, 0, NULL, 0);
    } else {
      wait_for(word, i, FUTEX_WAIT, 0);
    }
  }
  if (child == 0) _exit(3);
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
  // A time limit ends it, too.
  const struct timespec soon = {0, 5000000};
  CHECK(futex(word, FUTEX_WAIT, 20, (uintptr_t)&soon, NULL, 0) == -1 && errno == ETIMEDOUT);
  CHECK(futex(word, FUTEX_WAIT, 5, 0, NULL, 0) == -1 && errno == EAGAIN);
  puts("between processes");
}

static uint32_t first, second;
struct way {
  int op;
  uint32_t mask;
};
static void* waits(void* arg) {
  const struct way* w = arg;
  wait_for(&first, 0, w->op, w->mask);
  return arg;
}
static void* waits_for_both(void* arg) {
  waits(arg);
  wait_for(&second, 0, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0);
  return arg;
}
enum { many = 4 };
static pthread_t threads[many];
static void start(void* (*f)(void*), const struct way* w) {
  set(&first, 0);
  set(&second, 0);
  for (int i = 0; i < many; ++i) CHECK(pthread_create(&threads[i], NULL, f, (void*)w) == 0);
  let_it_wait();
}
static void join(void) {
  for (int i = 0; i < many; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void between_threads(void) {
  const struct way one_process = {FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0}, any = {FUTEX_WAIT, 0},
                   masked = {FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 6};
  start(waits, &any);
  set(&first, 1);
  CHECK(futex(&first, FUTEX_WAKE, 1, 0, NULL, 0) <= 1);
  futex(&first, FUTEX_WAKE, many, 0, NULL, 0);
  join();
  // They go on waiting for another word, or come back.
  start(waits_for_both, &one_process);
  CHECK(futex(&first, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 0, many, &second, 1) == -1 && errno == EAGAIN);
  set(&first, 1);
  CHECK(futex(&first, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 0, many, &second, 1) >= 0);
  let_it_wait();
  set(&second, 1);
  futex(&second, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, many, 0, NULL, 0);
  join();
  // The call changes the word.
  start(waits, &one_process);
  CHECK(futex(&second, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 1, many, &first,
              (uint32_t)FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)) >= 0);
  CHECK(get(&first) == 1);
  join();
  // By masks: one that fits, and any.
  start(waits, &masked);
  set(&first, 1);
  futex(&first, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, many, 0, NULL, 2);
  join();
  start(waits, &masked);
  set(&first, 1);
  futex(&first, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, many, 0, NULL, 0);
  join();
  CHECK(futex(&first, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 1, 0, NULL, 0) == -1 && errno == EINVAL);
  puts("between threads");
}

// Each thread waits for a bit of one word: a wake-up for one must not go to another.
static uint32_t bits;
static void* waits_for_bit(void* bit) {
  const uint32_t mine = (uint32_t)(uintptr_t)bit;
  for (uint32_t now; ((now = get(&bits)) & mine) == 0;)
    CHECK(futex(&bits, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, now, 0, NULL, mine) == 0 || errno == EAGAIN);
  return bit;
}
static void by_mask(void) {
  for (uint32_t i = 0; i < many; ++i)
    CHECK(pthread_create(&threads[i], NULL, waits_for_bit, (void*)(uintptr_t)(1u << i)) == 0);
  for (uint32_t i = many; i-- > 0;) {
    let_it_wait();
    __atomic_fetch_or(&bits, 1u << i, __ATOMIC_SEQ_CST);
    CHECK(futex(&bits, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, 1, 0, NULL, 1u << i) <= 1);
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
  puts("by masks");
}

// A handler wakes a thread, while main computes.
static volatile sig_atomic_t woken;
static void wakes(int signal) {
  (void)signal;
  set(&first, 1);
  futex(&first, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, NULL, 0);
}
static void* is_woken(void* arg) {
  wait_for(&first, 0, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0);
  woken = 1;
  return arg;
}
static void by_handler(void) {
  pthread_t t;
  set(&first, 0);
  CHECK(pthread_create(&t, NULL, is_woken, NULL) == 0);
  let_it_wait();
  CHECK(signal(SIGALRM, wakes) != SIG_ERR);
  const struct itimerval soon = {{0, 0}, {0, 1000}};
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
  while (!woken) {
  }
  CHECK(pthread_join(t, NULL) == 0);
  puts("by a handler");
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  between_processes();
  between_threads();
  by_mask();
  by_handler();
  return 0;
}
