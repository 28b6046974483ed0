// fork from threads, in the child more threads; waiting for children.
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
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
  return 0;
}
