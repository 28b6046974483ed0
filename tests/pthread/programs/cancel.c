// Cancellation: where it happens, what is cleaned up, what is left alone.
#define _GNU_SOURCE
#include "check.h"
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t sem, ready, cancelled;
static int ends[2];
static pthread_key_t key;
static int cleaned, destroyed;

static void clean(void* a) { cleaned += (int)(long)a; }
static void unlock(void* a) {
  pthread_mutex_unlock(a);
  cleaned++;
}
static void destroy(void* a) { destroyed += (int)(long)a; }

static void* in_cond(void* a) {
  pthread_mutex_lock(&m);
  pthread_cleanup_push(unlock, &m);
  sem_post(&ready);
  for (;;) pthread_cond_wait(&c, &m);
  pthread_cleanup_pop(0);
  return a;
}
static void* in_sem(void* a) {
  pthread_cleanup_push(clean, (void*)10);
  pthread_cleanup_push(clean, (void*)20);
  pthread_setspecific(key, (void*)5);
  sem_post(&ready);
  sem_wait(&sem);
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  return a;
}
static void* in_sleep(void* a) {
  sem_post(&ready);
  sleep(1000);
  return a;
}
static void* in_read(void* a) {
  char b;
  sem_post(&ready);
  CHECK(read(ends[0], &b, 1) == 1);
  return a;
}
static void* in_recv(void* a) {
  char b;
  sem_post(&ready);
  recv(*(int*)a, &b, 1, 0);
  return a;
}
static void* in_waitpid(void* a) {
  sem_post(&ready);
  CHECK(waitpid(*(pid_t*)a, NULL, 0) > 0);
  return a;
}
static void* in_waitid(void* a) {
  siginfo_t info;
  sem_post(&ready);
  CHECK(waitid(P_PID, (id_t) * (pid_t*)a, &info, WEXITED) == 0);
  return a;
}
static void* in_join(void* a) {
  sem_post(&ready);
  pthread_join(*(pthread_t*)a, NULL);
  return a;
}
static void* in_loop(void* a) {
  sem_post(&ready);
  for (;;) {
    pthread_testcancel();
    sched_yield();
  }
  return a;
}
static void* disabled(void* a) {
  int before;
  CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before) == 0 && before == PTHREAD_CANCEL_ENABLE);
  sem_post(&ready);
  CHECK(sem_wait(&cancelled) == 0);
  pthread_testcancel();
  cleaned += 1000;
  CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before) == 0 && before == PTHREAD_CANCEL_DISABLE);
  pthread_testcancel();
  return a;
}
static void* by_exit(void* a) {
  pthread_cleanup_push(clean, (void*)7);
  pthread_exit(a);
  pthread_cleanup_pop(0);
  return NULL;
}

static void cancel(const char* what, void* (*f)(void*), void* a) {
  pthread_t t;
  void* r;
  for (int wait_us = 0; wait_us <= 3000; wait_us += 3000) {  // before it waits, perhaps; and while it waits
    CHECK(pthread_create(&t, NULL, f, a) == 0);
    sem_wait(&ready);
    if (wait_us != 0) usleep(wait_us);
    CHECK(pthread_cancel(t) == 0);
    sem_post(&cancelled);
    CHECK(pthread_join(t, &r) == 0 && r == PTHREAD_CANCELED);
  }
  printf("%s: cleaned %d, destroyed %d\n", what, cleaned, destroyed);
}

// What is cleaned up takes its time, and the thread is cancelled once more meanwhile.
static sem_t cleaning;
static void clean_slowly(void* a) {
  sem_post(&cleaning);
  sem_wait(&sem);
  cleaned += (int)(long)a;
}
static void* in_cleanup(void* a) {
  pthread_cleanup_push(clean_slowly, (void*)3);
  sleep(1000);
  pthread_cleanup_pop(0);
  return a;
}
static void cancel_twice(void) {
  pthread_t t;
  void* r;
  sem_init(&cleaning, 0, 0);
  CHECK(pthread_create(&t, NULL, in_cleanup, NULL) == 0 && pthread_cancel(t) == 0);
  sem_wait(&cleaning);
  usleep(3000);
  CHECK(pthread_cancel(t) == 0);
  usleep(3000);
  CHECK(sem_post(&sem) == 0);
  CHECK(pthread_join(t, &r) == 0 && r == PTHREAD_CANCELED);
  printf("while it cleans up: cleaned %d, begun again %d\n", cleaned, sem_trywait(&cleaning) == 0);
}

// To try a join is no place to be cancelled.
static void* tries_to_join(void* a) {
  CHECK(pthread_cancel(pthread_self()) == 0);
  CHECK(pthread_tryjoin_np(*(pthread_t*)a, NULL) == EBUSY);
  cleaned += 100;
  pthread_testcancel();
  return a;
}

static void all(void) {
  sem_init(&sem, 0, 0);
  sem_init(&ready, 0, 0);
  sem_init(&cancelled, 0, 0);
  pthread_key_create(&key, destroy);
  cancel("pthread_cond_wait", in_cond, NULL);
  CHECK(pthread_mutex_trylock(&m) == 0 && pthread_mutex_unlock(&m) == 0);
  cancel("sem_wait", in_sem, NULL);
  cancel("sleep", in_sleep, NULL);
  cancel_twice();
  CHECK(pipe(ends) == 0);
  cancel("read", in_read, NULL);
  CHECK(write(ends[1], "x", 1) == 1);
  pthread_t t;
  pthread_create(&t, NULL, in_read, NULL);
  CHECK(pthread_join(t, NULL) == 0);
  sem_wait(&ready);
  int pair[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  cancel("recv", in_recv, &pair[0]);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(100);
    for (;;) pause();
  }
  cancel("waitpid", in_waitpid, &child);
  cancel("waitid", in_waitid, &child);
  CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
  pthread_create(&t, NULL, in_sleep, NULL);
  sem_wait(&ready);
  cancel("pthread_join", in_join, &t);
  pthread_t tries;
  void* how;
  CHECK(pthread_create(&tries, NULL, tries_to_join, &t) == 0 && pthread_join(tries, &how) == 0);
  printf("pthread_tryjoin_np: cleaned %d, cancelled afterwards %d\n", cleaned, how == PTHREAD_CANCELED);
  pthread_cancel(t);
  pthread_join(t, NULL);
  cancel("pthread_testcancel", in_loop, NULL);
  while (sem_trywait(&cancelled) == 0) {
  }
  cancel("disabled", disabled, NULL);
  void* r;
  pthread_create(&t, NULL, by_exit, (void*)3);
  pthread_join(t, &r);
  printf("pthread_exit: %ld, cleaned %d\n", (long)r, cleaned);
}

// The thread that forked, in its child: another one cancels it. The process ends when both have.
static pthread_t first;
static void* cancels_first(void* a) {
  sem_wait(&ready);
  usleep(3000);
  CHECK(pthread_cancel(first) == 0);
  return a;
}
static void say(void* what) { puts(what); }
static void first_of_a_child(void* (*f)(void*)) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    pthread_t t;
    first = pthread_self();
    CHECK(pthread_create(&t, NULL, cancels_first, NULL) == 0);
    pthread_cleanup_push(say, "the first thread of a child is cancelled");
    f(NULL);
    pthread_cleanup_pop(0);
    _exit(1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
  all();
  // In a child threads are OS threads.
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    all();
    exit(3);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
  first_of_a_child(in_cond);
  first_of_a_child(in_sem);
  first_of_a_child(in_read);
  return 0;
}
