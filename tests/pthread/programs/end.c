// How a process ends: end MODE.
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

static void at_exit(void) { puts("atexit"); }
static void* forever(void* a) {
  for (;;) usleep(1000);
  return a;
}
static void* later(void* a) {
  usleep(5000);
  puts("the last thread");
  return a;
}
static void* call_exit(void* a) {
  usleep(1000);
  exit((int)(long)a);
}
static void* crash(void* a) {
  *(volatile int*)0 = 1;
  return a;
}
static long use_up(long depth) {
  volatile char frame[4096];
  frame[0] = (char)depth;
  return depth == 0 ? 0 : use_up(depth + 1) + frame[0];
}
static void* overflow(void* a) { return (void*)use_up((long)a + 1); }
static void* quick(void* a) { return a; }

static int descend(int kib) {
  char room[1024];
  memset(room, kib, sizeof room);
  if (kib % 1024 == 0) sched_yield();
  return kib == 0 ? room[5] : descend(kib - 1) + (room[5] != (char)kib);
}
static void* deep(void* arg) {
  (void)arg;
  return (void*)(size_t)(descend(40 << 10) == 0);
}

static char own_stack[256 << 10] __attribute__((aligned(4096)));
static int cleaned;
static void cleans(void* arg) {
  (void)arg;
  ++cleaned;
}
static void* on_own(void* arg) {
  char here;
  pthread_attr_t mine;
  void* at;
  size_t bytes;
  (void)arg;
  CHECK(&here >= own_stack && &here < own_stack + sizeof own_stack);
  CHECK(pthread_getattr_np(pthread_self(), &mine) == 0 && pthread_attr_getstack(&mine, &at, &bytes) == 0);
  CHECK(at == own_stack && bytes == sizeof own_stack);
  sched_yield();
  const struct timespec moment = {0, 1000};
  nanosleep(&moment, NULL);
  pthread_cleanup_push(cleans, NULL);
  const int before = cleaned;
  if (before % 2 == 0) {
    ++cleaned;
    pthread_exit((void*)2);
  }
  pthread_cleanup_pop(1);
  return (void*)2;
}

static int broken_pipe(void) {
  int ends[2];
  CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
  return ends[1];
}

static int sleeping;
static void* sleeps_often(void* a) {
  __atomic_add_fetch(&sleeping, 1, __ATOMIC_SEQ_CST);
  for (;;) usleep(500000);
  return a;
}
/// The last that exit does lasts: it writes what is left in streams, here more than a pipe takes for a while.
static void slow_end(void) {
  static char buffer[1 << 20];
  int ends[2], bytes = 0;
  const pid_t writer = getpid();
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    close(ends[1]);
    while (bytes < 4096 && getppid() == writer)
      CHECK(usleep(1000) == 0 && ioctl(ends[0], FIONREAD, &bytes) == 0);
    usleep(300000);
    while (read(ends[0], buffer, sizeof buffer) > 0) continue;
    _exit(0);
  }
  FILE* to = fdopen(ends[1], "w");
  CHECK(to != NULL && close(ends[0]) == 0 && setvbuf(to, buffer, _IOFBF, sizeof buffer) == 0);
  for (int i = 0; i < 20000; ++i) fputs("more than a pipe takes\n", to);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  atexit(at_exit);
  pthread_t t;
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "return") == 0) {
    pthread_create(&t, NULL, forever, NULL);
    return 3;
  }
  if (strcmp(mode, "return_busy") == 0) {
    pthread_attr_t attr;
    CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 64 << 10) == 0);
    slow_end();
    enum { threads = 10000 };  // their timers fill a mapping of their own, which is gone when it is freed
    for (int i = 0; i < threads; ++i) CHECK(pthread_create(&t, &attr, sleeps_often, NULL) == 0);
    while (__atomic_load_n(&sleeping, __ATOMIC_SEQ_CST) < threads) usleep(1000);
    return 3;
  }
  if (strcmp(mode, "pthread_exit") == 0) {
    pthread_create(&t, NULL, later, NULL);
    pthread_exit(NULL);
  }
  if (strcmp(mode, "pthread_exit_alone") == 0) pthread_exit(NULL);
  if (strcmp(mode, "exit") == 0) {
    pthread_create(&t, NULL, call_exit, (void*)4);
    for (;;) pause();
  }
  if (strcmp(mode, "crash") == 0) {
    pthread_create(&t, NULL, crash, NULL);
    pthread_join(t, NULL);
  }
  if (strcmp(mode, "abort") == 0) abort();
  if (strcmp(mode, "overflow") == 0) {
    pthread_create(&t, NULL, overflow, NULL);
    pthread_join(t, NULL);
  }
  if (strcmp(mode, "raise") == 0) {
    raise(SIGSEGV);
    puts("it went on");
  }
  if (strcmp(mode, "kill") == 0) {
    kill(getpid(), SIGQUIT);
    puts("it went on");
  }
  if (strcmp(mode, "pipe") == 0) {
    signal(SIGPIPE, SIG_DFL);
    CHECK(write(broken_pipe(), "x", 1) == -1);
    puts("it went on");
  }
  if (strcmp(mode, "pipe_stdio") == 0) {
    FILE* to = fdopen(broken_pipe(), "w");
    CHECK(to != NULL && setvbuf(to, NULL, _IONBF, 0) == 0 && fputc('x', to) == EOF);
    puts("it went on");
  }
  if (strcmp(mode, "file_size") == 0) {
    const struct rlimit limit = {1 << 20, 1 << 20};
    FILE* file = tmpfile();
    signal(SIGXFSZ, SIG_DFL);
    CHECK(file != NULL && setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(pwrite(fileno(file), "x", 1, 1 << 20) == -1);
    puts("it went on");
  }
  if (strcmp(mode, "stacks") == 0) {
    pthread_attr_t attr;
    void* result;
    pthread_attr_init(&attr);
    CHECK(pthread_attr_setstacksize(&attr, 64 << 20) == 0);
    for (int i = 0; i < 4; ++i) {
      CHECK(pthread_create(&t, &attr, deep, NULL) == 0 && pthread_join(t, &result) == 0 &&
            result == (void*)1);
    }
    CHECK(pthread_attr_setstack(&attr, own_stack, sizeof own_stack) == 0);
    for (int i = 0; i < 20; ++i) {
      CHECK(pthread_create(&t, &attr, on_own, &attr) == 0 && pthread_join(t, &result) == 0 &&
            result == (void*)2);
    }
    puts("stacks: as large as asked for, and where");
  }
  if (strcmp(mode, "_exit") == 0) _exit(5);
  return 0;
}
