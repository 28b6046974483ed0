/* How long tasks and sync variables take, in the shape that Chapel's compiler emits, beside POSIX threads.
 * Argument: how many tasks. docs/chapel.md has figures. */
#include <pthread.h>
#include <time.h>

#include "shapes.h"

enum { f_empty, f_inner, f_ping };
static long tasks = 1000000;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void empty(void* p) { task_ends(p); }

/* A cobegin of two in each task of a cobegin. */
static void inner(void* p) {
  const arguments* a = p;
  if (a->index > 0) {
    end_count ends = {0};
    add_task(f_inner, &ends, a->index - 1, NULL, 1);
    add_task(f_inner, &ends, a->index - 1, NULL, 2);
    wait_for_end(&ends);
  }
  task_ends(a);
}

typedef struct {
  sync_int to, fro;
} table;
enum { rounds = 100000 };
static void ping(void* p) {
  const arguments* a = p;
  table* t = a->shared;
  for (long i = 0; i < rounds; ++i) {
    if (a->index == 0) {
      writeEF(&t->to, i, 3);
      readFE(&t->fro, 4);
    } else {
      writeEF(&t->fro, readFE(&t->to, 5), 6);
    }
  }
  task_ends(a);
}
chpl_fn_p chpl_ftable[] = {empty, inner, ping};

static void* thread_body(void* p) { return p; }

static void all(void) {
  for (int i = 0; i < 5; ++i) {
    const double begin = now();
    coforall(f_empty, tasks, NULL, 7);
    printf("%.1f ns per task of a coforall of %ld, %u workers\n", (now() - begin) / (double)tasks * 1e9,
           tasks, chpl_task_getMaxPar());
  }
  for (int i = 0; i < 5; ++i) {
    const double begin = now();
    end_count ends = {0};
    add_task(f_inner, &ends, 17, NULL, 8);
    wait_for_end(&ends);
    printf("%.1f ns per task of a tree of cobegins\n", (now() - begin) / (double)(1 << 18) * 1e9);
  }
  for (int i = 0; i < 5; ++i) {
    table t;
    init(&t.to);
    init(&t.fro);
    const double begin = now();
    coforall(f_ping, 2, &t, 9);
    printf("%.1f ns per value through a sync variable\n", (now() - begin) / rounds / 2 * 1e9);
  }
  for (int i = 0; i < 5; ++i) {
    const double begin = now();
    const long n = tasks / 50;
    for (long k = 0; k < n; ++k) {
      pthread_t t;
      CHECK(pthread_create(&t, NULL, thread_body, NULL) == 0 && pthread_join(t, NULL) == 0);
    }
    printf("%.1f ns per POSIX thread\n", (now() - begin) / (double)n * 1e9);
  }
}

int main(int argc, char** argv) {
  if (argc > 1) tasks = atol(argv[1]);
  chpl_task_init();
  chpl_task_callMain(all);
  chpl_task_exit();
  return 0;
}
