// OpenMP with more threads than workers: they wait for each other by bare futex instructions, after spinning
// a while.
#include "check.h"
#include <omp.h>

int main(void) {
  enum { threads = 8, rounds = 20 };
  long sum = 0;
  int seen = 0;
  omp_set_dynamic(0);
  for (int r = 0; r < rounds; ++r) {
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
#pragma omp atomic
      ++seen;
#pragma omp barrier
#pragma omp critical
      sum += omp_get_thread_num();
    }
  }
  CHECK(seen == threads * rounds);
  printf("openmp: %ld\n", sum);
  return 0;
}
