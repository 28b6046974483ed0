/* What these programs have in common: they print what they found, the same with every runtime. */
#ifndef CHECK_H
#define CHECK_H
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Others go on meanwhile. */
static inline void rest_us(long us) {
  const struct timespec t = {0, us * 1000};
  nanosleep(&t, NULL);
}

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                       \
    }                                                                \
  } while (0)

#endif
