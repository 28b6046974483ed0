// Which calls a handler of a signal ends: poll and its like always, others only without SA_RESTART. Signals
// that the mask of such a call lets in. A sleep, which others end early in no case.
#define _GNU_SOURCE
#include "check.h"
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { polls, ppolls, selects, pselects, epolls, epoll_pwaits, kinds };
static int ends[2], instance;
static int handled;

static void counts(int signal) {
  (void)signal;
  __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
}
static void install(int flags) {
  struct sigaction a = {.sa_handler = counts, .sa_flags = flags};
  CHECK(sigaction(SIGUSR1, &a, NULL) == 0);
}

static void send_to(pthread_t t) {  // which may have ended
  const int error = pthread_kill(t, SIGUSR1);
  CHECK(error == 0 || error == ESRCH);
}

static int look(int how, int ms, const sigset_t* mask) {
  struct pollfd p = {ends[0], POLLIN, 0};
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  struct timeval tv = {ms / 1000, ms % 1000 * 1000};
  struct epoll_event e;
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  switch (how) {
    case polls:
      return poll(&p, 1, ms);
    case ppolls:
      return ppoll(&p, 1, &t, mask);
    case selects:
      return select(ends[0] + 1, &set, NULL, NULL, &tv);
    case pselects:
      return pselect(ends[0] + 1, &set, NULL, NULL, &t, mask);
    case epolls:
      return epoll_wait(instance, &e, 1, ms);
    default:
      return epoll_pwait(instance, &e, 1, ms, mask);
  }
}

static int over;
static void* looks(void* how) {
  CHECK(look((int)(size_t)how, 20000, NULL) == -1 && errno == EINTR);
  __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
  return how;
}
static void always_interrupted(void) {
  install(SA_RESTART);
  for (size_t how = 0; how < kinds; ++how) {
    pthread_t t;
    over = 0;
    CHECK(pthread_create(&t, NULL, looks, (void*)how) == 0);
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {  // until one comes while the call waits
      usleep(10000);
      send_to(t);
    }
    CHECK(pthread_join(t, NULL) == 0);
  }
  puts("poll and its like: interrupted in spite of SA_RESTART");
}

// Pending when the call begins: its mask lets it in, and the call does not wait.
static void let_in(void) {
  sigset_t usr1, none, now;
  sigemptyset(&none);
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  CHECK(pthread_sigmask(SIG_BLOCK, &usr1, NULL) == 0);
  const int with_mask[] = {ppolls, pselects, epoll_pwaits};
  for (int i = 0; i < 3; ++i)
    for (int ms = 0; ms <= 10000; ms += 10000) {
      const int how = with_mask[i], before = handled;
      if (ms == 0 && how == epoll_pwaits) continue;  // looks at the time first
      CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0 && handled == before);
      CHECK(look(how, ms, &none) == -1 && errno == EINTR && handled == before + 1);
      CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGUSR1) == 1);
    }
  // What is ready comes first.
  CHECK(write(ends[1], "x", 1) == 1);
  for (int i = 0; i < 3; ++i) {
    CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
    CHECK(look(with_mask[i], 10000, &none) == 1);
  }
  char c;
  CHECK(read(ends[0], &c, 1) == 1 && pthread_sigmask(SIG_UNBLOCK, &usr1, NULL) == 0);
  puts("signals that a mask lets in");
}

static sem_t posted;
static int timed;
static void* takes(void* arg) {
  struct timespec late = after_ms(20000);
  const int r = timed ? sem_timedwait(&posted, &late) : sem_wait(&posted);
  const int error = r == 0 ? 0 : errno;
  __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
  (void)arg;
  return (void*)(size_t)error;
}
static void semaphores(void) {
  for (int shared = 0; shared < 2; ++shared)
    for (int how = 0; how < 3; ++how) {
      const int restarts = how == 0;
      void* error;
      pthread_t t;
      install(how == 1 ? 0 : SA_RESTART);
      timed = how == 2;
      CHECK(sem_init(&posted, shared, 0) == 0);
      over = 0;
      const int before = handled;
      CHECK(pthread_create(&t, NULL, takes, NULL) == 0);
      for (int i = 0; restarts ? i < 10 : !__atomic_load_n(&over, __ATOMIC_SEQ_CST); ++i) {
        usleep(5000);
        send_to(t);
      }
      while (restarts && __atomic_load_n(&handled, __ATOMIC_SEQ_CST) == before) usleep(1000);
      if (restarts) CHECK(sem_post(&posted) == 0);
      CHECK(pthread_join(t, &error) == 0 && (size_t)error == (restarts ? 0 : EINTR));
    }
  puts("semaphores: restarted, but not with a time limit");
}

// What waits without a time limit is restarted, here until its word changes or a byte comes.
static int word, pair[2];
static void* waits(void* how) {
  char c;
  int error = 0;
  if ((size_t)how == 0) {
    if (syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) != 0) error = errno;
  } else {
    if (recv(pair[0], &c, 1, 0) != 1) error = errno;
  }
  __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
  return (void*)(size_t)error;
}
static void with_and_without_limits(void) {
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  install(SA_RESTART);
  for (size_t how = 0; how < 3; ++how) {
    const struct timeval limit = {20, 0};
    void* error;
    pthread_t t;
    over = 0;
    if (how == 2) CHECK(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    CHECK(pthread_create(&t, NULL, waits, (void*)how) == 0);
    for (int i = 0; how < 2 ? i < 10 : !__atomic_load_n(&over, __ATOMIC_SEQ_CST); ++i) {
      usleep(5000);
      send_to(t);
    }
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    if (how == 0) syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (how == 1) CHECK(write(pair[1], "x", 1) == 1);
    CHECK(pthread_join(t, &error) == 0);
    // The wake-up of the futex may come while a handler runs: then its word has changed.
    CHECK(how < 2 ? error == NULL || (how == 0 && (size_t)error == EAGAIN) : (size_t)error == EINTR);
  }
  puts("futex, recv: restarted, but not with a time limit of the socket");
}

// Somebody may mean what lay on the stack before: wake-ups that come late.
static char* stack_of_sleeper;
static void* sleeps(void* arg) {
  char here = 0;
  __atomic_store_n(&stack_of_sleeper, &here, __ATOMIC_SEQ_CST);
  const long before = ms_now();
  CHECK(usleep(200000) == 0 && ms_now() - before >= 199);
  __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
  return arg;
}
static void late_wakes(void) {
  pthread_t t;
  over = 0;
  CHECK(pthread_create(&t, NULL, sleeps, NULL) == 0);
  char* at;
  while ((at = __atomic_load_n(&stack_of_sleeper, __ATOMIC_SEQ_CST)) == NULL) usleep(1000);
  while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
    usleep(10000);
    for (int i = -2048; i < 256; ++i) syscall(SYS_futex, at + i, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  }
  CHECK(pthread_join(t, NULL) == 0);
  puts("a sleep lasts as long as it should");
}

int main(void) {
  CHECK(pipe(ends) == 0 && (instance = epoll_create1(0)) >= 0);
  struct epoll_event e = {.events = EPOLLIN};
  CHECK(epoll_ctl(instance, EPOLL_CTL_ADD, ends[0], &e) == 0);
  always_interrupted();
  let_in();
  semaphores();
  with_and_without_limits();
  late_wakes();
  return 0;
}
