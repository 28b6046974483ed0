// How a process ends: end MODE.
#define _GNU_SOURCE
#include "check.h"
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

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  atexit(at_exit);
  pthread_t t;
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "return") == 0) {
    pthread_create(&t, NULL, forever, NULL);
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
  if (strcmp(mode, "big_stack") == 0) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 30);
    int error = pthread_create(&t, &attr, quick, NULL);
    printf("%d\n", error);
    if (error == 0) pthread_join(t, NULL);
  }
  if (strcmp(mode, "_exit") == 0) _exit(5);
  return 0;
}
