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
static void* wait_for_usr2(void* a) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  int s = 0;
  CHECK(sigwait(&set, &s) == 0 && s == SIGUSR2);
  return a;
}
static void* read_interrupted(void* a) {
  char b;
  sem_post(&posted);
  CHECK(read(pair[0], &b, 1) == -1 && errno == EINTR);
  struct timespec t = {100, 0}, left;
  sem_post(&posted);
  CHECK(nanosleep(&t, &left) == -1 && errno == EINTR && left.tv_sec >= 90);
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
  action.sa_flags = 0;
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &soon, NULL);
  CHECK(pause() == -1 && errno == EINTR);
  sem_wait(&posted);
  setitimer(ITIMER_REAL, &soon, NULL);
  CHECK(sleep(100) > 90);
  sem_wait(&posted);
  printf("alarms %d\n", (int)got[SIGALRM]);

  // To a thread.
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  pthread_t t;
  pthread_create(&t, NULL, read_interrupted, NULL);
  sem_wait(&posted);
  for (int i = 0; i < 2; i++) {
    usleep(20000);
    CHECK(pthread_kill(t, SIGUSR1) == 0);
    sem_wait(&posted);
    if (i == 0) sem_wait(&posted);
  }
  pthread_join(t, NULL);
  CHECK(pthread_kill(pthread_self(), 0) == 0);
  printf("to a thread %d\n", (int)got[SIGUSR1]);

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
  kill(getpid(), SIGUSR1);
  usleep(3000);
  CHECK(got[SIGUSR1] == 4);
  CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
  while (got[SIGUSR1] != 5) usleep(1000);
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
