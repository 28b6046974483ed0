/* Joins of threads that are just about to end: whoever comes between "it is over" and "it has ended" must
 * not wait for a wake-up that nobody sends. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static void* give_back(void* argument) { return (void*)((uintptr_t)argument * 3); }

int main(void) {
  enum { rounds = 2500, live = 16 };
  pthread_t all[live];
  uintptr_t wrong = 0;
  for (int r = 0; r < rounds; ++r) {
    for (uintptr_t i = 0; i < live; ++i)
      if (pthread_create(&all[i], NULL, give_back, (void*)(i + (uintptr_t)r)) != 0) return 2;
    for (uintptr_t i = 0; i < live; ++i) {
      void* result = NULL;
      if (pthread_join(all[i], &result) != 0) return 3;
      wrong += (uintptr_t)result != (i + (uintptr_t)r) * 3;
    }
  }
  printf("%d threads joined, %d wrong\n", rounds * live, (int)wrong);
  return wrong != 0;
}
