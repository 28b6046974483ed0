// Signals: to the process, to a thread; masks; sigwait; interrupted calls.
#define _GNU_SOURCE
#include "check.h"
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t got[65];
static sem_t posted;
static int pair[2];

static void note(int s) {
  got[s]++;
  sem_post(&posted);
}
static void count(int s) { got[s]++; }
static void* wait_for_usr2(void* a) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  int s = 0;
  CHECK(sigwait(&set, &s) == 0 && s == SIGUSR2);
  return a;
}
static volatile sig_atomic_t interrupted;  // so many calls of that thread
static sem_t seen_both;
static void* read_interrupted(void* a) {
  char b;
  CHECK(read(pair[0], &b, 1) == -1 && errno == EINTR);
  interrupted = 1;
  struct timespec t = {100, 0}, left;
  CHECK(nanosleep(&t, &left) == -1 && errno == EINTR);
  interrupted = 2;
  while (sem_wait(&seen_both) != 0) CHECK(errno == EINTR);
  return a;
}
static void* spawn(void* a) {
  int status = system((const char*)a);
  return (void*)(long)WEXITSTATUS(status);
}

int main(void) {
  sem_init(&posted, 0, 0);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = note;
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  struct sigaction seen;
  CHECK(sigaction(SIGUSR1, NULL, &seen) == 0 && seen.sa_handler == note);

  kill(getpid(), SIGUSR1);
  while (got[SIGUSR1] == 0) usleep(1000);
  while (sem_trywait(&posted) != 0) usleep(1000);
  CHECK(raise(SIGUSR1) == 0 && got[SIGUSR1] == 2);
  sem_wait(&posted);
  printf("handled %d\n", (int)got[SIGUSR1]);

  // A handler's sem_post wakes a thread that waits; an alarm interrupts.
  CHECK(signal(SIGALRM, note) != SIG_ERR);
  struct itimerval soon = {{0, 0}, {0, 3000}};
  setitimer(ITIMER_REAL, &soon, NULL);
  while (sem_wait(&posted) != 0) CHECK(errno == EINTR);
  CHECK(got[SIGALRM] == 1);
  // The first one may come before the call that it is to interrupt.
  action.sa_handler = count;
  action.sa_flags = 0;
  sigaction(SIGALRM, &action, NULL);
  struct itimerval often = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  CHECK(pause() == -1 && errno == EINTR);
  CHECK(sleep(1000) > 0);
  setitimer(ITIMER_REAL, &never, NULL);
  signal(SIGALRM, SIG_IGN);
  puts("alarms");

  // To a thread.
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  pthread_t t;
  sem_init(&seen_both, 0, 0);
  pthread_create(&t, NULL, read_interrupted, NULL);
  for (int i = 0; i < 2; i++)
    while (interrupted == i) {  // until one comes while the call waits
      usleep(20000);
      CHECK(pthread_kill(t, SIGUSR1) == 0);
    }
  sem_post(&seen_both);
  pthread_join(t, NULL);
  CHECK(pthread_kill(pthread_self(), 0) == 0);
  puts("to a thread");

  // Blocked everywhere: waits for sigwait.
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigaddset(&set, SIGUSR1);
  CHECK(pthread_sigmask(SIG_BLOCK, &set, &before) == 0 && !sigismember(&before, SIGUSR2));
  pthread_create(&t, NULL, wait_for_usr2, NULL);
  kill(getpid(), SIGUSR2);
  pthread_join(t, NULL);
  pthread_create(&t, NULL, wait_for_usr2, NULL);
  usleep(2000);
  pthread_kill(t, SIGUSR2);
  pthread_join(t, NULL);
  const int so_far = got[SIGUSR1];
  kill(getpid(), SIGUSR1);
  usleep(3000);
  CHECK(got[SIGUSR1] == so_far);
  CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
  while (got[SIGUSR1] != so_far + 1) usleep(1000);
  struct timespec none = {0, 0};
  CHECK(sigtimedwait(&set, NULL, &none) == -1 && errno == EAGAIN);
  puts("sigwait");

  void* r;
  pthread_create(&t, NULL, spawn, (void*)"kill -TERM $$; exit 3");  // not blocked there
  pthread_join(t, &r);
  pthread_create(&t, NULL, spawn, (void*)"exit 6");
  pthread_join(t, &r);
  printf("system %ld\n", (long)r);
  return 0;
}
