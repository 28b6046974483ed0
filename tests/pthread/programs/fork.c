// fork from threads, in the child more threads; waiting for children.
#define _GNU_SOURCE
#include "check.h"
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long n;

static void* add(void* a) {
  for (int i = 0; i < 1000; i++) {
    pthread_mutex_lock(&m);
    n++;
    pthread_mutex_unlock(&m);
  }
  usleep(1000);
  return a;
}
static void* forks(void* a) {
  fflush(stdout);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    CHECK(getpid() == gettid());
    n = 0;
    pthread_t t[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&t[i], NULL, add, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(t[i], NULL) == 0);
    char* p = malloc(100000);
    memset(p, 1, 100000);
    if ((long)a % 2 == 0) _exit(n == 4000 ? (int)(long)a : 99);
    exit(n == 4000 ? (int)(long)a : 99);
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid);
  return (void*)(long)WEXITSTATUS(status);
}

static int status_of(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}

// A child ends with its last thread, whatever threads its parent has.
static void* ends_the_child(void* status) {
  usleep(50000);
  _exit((int)(long)status);
}
static void* ends_last(void* unused) {
  usleep(50000);
  printf("the child's last thread\n");
  return unused;
}
/// In the child: true.
static int fork_and_start(pid_t* child, void* (*f)(void*), void* argument) {
  fflush(stdout);
  *child = fork();
  CHECK(*child >= 0);
  pthread_t t;
  if (*child == 0 && f != NULL) CHECK(pthread_create(&t, NULL, f, argument) == 0);
  return *child == 0;
}
static void* returns(void* result) {
  pid_t child;
  if (fork_and_start(&child, ends_the_child, (void*)8)) return NULL;
  *(int*)result = status_of(child);
  return NULL;
}
static sem_t beside;
static void* waits_beside(void* unused) {
  sem_wait(&beside);
  return unused;
}
static void ends(void) {
  pthread_t t, other;
  pid_t child;
  int result = 0;
  CHECK(sem_init(&beside, 0, 0) == 0 && pthread_create(&other, NULL, waits_beside, NULL) == 0);
  if (fork_and_start(&child, NULL, NULL)) pthread_exit(NULL);
  CHECK(status_of(child) == 0);
  if (fork_and_start(&child, ends_the_child, (void*)7)) pthread_exit(NULL);
  CHECK(status_of(child) == 7);
  if (fork_and_start(&child, ends_last, NULL)) pthread_exit(NULL);
  CHECK(status_of(child) == 0);
  CHECK(pthread_create(&t, NULL, returns, &result) == 0 && pthread_join(t, NULL) == 0 && result == 8);
  CHECK(sem_post(&beside) == 0 && pthread_join(other, NULL) == 0);
  printf("the end of a child\n");
}

// A child of a child has no threads of its parent, but its handlers.
static pthread_cond_t turns = PTHREAD_COND_INITIALIZER;
static int turn;
static void* takes_turns(void* number) {
  for (int i = 0; i < 250; i++) {
    CHECK(pthread_mutex_lock(&m) == 0);
    while (turn % 4 != (int)(long)number) CHECK(pthread_cond_wait(&turns, &m) == 0);
    turn++;
    CHECK(pthread_cond_broadcast(&turns) == 0 && pthread_mutex_unlock(&m) == 0);
  }
  return NULL;
}
static void* waits_for_ever(void* unused) {
  pthread_mutex_lock(&m);
  for (;;) pthread_cond_wait(&turns, &m);
  return unused;
}
static volatile sig_atomic_t handled;
static void handle(int signal) { handled = signal; }
static void children_of_a_child(void) {
  pid_t child, grandchild;
  if (fork_and_start(&child, waits_for_ever, NULL)) {
    CHECK(signal(SIGUSR1, handle) != SIG_ERR);
    usleep(50000);
    grandchild = fork();
    if (grandchild != 0) _exit(status_of(grandchild));
    CHECK(raise(SIGUSR1) == 0 && handled == SIGUSR1);
    CHECK(pthread_mutex_init(&m, NULL) == 0 && pthread_cond_init(&turns, NULL) == 0);
    pthread_t t[4];
    for (long i = 0; i < 4; i++) CHECK(pthread_create(&t[i], NULL, takes_turns, (void*)i) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(t[i], NULL) == 0);
    _exit(turn == 1000 ? 5 : 6);
  }
  CHECK(status_of(child) == 5);
  printf("a child of a child\n");
}

// While a handler runs, and the thread that it is for computes, another thread forks. Threads of the child
// end by pthread_exit: there is no handler that they could leave.
static volatile sig_atomic_t in_handler, forked;
static void handle_until_forked(int signal) {
  in_handler = signal;
  while (!forked) {
  }
}
static void* exits(void* result) { pthread_exit(result); }
static void* forks_beside(void* unused) {
  pid_t child;
  pthread_t t;
  void* r;
  while (!in_handler) usleep(1000);
  if (fork_and_start(&child, NULL, NULL)) {
    CHECK(pthread_create(&t, NULL, exits, (void*)4) == 0 && pthread_join(t, &r) == 0);
    _exit((int)(long)r);
  }
  CHECK(status_of(child) == 4);
  forked = 1;
  return unused;
}
static void beside_a_handler(void) {
  pthread_t t;
  CHECK(pthread_create(&t, NULL, forks_beside, NULL) == 0 && signal(SIGALRM, handle_until_forked) != SIG_ERR);
  const struct itimerval soon = {{0, 0}, {0, 1000}};
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
  while (!forked) {
  }
  CHECK(pthread_join(t, NULL) == 0);
  printf("a child from beside a handler\n");
}

int main(void) {
  pthread_t t[8];
  long sum = 0;
  for (long i = 0; i < 8; i++) CHECK(pthread_create(&t[i], NULL, forks, (void*)i) == 0);
  for (int i = 0; i < 8; i++) {
    void* r;
    pthread_join(t[i], &r);
    sum += (long)r;
  }
  printf("children %ld\n", sum);
  printf("child of main %ld\n", (long)forks((void*)9));
  FILE* p = popen("echo from the shell", "r");
  char line[100];
  CHECK(p != NULL && fgets(line, sizeof line, p) != NULL);
  printf("%s", line);
  CHECK(pclose(p) == 0);
  CHECK(wait(NULL) == -1 && errno == ECHILD);
  // A child dies of a signal as any program does.
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSEGV);
    _exit(1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  ends();
  children_of_a_child();
  beside_a_handler();
  return 0;
}
