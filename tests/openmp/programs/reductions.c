/* Reductions whose copies tasks share. */
#include "check.h"

struct pair {
  long sum, count;
};
static void add(struct pair* into, const struct pair* from) {
  into->sum += from->sum;
  into->count += from->count;
}
#pragma omp declare reduction(pairs : struct pair : add(&omp_out, &omp_in)) initializer(omp_priv = {0, 0})

static void walk(int depth, long* total) {
#pragma omp task in_reduction(+ : total[:1]) firstprivate(depth)
  {
    total[0] += depth;
    if (depth > 0) {
      walk(depth - 1, total);
      walk(depth - 1, total);
    }
#pragma omp taskwait
  }
}

/* Each thread has a copy of its own. */
static void copies(void) {
  static long* copy[4];
  long sum = 0;
  int tasks = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
#pragma omp taskgroup task_reduction(+ : sum)
  for (int i = 0; i < 100; ++i) {
#pragma omp task in_reduction(+ : sum) shared(tasks)
    {
      copy[omp_get_thread_num()] = &sum;
      rest_us(100);
      ++sum;
#pragma omp atomic
      ++tasks;
    }
  }
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < i; ++k) CHECK(copy[i] == NULL || copy[i] != copy[k]);
  printf("copies: %ld of %d\n", sum, tasks);
}

int main(void) {
  copies();
  long total = 0, array[4] = {1, 2, 3, 4}, product = 1;
  struct pair p = {0, 0};
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskgroup task_reduction(+ : total)
    {
      for (int i = 0; i < 100; ++i) {
#pragma omp task in_reduction(+ : total) firstprivate(i)
        total += i;
      }
    }
    CHECK(total == 4950);
    long t = 0;
#pragma omp taskgroup task_reduction(+ : t)
    walk(8, &t);
    printf("walk: %ld\n", t);
#pragma omp taskgroup task_reduction(+ : array) task_reduction(pairs : p)
    {
      for (int i = 0; i < 40; ++i) {
#pragma omp task in_reduction(+ : array) in_reduction(pairs : p) firstprivate(i)
        {
          array[i % 4] += i;
          p.sum += i;
          ++p.count;
#pragma omp taskgroup task_reduction(* : product)
          {
            if (i == 7) {
#pragma omp task in_reduction(* : product) in_reduction(pairs : p)
              {
                product *= 5;
                p.sum += 1000;
              }
            }
          }
        }
      }
    }
  }
  printf("groups: %ld %ld %ld %ld %ld, %ld of %ld, %ld\n", total, array[0], array[1], array[2], array[3],
         p.sum, p.count, product);

  long region = 0, loop = 0, parts = 0, tasks = 0, scope = 0;
#pragma omp parallel reduction(task, + : region) num_threads(3)
  {
    for (int i = 0; i < 10; ++i) {
#pragma omp task in_reduction(+ : region)
      region += 1;
    }
  }
#pragma omp parallel num_threads(3)
  {
#pragma omp for reduction(task, + : loop) schedule(dynamic, 3)
    for (int i = 0; i < 60; ++i) {
      loop += i;
#pragma omp task in_reduction(+ : loop)
      loop += 1000;
    }
#pragma omp for reduction(task, + : loop)
    for (int i = 0; i < 60; ++i) {
#pragma omp task in_reduction(+ : loop)
      loop += 1;
    }
#pragma omp sections reduction(task, + : parts)
    {
#pragma omp section
      {
#pragma omp task in_reduction(+ : parts)
        parts += 1;
      }
#pragma omp section
      parts += 10;
    }
#pragma omp scope reduction(task, + : scope)
    {
      scope += 1;
#pragma omp task in_reduction(+ : scope)
      scope += 10;
    }
#pragma omp single
    {
#pragma omp taskloop reduction(+ : tasks) grainsize(3)
      for (int i = 0; i < 100; ++i) tasks += i;
#pragma omp taskgroup task_reduction(+ : tasks)
      {
#pragma omp taskloop in_reduction(+ : tasks)
        for (int i = 0; i < 100; ++i) tasks += i;
      }
    }
  }
  printf("constructs: %ld %ld %ld %ld %ld\n", region, loop, parts, scope, tasks);

  double last = 0;
  int scanned[100], run = 0;
#pragma omp parallel for lastprivate(conditional : last) schedule(dynamic)
  for (int i = 0; i < 100; ++i)
    if (i % 17 == 3) last = i;
#pragma omp parallel for reduction(inscan, + : run)
  for (int i = 0; i < 100; ++i) {
    run += i;
#pragma omp scan inclusive(run)
    scanned[i] = run;
  }
  printf("last: %.0f, scan: %d %d\n", last, scanned[50], scanned[99]);
  return 0;
}
