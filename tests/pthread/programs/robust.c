// Robust mutexes: the next one is told that the holder has ended, in a thread and in another process; objects
// shared between processes.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

struct shared {
  pthread_mutex_t robust, mutex;
  pthread_cond_t cond;
  pthread_barrier_t barrier;
  pthread_rwlock_t rwlock;
  int turn, sum;
};
static struct shared* s;

static void init(pthread_mutex_t* m, int robust, int shared, int type) {
  pthread_mutexattr_t a;
  CHECK(pthread_mutexattr_init(&a) == 0 && pthread_mutexattr_settype(&a, type) == 0);
  if (robust) CHECK(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST) == 0);
  if (shared) CHECK(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED) == 0);
  CHECK(pthread_mutex_init(m, &a) == 0);
}

static void* locks_and_ends(void* m) {
  CHECK(pthread_mutex_lock(m) == 0);
  return NULL;
}
static void* waits(void* m) { return (void*)(size_t)pthread_mutex_lock(m); }

static void in_threads(int type) {
  pthread_mutex_t m, other;
  pthread_t t, w;
  void* r;
  init(&m, 1, 0, type);
  init(&other, 1, 0, type);
  CHECK(pthread_mutex_lock(&m) == 0 && pthread_mutex_consistent(&m) == EINVAL &&
        pthread_mutex_lock(&other) == 0);
  CHECK(pthread_mutex_unlock(&m) == 0 && pthread_mutex_unlock(&other) == 0 &&
        pthread_mutex_unlock(&m) == EPERM);
  // Made consistent: as before.
  CHECK(pthread_create(&t, NULL, locks_and_ends, &m) == 0 && pthread_join(t, NULL) == 0);
  CHECK(pthread_mutex_trylock(&m) == EOWNERDEAD && pthread_mutex_consistent(&m) == 0 &&
        pthread_mutex_unlock(&m) == 0);
  CHECK(pthread_mutex_lock(&m) == 0 && pthread_mutex_unlock(&m) == 0);
  // Given back as it is: never again, also for those that wait.
  CHECK(pthread_create(&t, NULL, locks_and_ends, &m) == 0 && pthread_join(t, NULL) == 0);
  CHECK(pthread_mutex_lock(&m) == EOWNERDEAD);
  CHECK(pthread_create(&w, NULL, waits, &m) == 0);  // one: of several, the C library wakes one only
  sched_yield();
  CHECK(pthread_mutex_unlock(&m) == 0);
  CHECK(pthread_join(w, &r) == 0 && (size_t)r == ENOTRECOVERABLE);
  CHECK(pthread_mutex_trylock(&m) == ENOTRECOVERABLE && pthread_mutex_destroy(&m) == 0);
}

static void in_processes(void) {
  init(&s->robust, 1, 1, PTHREAD_MUTEX_NORMAL);
  for (int i = 0; i < 3; ++i) {
    int fds[2];
    char c;
    CHECK(pipe(fds) == 0);
    const pid_t child = fork();
    if (child == 0) {
      if (pthread_mutex_lock(&s->robust) != 0) _exit(1);
      if (write(fds[1], "x", 1) != 1) _exit(2);
      if (i == 0) _exit(0);
      for (;;) pause();
    }
    CHECK(read(fds[0], &c, 1) == 1);
    if (i == 1) CHECK(pthread_mutex_trylock(&s->robust) == EBUSY);
    if (i != 0) CHECK(kill(child, SIGKILL) == 0);
    if (i == 2) CHECK(waitpid(child, NULL, 0) == child);
    CHECK(pthread_mutex_lock(&s->robust) == EOWNERDEAD && pthread_mutex_consistent(&s->robust) == 0);
    CHECK(pthread_mutex_unlock(&s->robust) == 0);
    if (i != 2) CHECK(waitpid(child, NULL, 0) == child);
    close(fds[0]);
    close(fds[1]);
  }
  CHECK(pthread_mutex_lock(&s->robust) == 0 && pthread_mutex_unlock(&s->robust) == 0);
}

// A thread that holds one forks: the child's thread ends, and the mutex is still the parent's.
static int held_end;
static void* forks_while_it_holds(void* unused) {
  CHECK(pthread_mutex_lock(&s->robust) == 0);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) return unused;
  int status;
  char c;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(write(held_end, "x", 1) == 1 && read(held_end, &c, 1) == 1);
  CHECK(pthread_mutex_unlock(&s->robust) == 0);
  return unused;
}
static void in_a_child(void) {
  char c;
  int pair[2];
  pthread_t t;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  held_end = pair[0];
  CHECK(pthread_create(&t, NULL, forks_while_it_holds, NULL) == 0);
  CHECK(read(pair[1], &c, 1) == 1 && pthread_mutex_trylock(&s->robust) == EBUSY);
  CHECK(write(pair[1], "x", 1) == 1 && pthread_join(t, NULL) == 0);
  CHECK(pthread_mutex_lock(&s->robust) == 0 && pthread_mutex_unlock(&s->robust) == 0);
  // Its own threads do lose them.
  const pid_t child = fork();
  if (child == 0) {
    in_threads(PTHREAD_MUTEX_NORMAL);
    _exit(3);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
}

static void others(void) {
  pthread_condattr_t ca;
  pthread_barrierattr_t ba;
  pthread_rwlockattr_t ra;
  init(&s->mutex, 0, 1, PTHREAD_MUTEX_NORMAL);
  CHECK(pthread_condattr_init(&ca) == 0 && pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED) == 0);
  CHECK(pthread_cond_init(&s->cond, &ca) == 0);
  CHECK(pthread_barrierattr_init(&ba) == 0 &&
        pthread_barrierattr_setpshared(&ba, PTHREAD_PROCESS_SHARED) == 0);
  CHECK(pthread_barrier_init(&s->barrier, &ba, 2) == 0);
  CHECK(pthread_rwlockattr_init(&ra) == 0 && pthread_rwlockattr_setpshared(&ra, PTHREAD_PROCESS_SHARED) == 0);
  CHECK(pthread_rwlock_init(&s->rwlock, &ra) == 0);
  const pid_t child = fork();
  const int me = child == 0;
  for (int i = 0; i < 50; ++i) {
    pthread_mutex_lock(&s->mutex);
    while (s->turn != me) pthread_cond_wait(&s->cond, &s->mutex);
    s->turn = !me;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->mutex);
    pthread_rwlock_wrlock(&s->rwlock);
    ++s->sum;
    pthread_rwlock_unlock(&s->rwlock);
  }
  const int last = pthread_barrier_wait(&s->barrier);
  pthread_rwlock_rdlock(&s->rwlock);
  CHECK(s->sum == 100);
  pthread_rwlock_unlock(&s->rwlock);
  if (child == 0) _exit(last == 0 ? 3 : 4);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == (last == 0 ? 4 : 3));
}

int main(void) {
  s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  in_threads(PTHREAD_MUTEX_NORMAL);
  in_threads(PTHREAD_MUTEX_ERRORCHECK);
  puts("robust mutexes, in threads");
  fflush(stdout);
  in_processes();
  puts("robust mutexes, in processes");
  fflush(stdout);
  in_a_child();
  puts("robust mutexes, and a forked child");
  fflush(stdout);
  others();
  puts("shared between processes");
  return 0;
}
