/* Fibonacci numbers from C: a thread for each of the first calls. c_fib [N] prints fib(N). */
#include <godwit.h>
#include <stdio.h>
#include <stdlib.h>

static void* fib(void* arg) {
  const long n = (long)(intptr_t)arg;
  gw_thread* child;
  void* x;
  void* y;
  if (n < 2) return arg;
  if (gw_spawn(&child, fib, (void*)(intptr_t)(n - 1)) != GW_OK) exit(1);
  y = fib((void*)(intptr_t)(n - 2));
  if (gw_join(child, &x) != GW_OK) exit(1);
  return (void*)((intptr_t)x + (intptr_t)y);
}

static int root(void* arg) {
  const long n = *(long*)arg;
  printf("fib(%ld) = %ld\n", n, (long)(intptr_t)fib((void*)(intptr_t)n));
  return 0;
}

int main(int argc, char** argv) {
  long n = argc > 1 && argv[1][0] != '-' ? atol(argv[1]) : 20;
  return gw_run(argc, argv, root, &n);
}
