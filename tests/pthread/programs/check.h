// What the test programs have in common: they print what they see, the same in every run, and say where
// something is wrong.
#pragma once
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(c)                                                                                     \
  do {                                                                                               \
    if (!(c)) {                                                                                      \
      printf("%s:%d: not so: %s (errno %d)\n", strrchr("/" __FILE__, '/') + 1, __LINE__, #c, errno); \
      fflush(stdout);                                                                                \
      abort();                                                                                       \
    }                                                                                                \
  } while (0)

static inline struct timespec after_ms_of(clockid_t clock, long ms) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_nsec += ms % 1000 * 1000000;
  t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}
static inline struct timespec after_ms(long ms) { return after_ms_of(CLOCK_REALTIME, ms); }
static inline long ms_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
