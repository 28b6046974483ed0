// Programs that close all descriptors that they did not open: what Godwit's workers wait in must not be among
// them.
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void* reader(void* p) {
  char c = 0;
  CHECK(read(*(int*)p, &c, 1) == 1);
  return (void*)(long)c;
}

/// Threads that wait for descriptors, conditions and time are woken.
static void works(const char* after) {
  int ends[2];
  pthread_t t;
  void* got;
  usleep(1000);
  CHECK(pipe(ends) == 0);
  CHECK(pthread_create(&t, NULL, reader, &ends[0]) == 0);
  usleep(1000);
  CHECK(write(ends[1], "x", 1) == 1);
  CHECK(pthread_join(t, &got) == 0 && (long)got == 'x');
  CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
  printf("works after %s\n", after);
  fflush(stdout);
}

static void one_by_one(void) {
  for (int fd = 3; fd < 2000; ++fd) close(fd);
}

/// The numbers of what was there before are free, all of them.
static void all_numbers_are_free(void) {
  const long most = sysconf(_SC_OPEN_MAX), end = most < 1500 ? most : 1500;
  for (int fd = 3; fd < end; ++fd) CHECK(dup(0) == fd);
  for (int fd = 3; fd < end; ++fd) CHECK(close(fd) == 0);
}

static volatile sig_atomic_t handled;
static void closes(int signal) {
  (void)signal;
  close(open("/dev/null", O_RDONLY));
  ++handled;
}
/// Handlers may close, whatever they interrupt.
static void in_handlers(void) {
  struct sigaction action = {.sa_handler = closes};
  const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
  while (handled < 2000) close(open("/dev/null", O_RDONLY));
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

int main(void) {
  CHECK(close(0) == 0);
  CHECK(open("/dev/null", O_RDWR) == 0);  // the lowest, as programs expect
  works("nothing");
  int lowest = dup(0);
  printf("the lowest number is %d\n", lowest);
  closefrom(3);
  CHECK(fcntl(lowest, F_GETFD) == -1 && errno == EBADF);
  works("closefrom");
  CHECK(close_range(3, ~0u, 0) == 0);
  works("close_range");
  CHECK(syscall(SYS_close_range, 3, ~0u, 0) == 0);
  works("the system call");
  one_by_one();
  works("one by one");
  for (int how = 0; how < 2; ++how) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      if (how == 0)
        closefrom(3);
      else
        one_by_one();
      all_numbers_are_free();
      in_handlers();
      works(how == 0 ? "closefrom in a child" : "one by one in a child");
      _exit(0);
    }
    int status = 1;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
  works("forking");
  return 0;
}
