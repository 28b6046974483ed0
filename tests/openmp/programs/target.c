/* Target regions, which run on the host. */
#include <string.h>

#include "check.h"

struct pair {
  long a, b;
};

static long sum_on_device(const int* v, int n) {
  long sum = 0;
#pragma omp target teams distribute parallel for map(to : v [0:n]) reduction(+ : sum)
  for (int i = 0; i < n; ++i) sum += v[i];
  return sum;
}

#pragma omp declare target
static int table[4] = {1, 2, 3, 4};
static int entry(int i) { return table[i]; }
#pragma omp end declare target

static void own_variables(void) {
  struct pair p = {1, 2};
  char text[100];
  int x = 7;
  strcpy(text, "outside");
#pragma omp target firstprivate(p, text) map(tofrom : x)
  x += 1;
#pragma omp target firstprivate(p, text, x)
  {
    CHECK(p.a == 1 && p.b == 2 && strcmp(text, "outside") == 0 && x == 8);
    p.a = 100;
    text[0] = 'i';
    x = 0;
  }
  CHECK(p.a == 1 && x == 8 && text[0] == 'o');
}

static void threads(void) {
  int outside[4], inside[4], max = 0, teams = 0, seen = 0;
#pragma omp parallel num_threads(3)
  {
#pragma omp single
      {outside[0] = omp_get_level();
  outside[1] = omp_get_num_threads();
#pragma omp target map(from : inside) map(tofrom : max)
  {
    inside[0] = omp_get_level();
    inside[1] = omp_get_num_threads();
    inside[2] = omp_get_thread_num();
    inside[3] = omp_is_initial_device();
#pragma omp parallel num_threads(2) reduction(+ : max)
    max += omp_get_num_threads();
  }
  outside[2] = omp_get_level();
  outside[3] = omp_get_num_threads();
}
}
#pragma omp target teams num_teams(3) thread_limit(2) map(tofrom : teams, seen)
#pragma omp parallel num_threads(4)
{
#pragma omp atomic
  seen |= omp_get_num_threads() <= 2 ? 1 : 2;
#pragma omp master
#pragma omp atomic
  teams += omp_get_team_num() + 1;
}
int limit = 0, few = 0;
#pragma omp target map(from : limit, few) thread_limit(2)
{
  limit = omp_get_thread_limit();
#pragma omp parallel num_threads(8)
#pragma omp single
  few = omp_get_num_threads() <= 2;
}
CHECK(limit == 2 && few == 1);
printf("levels %d %d, %d %d; in it %d %d %d %d; %d, teams %d %d\n", outside[0], outside[1], outside[2],
       outside[3], inside[0], inside[1], inside[2], inside[3], max, teams, seen);
}

static void data(void) {
  enum { n = 1000 };
  double a[n], b[n];
  for (int i = 0; i < n; ++i) a[i] = i;
#pragma omp target data map(to : a) map(alloc : b)
  {
#pragma omp target
    for (int i = 0; i < n; ++i) b[i] = 2 * a[i];
#pragma omp target update from(b)
    CHECK(b[n - 1] == 2 * (n - 1));
#pragma omp target parallel for simd
    for (int i = 0; i < n; ++i) b[i] += 1;
#pragma omp target update from(b)
  }
#pragma omp target enter data map(to : a)
#pragma omp target map(tofrom : b)
  b[0] = a[1] + entry(3);
#pragma omp target exit data map(delete : a)
  printf("data %.1f %.1f\n", b[0], b[n - 1]);
}

static void order(void) {
  int x = 0, y = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
  {
#pragma omp task depend(out : x) shared(x)
    {
      rest_us(2000);
      x = 1;
    }
#pragma omp target depend(inout : x) map(tofrom : x) nowait
    x = x * 10 + 2;
#pragma omp task depend(in : x) shared(x, y)
    y = x;
#pragma omp taskwait
    int* device = omp_target_alloc(sizeof(int), omp_get_initial_device());
#pragma omp target is_device_ptr(device) map(tofrom : y) if (0)
    {
      *device = y;
      y = *device + 100;
    }
    omp_target_free(device, omp_get_initial_device());
  }
  printf("order %d %d\n", x, y);
}

int main(void) {
  int v[5000];
  for (int i = 0; i < 5000; ++i) v[i] = i % 17;
  printf("sum %ld\n", sum_on_device(v, 5000));
  own_variables();
  threads();
  data();
  order();
  return 0;
}
