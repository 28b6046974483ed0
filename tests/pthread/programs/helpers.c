// Threads that the C library starts itself, here for timers: OS threads beside those of the program. They
// wait for descriptors, and wake the program's threads.
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { rounds = 30 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t came;
static int there[2], back[2], finished;

static void notified(union sigval unused) {
  (void)unused;
  char byte = 0;
  CHECK(sem_post(&came) == 0);
  CHECK(read(there[0], &byte, 1) == 1 && byte == 'x');
  CHECK(write(back[1], "y", 1) == 1);
  pthread_mutex_lock(&m);
  ++finished;
  pthread_cond_broadcast(&c);
  pthread_mutex_unlock(&m);
}
static void* waits(void* a) {
  pthread_mutex_lock(&m);
  while (finished < rounds) CHECK(pthread_cond_wait(&c, &m) == 0);
  pthread_mutex_unlock(&m);
  return a;
}

int main(void) {
  struct sigevent event;
  const struct itimerspec soon = {{0, 0}, {0, 1000000}};
  timer_t timer;
  pthread_t t[4];
  char byte = 0;
  CHECK(pipe(there) == 0 && pipe(back) == 0 && sem_init(&came, 0, 0) == 0);
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = notified;
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&t[i], NULL, waits, NULL) == 0);
  for (int i = 0; i < rounds; ++i) {
    CHECK(timer_settime(timer, 0, &soon, NULL) == 0);
    CHECK(sem_wait(&came) == 0);
    usleep(2000);
    CHECK(write(there[1], "x", 1) == 1);
    CHECK(read(back[0], &byte, 1) == 1 && byte == 'y');
  }
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(t[i], NULL) == 0);
  CHECK(timer_delete(timer) == 0);
  printf("notified %d times\n", finished);
  return 0;
}
