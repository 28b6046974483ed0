/* Loops: every schedule, type and direction, ordered, doacross; sections. */
#include <string.h>

#include "check.h"

enum { N = 1000 };

static int seen[N];

static void begin(void) { memset(seen, 0, sizeof seen); }
static void once(const char* what, int from, int to, int by) {
  for (int i = 0; i < N; ++i) {
    int in =
        by > 0 ? i >= from && i < to && (i - from) % by == 0 : i <= from && i > to && (from - i) % -by == 0;
    if (seen[i] != in) {
      printf("%s: iteration %d ran %d times, not %d\n", what, i, seen[i], in);
      exit(1);
    }
  }
  printf("%s\n", what);
}

#define UP(what, schedule)                                                                               \
  begin();                                                                                               \
  _Pragma("omp parallel") {                                                                              \
    _Pragma(schedule) for (long i = 3; i < 998; i += 7) { _Pragma("omp atomic")++ seen[i]; }             \
  }                                                                                                      \
  once(what ", up", 3, 998, 7);                                                                          \
  begin();                                                                                               \
  _Pragma("omp parallel") {                                                                              \
    _Pragma(schedule) for (int i = 999; i > 1; i -= 3) { _Pragma("omp atomic")++ seen[i]; }              \
  }                                                                                                      \
  once(what ", down", 999, 1, -3);                                                                       \
  begin();                                                                                               \
  _Pragma("omp parallel") {                                                                              \
    _Pragma(schedule) for (unsigned long long i = 0; i < 1000; ++i) { _Pragma("omp atomic")++ seen[i]; } \
  }                                                                                                      \
  once(what ", unsigned", 0, 1000, 1);

static void schedules(void) {
  UP("static", "omp for schedule(static)")
  UP("static 3", "omp for schedule(static, 3)")
  UP("dynamic", "omp for schedule(dynamic)")
  UP("dynamic 5", "omp for schedule(dynamic, 5)")
  UP("guided", "omp for schedule(guided)")
  UP("guided 4", "omp for schedule(guided, 4)")
  UP("auto", "omp for schedule(auto)")
  UP("monotonic dynamic", "omp for schedule(monotonic: dynamic, 2)")
  static const omp_sched_t kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided, omp_sched_auto};
  for (int k = 0; k < 4; ++k)
    for (int chunk = 0; chunk < 10; chunk += 3) {
      omp_set_schedule(kinds[k], chunk);
      UP("runtime", "omp for schedule(runtime)")
      UP("nonmonotonic runtime", "omp for schedule(nonmonotonic: runtime)")
    }
}

/* The region and the loop in one construct have entry points of their own. */
static void combined(void) {
  begin();
#pragma omp parallel for schedule(static, 2)
  for (int i = 0; i < N; ++i)
#pragma omp atomic
    ++seen[i];
#pragma omp parallel for schedule(dynamic, 7)
  for (int i = 0; i < N; ++i)
#pragma omp atomic
    ++seen[i];
#pragma omp parallel for schedule(guided) num_threads(3)
  for (int i = 0; i < N; ++i)
#pragma omp atomic
    ++seen[i];
#pragma omp parallel for schedule(runtime)
  for (int i = 0; i < N; ++i)
#pragma omp atomic
    ++seen[i];
#pragma omp parallel for collapse(3) schedule(dynamic)
  for (int i = 0; i < 10; ++i)
    for (int j = 0; j < 10; ++j)
      for (int k = 0; k < 10; ++k)
#pragma omp atomic
        ++seen[100 * i + 10 * j + k];
  for (int i = 0; i < N; ++i) CHECK(seen[i] == 5);
  printf("combined\n");
}

static void extremes(void) {
  int none = 0, far = 0;
  unsigned long long many = 0;
#pragma omp parallel
  {
#pragma omp for schedule(dynamic)
    for (int i = 5; i < 5; ++i)
#pragma omp atomic
      ++none;
#pragma omp for schedule(guided) reduction(+ : many)
    for (unsigned long long i = ~0ull - 100; i < ~0ull - 1; i += 3) many += i;
#pragma omp for schedule(static, 1) reduction(+ : many)
    for (unsigned long long i = ~0ull; i > ~0ull - 30; i -= 4) many += i;
#pragma omp for schedule(dynamic, 1000000000) reduction(+ : many)
    for (long i = -20; i < 20; ++i) many += (unsigned long long)i;
#pragma omp for schedule(dynamic) reduction(+ : far)
    for (long i = -9000000000000000000; i < 9000000000000000000; i += 1000000000000000000) ++far;
#pragma omp for schedule(guided) reduction(+ : far)
    for (long i = 9000000000000000000; i > -9000000000000000000; i -= 1000000000000000000) far += 100;
  }
  CHECK(none == 0);
  printf("extremes: %llu %d\n", many, far);
}

/* Some members may be many constructs ahead of the others. */
static void nowait(void) {
  long sum = 0;
  int single = 0;
#pragma omp parallel reduction(+ : sum)
  for (int round = 0; round < 200; ++round) {
#pragma omp for schedule(dynamic) nowait
    for (int i = 0; i < 10; ++i) sum += i;
#pragma omp single nowait
#pragma omp atomic
    ++single;
#pragma omp sections nowait
    {
#pragma omp section
      sum += 100;
#pragma omp section
      sum += 1000;
    }
  }
  printf("nowait: %ld %d\n", sum, single);
}

/* One waits for the other often, and it may be through just when that lies down to sleep. */
static void behind(void) {
  long count = 0;
#pragma omp parallel num_threads(2)
  for (int round = 0; round < 100000; ++round) {
    if (omp_get_thread_num() == 1)
      for (volatile int i = 0; i < round % 64;) i = i + 1;
#pragma omp for schedule(dynamic) nowait
    for (int i = 0; i < 2; ++i)
#pragma omp atomic
      ++count;
  }
  printf("behind: %ld\n", count);
}

static void values(void) {
  int last = -1, first = 7, check = 0;
  double product = 1;
  int all = 1, most = 0;
#pragma omp parallel for firstprivate(first) lastprivate(last) schedule(dynamic, 3) reduction(* : product) \
    reduction(&& : all) reduction(max : most) reduction(+ : check)
  for (int i = 0; i < 100; ++i) {
    last = i + first;
    if (i < 10) product *= 2;
    all = all && i >= 0;
    if (i * 37 % 100 > most) most = i * 37 % 100;
    check += i;
  }
  printf("values: %d %.0f %d %d %d\n", last, product, all, most, check);
}

static void in_order(void) {
  int next = 0;
#pragma omp parallel
  {
#pragma omp for ordered schedule(dynamic, 3)
    for (int i = 0; i < 200; ++i) {
#pragma omp ordered
      {
        CHECK(next == i);
        ++next;
      }
    }
#pragma omp for ordered schedule(static)
    for (int i = 0; i < 100; ++i) {
      if (i % 3 == 0) continue; /* not every iteration gets there */
#pragma omp ordered
      ++next;
    }
#pragma omp for ordered schedule(guided)
    for (unsigned long long i = 0; i < 100; ++i)
#pragma omp ordered
    {
      CHECK(next == 266 + (int)i);
      ++next;
    }
#pragma omp for ordered schedule(runtime)
    for (int i = 100; i > 0; --i)
#pragma omp ordered
    {
      CHECK(next == 466 - i);
      ++next;
    }
  }
  int order = 0; /* chunks that never get there have their turn, too */
#pragma omp parallel for ordered schedule(static, 1) num_threads(4)
  for (int i = 0; i < 100; ++i) {
    if (i % 10 != 0) continue;
    rest_us(300);
#pragma omp ordered
    {
      CHECK(order == i);
      order += 10;
    }
  }
  printf("ordered: %d %d\n", next, order);
}

static void doacross(void) {
  enum { rows = 40, columns = 30 };
  static int cells[rows + 1][columns + 1], line[N];
  line[0] = 1;
#pragma omp parallel
  {
#pragma omp for ordered(1) schedule(dynamic)
    for (int i = 1; i < N; ++i) {
#pragma omp ordered depend(sink : i - 1)
      line[i] = line[i - 1] + 1;
#pragma omp ordered depend(source)
    }
#pragma omp for ordered(2) schedule(static, 1)
    for (int i = 1; i <= rows; ++i)
      for (int j = 1; j <= columns; ++j) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
        cells[i][j] = (cells[i - 1][j] + cells[i][j - 1] + i * j) % 1009;
#pragma omp ordered depend(source)
      }
#pragma omp for ordered(1) schedule(static)
    for (unsigned long long i = 2; i < N; i += 2) {
#pragma omp ordered depend(sink : i - 2)
      line[i] = line[i - 2] + 5;
#pragma omp ordered depend(source)
    }
  }
  printf("doacross: %d %d\n", cells[rows][columns], line[N - 2]);
}

static void sections(void) {
  int a = 0, b = 0, c = 0, last = 0;
#pragma omp parallel sections lastprivate(last)
  {
#pragma omp section
    last = ++a;
#pragma omp section
    last = b += 2;
#pragma omp section
    last = c += 3;
  }
#pragma omp parallel
  {
#pragma omp sections reduction(+ : a)
    {
#pragma omp section
      a += 10;
#pragma omp section
      a += 100;
    }
  }
  printf("sections: %d %d %d %d\n", a, b, c, last);
}

int main(void) {
  schedules();
  combined();
  extremes();
  nowait();
  behind();
  values();
  in_order();
  doacross();
  sections();
  begin();
#pragma omp for schedule(dynamic)
  for (int i = 0; i < 50; ++i) ++seen[i];
  once("outside a region", 0, 50, 1);
#pragma omp for schedule(guided)
  for (int i = 0; i < 50; ++i) --seen[i];
  for (int i = 0; i < 50; ++i) CHECK(seen[i] == 0);
  return 0;
}
