// Mutexes of all kinds, conditions, read-write locks, barriers, spin locks, once, semaphores; their errors
// and time limits.
#define _GNU_SOURCE
#include "check.h"
#include <semaphore.h>
#include <unistd.h>

enum { threads = 16, rounds = 3000 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t rec = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                       err = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t sem, items, room;
static long n, turn, onces, serial;

static void run(void* (*f)(void*), int count) {
  pthread_t t[64];
  for (long i = 0; i < count; i++) CHECK(pthread_create(&t[i], NULL, f, (void*)i) == 0);
  for (int i = 0; i < count; i++) CHECK(pthread_join(t[i], NULL) == 0);
}
static void* add(void* a) {
  for (int i = 0; i < rounds; i++) {
    pthread_mutex_lock(&m);
    long seen = n;
    if (i % 64 == 0) sched_yield();
    n = seen + 1;
    pthread_mutex_unlock(&m);
  }
  return a;
}
static void* add_recursive(void* a) {
  for (int i = 0; i < rounds / 4; i++) {
    pthread_mutex_lock(&rec);
    pthread_mutex_lock(&rec);
    CHECK(pthread_mutex_trylock(&rec) == 0);
    long seen = n;
    if (i % 64 == 0) sched_yield();
    n = seen + 1;
    for (int k = 0; k < 3; k++) pthread_mutex_unlock(&rec);
  }
  CHECK(pthread_mutex_unlock(&rec) == EPERM);
  return a;
}
static void* take_turns(void* a) {
  long me = (long)a;
  for (int i = 0; i < 200; i++) {
    pthread_mutex_lock(&m);
    while (turn % threads != me) pthread_cond_wait(&c, &m);
    turn++;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
  }
  return a;
}
static void* read_and_write(void* a) {
  static long x, y;
  for (int i = 0; i < 500; i++) {
    if ((i + (long)a) % 8 == 0) {
      CHECK(pthread_rwlock_wrlock(&rw) == 0);
      x++;
      sched_yield();
      y++;
      n++;
    } else {
      CHECK(pthread_rwlock_rdlock(&rw) == 0);
      CHECK(x == y);
    }
    CHECK(pthread_rwlock_unlock(&rw) == 0);
  }
  return a;
}
static void* meet(void* a) {
  static long phase[threads];
  for (long i = 0; i < 300; i++) {
    phase[(long)a] = i;
    int r = pthread_barrier_wait(&barrier);
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    if (r != 0) __atomic_add_fetch(&serial, 1, __ATOMIC_SEQ_CST);
    for (int k = 0; k < threads; k++) CHECK(__atomic_load_n(&phase[k], __ATOMIC_SEQ_CST) >= i);
    pthread_barrier_wait(&barrier);
  }
  return a;
}
static void* add_spinning(void* a) {
  for (int i = 0; i < rounds / 3; i++) {
    pthread_spin_lock(&spin);
    n++;
    pthread_spin_unlock(&spin);
  }
  return a;
}
static void first(void) {
  usleep(1000);
  onces++;
}
static void* do_once(void* a) {
  pthread_once(&once, first);
  CHECK(onces == 1);
  return a;
}
static void* produce_and_consume(void* a) {
  for (int i = 0; i < 500; i++)
    if ((long)a % 2 == 0) {
      CHECK(sem_wait(&room) == 0);
      __atomic_add_fetch(&n, 1, __ATOMIC_SEQ_CST);
      CHECK(sem_post(&items) == 0);
    } else {
      CHECK(sem_wait(&items) == 0);
      __atomic_sub_fetch(&n, 1, __ATOMIC_SEQ_CST);
      CHECK(sem_post(&room) == 0);
    }
  return a;
}
static void* hold(void* a) {
  (void)a;
  pthread_mutex_lock(&m);
  pthread_mutex_lock(&err);
  pthread_rwlock_wrlock(&rw);
  sem_post(&sem);
  pthread_barrier_wait(&barrier);
  pthread_rwlock_unlock(&rw);
  pthread_mutex_unlock(&err);
  pthread_mutex_unlock(&m);
  return NULL;
}
static void* signal_later(void* a) {
  usleep(3000);
  pthread_mutex_lock(&m);
  turn = 1;
  pthread_cond_signal((pthread_cond_t*)a);
  pthread_mutex_unlock(&m);
  return NULL;
}

int main(void) {
  run(add, threads);
  printf("mutex %ld\n", n);
  n = 0;
  run(add_recursive, threads);
  printf("recursive %ld\n", n);
  CHECK(pthread_mutex_lock(&err) == 0 && pthread_mutex_lock(&err) == EDEADLK &&
        pthread_mutex_trylock(&err) == EBUSY);
  CHECK(pthread_mutex_unlock(&err) == 0 && pthread_mutex_unlock(&err) == EPERM);
  run(take_turns, threads);
  printf("turns %ld\n", turn);
  n = 0;
  run(read_and_write, threads);
  printf("written %ld\n", n);
  pthread_rwlockattr_t rwattr;
  pthread_rwlockattr_init(&rwattr);
  pthread_rwlockattr_setkind_np(&rwattr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  CHECK(pthread_rwlock_init(&rw, &rwattr) == 0);
  run(read_and_write, threads);
  CHECK(pthread_barrier_init(&barrier, NULL, threads) == 0);
  run(meet, threads);
  printf("written %ld, barriers %ld\n", n, serial);
  CHECK(pthread_barrier_destroy(&barrier) == 0);
  pthread_spin_init(&spin, 0);
  n = 0;
  run(add_spinning, threads);
  printf("spin %ld\n", n);
  CHECK(pthread_spin_trylock(&spin) == 0 && pthread_spin_trylock(&spin) == EBUSY &&
        pthread_spin_unlock(&spin) == 0);
  run(do_once, threads);
  printf("once %ld\n", onces);
  CHECK(sem_init(&items, 0, 0) == 0 && sem_init(&room, 0, 3) == 0 && sem_init(&sem, 0, 0) == 0);
  n = 0;
  run(produce_and_consume, threads);
  int left;
  sem_getvalue(&room, &left);
  printf("semaphores %ld %d\n", n, left);
  CHECK(sem_trywait(&items) == -1 && errno == EAGAIN);

  // Errors and time limits, while another thread holds everything.
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_t t;
  pthread_create(&t, NULL, hold, NULL);
  sem_wait(&sem);
  struct timespec at = after_ms(3), mono = after_ms_of(CLOCK_MONOTONIC, 3), bad = {1, 1000000000};
  CHECK(pthread_mutex_trylock(&m) == EBUSY && pthread_mutex_destroy(&m) == EBUSY);
  CHECK(pthread_mutex_timedlock(&m, &at) == ETIMEDOUT);
  CHECK(pthread_mutex_timedlock(&m, &bad) == EINVAL);
  CHECK(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &mono) == ETIMEDOUT);
  CHECK(pthread_mutex_unlock(&err) == EPERM);
  CHECK(pthread_rwlock_tryrdlock(&rw) == EBUSY && pthread_rwlock_trywrlock(&rw) == EBUSY);
  at = after_ms(3);
  CHECK(pthread_rwlock_timedrdlock(&rw, &at) == ETIMEDOUT &&
        pthread_rwlock_timedwrlock(&rw, &at) == ETIMEDOUT);
  CHECK(sem_timedwait(&sem, &at) == -1 && errno == ETIMEDOUT);
  pthread_barrier_wait(&barrier);
  pthread_join(t, NULL);
  at = after_ms(5000);
  CHECK(pthread_mutex_timedlock(&m, &at) == 0);
  at = after_ms(3);
  CHECK(pthread_cond_timedwait(&c, &m, &at) == ETIMEDOUT);
  pthread_condattr_t cattr;
  pthread_cond_t cm;
  pthread_condattr_init(&cattr);
  pthread_condattr_setclock(&cattr, CLOCK_MONOTONIC);
  pthread_cond_init(&cm, &cattr);
  mono = after_ms_of(CLOCK_MONOTONIC, 3);
  CHECK(pthread_cond_timedwait(&cm, &m, &mono) == ETIMEDOUT);
  turn = 0;
  pthread_create(&t, NULL, signal_later, &cm);
  mono = after_ms_of(CLOCK_MONOTONIC, 20000);
  while (turn == 0) CHECK(pthread_cond_timedwait(&cm, &m, &mono) == 0);
  pthread_mutex_unlock(&m);
  pthread_join(t, NULL);
  CHECK(pthread_cond_destroy(&cm) == 0 && pthread_mutex_destroy(&m) == 0);
  long before = ms_now();
  usleep(5000);
  CHECK(ms_now() - before >= 4);
  puts("done");
  return 0;
}
