// Handlers of signals: when they run, where, and how they may be left.
#define _GNU_SOURCE
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // sigpause, sighold, sigrelse: they are to work
#include <linux/futex.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t count;
static pthread_t ran_in;
static sem_t ran;

static void counts(int signal) {
  (void)signal;
  ++count;
  ran_in = pthread_self();
  sem_post(&ran);
}
static void with(int signal, void (*handler)(int), int flags) {
  struct sigaction a = {.sa_handler = handler, .sa_flags = flags};
  CHECK(sigaction(signal, &a, NULL) == 0);
}
static sigset_t only(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}
static void wait_for_handler(void) {
  while (sem_wait(&ran) != 0) CHECK(errno == EINTR);
}

// A signal to the process itself: the handler has run when kill comes back.
static void kill_self(void) {
  with(SIGUSR1, counts, 0);
  for (int i = 1; i <= 1000; ++i) {
    CHECK(kill(getpid(), SIGUSR1) == 0 && count == i);
    wait_for_handler();
  }
  CHECK(pthread_equal(ran_in, pthread_self()));
  union sigval value = {.sival_int = 7};
  CHECK(sigqueue(getpid(), SIGUSR1, value) == 0 && count == 1001);
  wait_for_handler();
  puts("kill, sigqueue: handled before they come back");
}

// What a child sent before it ended is handled before its parent changes what is to be done, and SIGCHLD
// before the wait for it comes back. Others compute, so that whoever takes signals for the process may come
// late.
static volatile int computing = 1;
static void* computes(void* unused) {
  while (computing) sched_yield();
  return unused;
}
static volatile sig_atomic_t children;
static void counts_children(int signal) {
  (void)signal;
  ++children;
}
static void from_child(void) {
  const int before = count;
  pthread_t others[4];
  sigset_t all, now;
  sigfillset(&all);
  CHECK(pthread_sigmask(SIG_SETMASK, &all, &now) == 0);  // no signals for these
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&others[i], NULL, computes, NULL) == 0);
  CHECK(pthread_sigmask(SIG_SETMASK, &now, NULL) == 0);
  with(SIGCHLD, counts_children, 0);
  for (int i = 1; i <= 100; ++i) {
    int ends[2];
    char byte;
    with(SIGUSR1, counts, 0);
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) _exit(kill(getppid(), SIGUSR1));
    close(ends[1]);
    while (read(ends[0], &byte, 1) != 0) CHECK(errno == EINTR);
    with(SIGUSR1, SIG_DFL, 0);
    CHECK(count == before + i);
    wait_for_handler();
    close(ends[0]);
    while (waitpid(child, NULL, 0) != child) CHECK(errno == EINTR);
    CHECK(children == i);
  }
  with(SIGCHLD, SIG_DFL, 0);
  with(SIGUSR1, counts, 0);
  computing = 0;
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(others[i], NULL) == 0);
  puts("signals of children: handled in time");
}

// Blocked ones are pending, wherever they came from, and handled when they are blocked no more, before that
// comes back.
static void pending(void) {
  const sigset_t usr1 = only(SIGUSR1);
  sigset_t set;
  for (int how = 0; how < 4; ++how) {
    const int before = count;
    CHECK(pthread_sigmask(SIG_BLOCK, &usr1, NULL) == 0);
    if (how == 0) CHECK(raise(SIGUSR1) == 0);
    if (how == 1) CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
    if (how == 2) CHECK(kill(getpid(), SIGUSR1) == 0);
    if (how == 3) {
      const pid_t child = fork();
      if (child == 0) _exit(kill(getppid(), SIGUSR1));
      CHECK(waitpid(child, NULL, 0) == child);
    }
    CHECK(sigpending(&set) == 0 && sigismember(&set, SIGUSR1) == 1 && count == before);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &usr1, NULL) == 0 && count == before + 1);
    CHECK(sigpending(&set) == 0 && sigismember(&set, SIGUSR1) == 0);
    wait_for_handler();
    CHECK(pthread_equal(ran_in, pthread_self()));
  }
  puts("pending signals");
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_t sleeper;
static int ready, over;

static void* waits(void* arg) {
  const int what = (int)(size_t)arg;
  __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
  if (what == 0) CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
  if (what == 1) CHECK(pthread_rwlock_rdlock(&rwlock) == 0 && pthread_rwlock_unlock(&rwlock) == 0);
  if (what == 2) CHECK(pthread_rwlock_wrlock(&rwlock) == 0 && pthread_rwlock_unlock(&rwlock) == 0);
  if (what == 3) pthread_barrier_wait(&barrier);
  if (what == 4) {
    pthread_mutex_lock(&mutex);
    while (!over) CHECK(pthread_cond_wait(&cond, &mutex) == 0);
    pthread_mutex_unlock(&mutex);
  }
  if (what == 5) CHECK(pthread_join(sleeper, NULL) == 0);
  return NULL;
}
static void* sleeps(void* arg) {
  pthread_mutex_lock(&mutex);
  while (!over) CHECK(pthread_cond_wait(&cond, &mutex) == 0);
  pthread_mutex_unlock(&mutex);
  return arg;
}
// In every wait. Where the thread has not come to it yet, the handler runs on the way.
static void in_waits(void) {
  pthread_barrier_init(&barrier, NULL, 2);
  for (int what = 0; what < 6; ++what) {
    pthread_t t;
    ready = over = 0;
    if (what == 0) pthread_mutex_lock(&mutex);
    if (what == 1 || what == 2) pthread_rwlock_wrlock(&rwlock);
    if (what == 5) CHECK(pthread_create(&sleeper, NULL, sleeps, NULL) == 0);
    CHECK(pthread_create(&t, NULL, waits, (void*)(size_t)what) == 0);
    while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST)) sched_yield();
    for (int i = 0; i < 20; ++i) {
      CHECK(pthread_kill(t, SIGUSR1) == 0);
      wait_for_handler();
      CHECK(pthread_equal(ran_in, t));
      sched_yield();
    }
    if (what == 0) pthread_mutex_unlock(&mutex);
    if (what == 1 || what == 2) pthread_rwlock_unlock(&rwlock);
    if (what == 3) pthread_barrier_wait(&barrier);
    if (what == 4 || what == 5) {
      pthread_mutex_lock(&mutex);
      over = 1;
      pthread_cond_broadcast(&cond);
      pthread_mutex_unlock(&mutex);
    }
    CHECK(pthread_join(t, NULL) == 0);
  }
  puts("handlers in every wait");
}

// Masks: the handler's own, those of sigsuspend and sigpause.
static void masks(void) {
  const sigset_t usr1 = only(SIGUSR1);
  sigset_t all_but, none, now;
  sigemptyset(&none);
  sigfillset(&all_but);
  sigdelset(&all_but, SIGUSR1);
  CHECK(pthread_sigmask(SIG_BLOCK, &usr1, NULL) == 0);
  int before = count;
  CHECK(raise(SIGUSR1) == 0 && sigsuspend(&all_but) == -1 && errno == EINTR && count == before + 1);
  CHECK(kill(getpid(), SIGUSR1) == 0 && sigpause(SIGUSR1) == -1 && errno == EINTR && count == before + 2);
  CHECK(pthread_sigmask(SIG_SETMASK, &none, &now) == 0 && sigismember(&now, SIGUSR1) == 1 &&
        count == before + 2);
  wait_for_handler();
  wait_for_handler();
  CHECK(sighold(SIGUSR1) == 0 && raise(SIGUSR1) == 0 && count == before + 2 && sigrelse(SIGUSR1) == 0 &&
        count == before + 3);
  wait_for_handler();
  puts("masks");
}

static sigjmp_buf way_out;
static void jumps(int signal) { siglongjmp(way_out, signal); }
// Left by a jump, from a wait that would last for ever: what was blocked in the handler is so no more.
static void jumping(void) {
  with(SIGALRM, jumps, 0);
  volatile int i;
  for (i = 0; i < 20; ++i) {
    const int from = sigsetjmp(way_out, 1);
    if (from == 0) {
      ualarm(1000, 0);
      for (;;) pause();
    }
    CHECK(from == SIGALRM);
    sigset_t now;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGALRM) == 0);
  }
  with(SIGALRM, SIG_DFL, 0);
  puts("siglongjmp out of a handler");
}

// A handler that suspends its thread, on a stack of its own.
static char stack[64 << 10] __attribute__((aligned(16)));
static int on_stack;
static void on_alternate(int signal) {
  (void)signal;
  char here;
  stack_t now;
  CHECK(sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_ONSTACK) != 0);
  on_stack = &here >= stack && &here < stack + sizeof stack;
  for (int i = 0; i < 20; ++i) {
    const struct timespec moment = {0, 1000};
    sched_yield();
    nanosleep(&moment, NULL);
  }
}
static void alternate(void) {
  stack_t mine = {.ss_sp = stack, .ss_size = sizeof stack}, before, small = {.ss_sp = stack, .ss_size = 100},
          odd = mine;
  odd.ss_flags = 99;
  CHECK(sigaltstack(&small, NULL) == -1 && errno == ENOMEM && sigaltstack(&odd, NULL) == -1 &&
        errno == EINVAL);
  CHECK(sigaltstack(&mine, &before) == 0 && sigaltstack(NULL, &mine) == 0 && mine.ss_sp == stack);
  with(SIGUSR2, on_alternate, SA_ONSTACK);
  CHECK(raise(SIGUSR2) == 0 && on_stack == 1);
  mine.ss_flags = SS_DISABLE;
  CHECK(sigaltstack(&mine, NULL) == 0);
  with(SIGUSR2, SIG_DFL, 0);
  puts("a handler on an alternate stack");
}

// pthread_exit in a handler of a signal to the process, which only this thread takes.
static sem_t listening;
static void exits(int signal) { pthread_exit((void*)(size_t)signal); }
static void* ends(void* arg) {
  const sigset_t usr2 = only(SIGUSR2);
  CHECK(pthread_sigmask(SIG_UNBLOCK, &usr2, NULL) == 0);
  sem_post(&listening);
  for (;;) pause();
  return arg;
}
static void* ends_in_futex(void* arg) {
  static int word = 0;
  const sigset_t usr2 = only(SIGUSR2);
  CHECK(pthread_sigmask(SIG_UNBLOCK, &usr2, NULL) == 0);
  for (;;) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  return arg;
}
static void exiting(void) {
  const sigset_t usr2 = only(SIGUSR2);
  with(SIGUSR2, exits, 0);
  sem_init(&listening, 0, 0);
  CHECK(pthread_sigmask(SIG_BLOCK, &usr2, NULL) == 0);
  for (int i = 0; i < 10; ++i) {
    pthread_t t;
    void* result;
    CHECK(pthread_create(&t, NULL, ends, NULL) == 0);
    CHECK(sem_wait(&listening) == 0);
    const pid_t child = fork();
    if (child == 0) _exit(kill(getppid(), SIGUSR2));
    CHECK(waitpid(child, NULL, 0) == child && pthread_join(t, &result) == 0 && (size_t)result == SIGUSR2);
  }
  pthread_t t;
  void* result;
  CHECK(pthread_create(&t, NULL, ends_in_futex, NULL) == 0);
  usleep(20000);
  CHECK(pthread_kill(t, SIGUSR2) == 0 && pthread_join(t, &result) == 0 && (size_t)result == SIGUSR2);
  puts("pthread_exit in a handler");
}

// Coroutines inside threads, each of which waits.
struct coroutines {
  ucontext_t main, one[4];
  char stacks[4][64 << 10];
  int left, turns;
};
static __thread struct coroutines* mine;
static void coroutine(int number) {
  struct coroutines* c = mine;
  for (int i = 0; i < 5; ++i) {
    const struct timespec moment = {0, 100000};
    pthread_mutex_lock(&mutex);
    nanosleep(&moment, NULL);
    ++c->turns;
    pthread_mutex_unlock(&mutex);
    swapcontext(&c->one[number], &c->main);
  }
  --c->left;
}
static void* has_coroutines(void* arg) {
  struct coroutines* c = mine = calloc(1, sizeof *c);
  c->left = 4;
  for (int i = 0; i < 4; ++i) {
    getcontext(&c->one[i]);
    c->one[i].uc_stack.ss_sp = c->stacks[i];
    c->one[i].uc_stack.ss_size = sizeof c->stacks[i];
    c->one[i].uc_link = &c->main;
    makecontext(&c->one[i], (void (*)(void))coroutine, 1, i);
  }
  for (int turn = 0; turn < 6; ++turn)
    for (int i = 0; i < 4; ++i) swapcontext(&c->main, &c->one[i]);
  CHECK(c->left == 0 && c->turns == 20);
  free(c);
  return arg;
}
static void contexts(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&t[i], NULL, has_coroutines, NULL) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(t[i], NULL) == 0);
  puts("coroutines that wait");
}

// Handlers of two signals wake and disturb the same thread, again and again, while the one that they run for
// computes: a handler may come while another is waking somebody.
static sem_t many;
static volatile int* child_over;
static void posts(int signal) {
  (void)signal;
  for (int i = 0; i < 5000; ++i) sem_post(&many);
}
static void nothing(int signal) { (void)signal; }
static void* takes(void* arg) {
  const sigset_t usr1 = only(SIGUSR1), usr2 = only(SIGUSR2);
  CHECK(pthread_sigmask(SIG_BLOCK, &usr1, NULL) == 0 && pthread_sigmask(SIG_UNBLOCK, &usr2, NULL) == 0);
  while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) sem_wait(&many);
  return arg;
}
static void beside(void) {
  const sigset_t usr2 = only(SIGUSR2);
  enum { takers = 8 };
  pthread_t t[takers];
  over = 0;
  sem_init(&many, 0, 0);
  child_over = mmap(NULL, sizeof *child_over, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(child_over != MAP_FAILED);
  CHECK(pthread_sigmask(SIG_BLOCK, &usr2, NULL) == 0);
  with(SIGUSR1, posts, 0);
  with(SIGUSR2, nothing, 0);
  for (int i = 0; i < takers; ++i) CHECK(pthread_create(&t[i], NULL, takes, NULL) == 0);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 10000; ++i) {
      if (kill(getppid(), i % 3 == 0 ? SIGUSR1 : SIGUSR2) != 0) break;
      if (i % 16 == 0) usleep(1);
    }
    *child_over = 1;
    _exit(0);
  }
  while (!*child_over) continue;
  while (waitpid(child, NULL, 0) != child) CHECK(errno == EINTR);
  over = 1;
  for (int i = 0; i < takers; ++i) sem_post(&many);
  for (int i = 0; i < takers; ++i) CHECK(pthread_join(t[i], NULL) == 0);
  with(SIGUSR1, SIG_DFL, 0);
  with(SIGUSR2, SIG_DFL, 0);
  puts("handlers beside a thread that computes");
}

// SIGPIPE is for the thread that wrote: handled before the write comes back, pending if blocked, ignored.
static void* fills(void* fd) {
  static char block[1 << 20];
  const ssize_t n = write(*(int*)fd, block, sizeof block);
  CHECK(n < (ssize_t)sizeof block);
  CHECK(pthread_equal(ran_in, pthread_self()));
  return NULL;
}
static void broken_pipes(void) {
  int ends[2], pair[2], status;
  char byte;
  pthread_t t;
  const sigset_t sigpipe = only(SIGPIPE);
  const struct timespec now = {0, 0};
  sigset_t set;
  struct sigaction before;
  CHECK(sigaction(SIGPIPE, NULL, &before) == 0);
  with(SIGPIPE, counts, 0);
  int seen = count;
  CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
  CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE && count == ++seen);
  CHECK(pthread_equal(ran_in, pthread_self()));
  wait_for_handler();
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && close(pair[0]) == 0);
  CHECK(send(pair[1], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE && count == seen);
  CHECK(send(pair[1], "x", 1, 0) == -1 && errno == EPIPE && count == ++seen);
  wait_for_handler();
  FILE* file = fdopen(ends[1], "w");
  CHECK(file != NULL && setvbuf(file, NULL, _IONBF, 0) == 0 && fputc('x', file) == EOF);
  sched_yield();
  CHECK(count == ++seen);
  wait_for_handler();
  fclose(file);
  // Some of it may have been written.
  CHECK(pipe(ends) == 0 && pthread_create(&t, NULL, fills, &ends[1]) == 0);
  CHECK(read(ends[0], &byte, 1) == 1 && close(ends[0]) == 0);
  CHECK(pthread_join(t, NULL) == 0 && count == ++seen);
  wait_for_handler();

  with(SIGPIPE, SIG_DFL, 0);
  CHECK(pthread_sigmask(SIG_BLOCK, &sigpipe, NULL) == 0);
  CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE);
  CHECK(sigpending(&set) == 0 && sigismember(&set, SIGPIPE) == 1);
  CHECK(sigtimedwait(&sigpipe, NULL, &now) == SIGPIPE);
  CHECK(sigpending(&set) == 0 && sigismember(&set, SIGPIPE) == 0);
  CHECK(sigtimedwait(&sigpipe, NULL, &now) == -1 && errno == EAGAIN);
  CHECK(pthread_sigmask(SIG_UNBLOCK, &sigpipe, NULL) == 0);
  fflush(stdout);
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      CHECK(sigaction(SIGPIPE, NULL, &before) == 0 && before.sa_handler == SIG_DFL);
      CHECK(i == 1 || write(ends[1], "x", 1) == -1);
      for (;;) pause();
    }
    if (i == 1) CHECK(kill(child, SIGPIPE) == 0);
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
  }
  with(SIGPIPE, SIG_IGN, 0);
  CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE);
  CHECK(sigaction(SIGPIPE, &before, NULL) == 0 && close(ends[1]) == 0 && close(pair[1]) == 0);
  puts("SIGPIPE");
}

int main(void) {
  sem_init(&ran, 0, 0);
  kill_self();
  from_child();
  pending();
  in_waits();
  masks();
  jumping();
  alternate();
  exiting();
  contexts();
  broken_pipes();
  beside();
  return 0;
}
