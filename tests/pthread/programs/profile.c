// A timer of CPU time with a handler, as profilers have it: its signals come while threads hold all kinds of
// locks inside the library.
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

enum { enough = 200 };  // signals
static volatile sig_atomic_t ticks;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long n;

static void count(int signal) { ticks += signal == SIGPROF; }

static void* adds(void* sum) {
  for (long i = 0; ticks < enough; ++i) {
    pthread_mutex_lock(&m);
    n++;
    pthread_mutex_unlock(&m);
    ++*(long*)sum;
    if (i % 64 == 0) usleep(1);
  }
  return NULL;
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = count;
  action.sa_flags = SA_RESTART;
  CHECK(sigaction(SIGPROF, &action, NULL) == 0);
  const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  CHECK(setitimer(ITIMER_PROF, &often, NULL) == 0);
  pthread_t t[7];
  long sums[8] = {0}, sum = 0;
  for (int i = 0; i < 7; ++i) CHECK(pthread_create(&t[i], NULL, adds, &sums[i]) == 0);
  adds(&sums[7]);
  for (int i = 0; i < 7; ++i) CHECK(pthread_join(t[i], NULL) == 0);
  CHECK(setitimer(ITIMER_PROF, &never, NULL) == 0);
  for (int i = 0; i < 8; ++i) sum += sums[i];
  printf("a timer of CPU time: %s\n", sum == n ? "done" : "lost");
  return 0;
}
