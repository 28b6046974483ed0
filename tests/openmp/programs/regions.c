/* Regions, what their threads have of their own, and how they wait for each other. */
#include <pthread.h>
#include <sched.h>

#include "check.h"

static int mine = 5;
#pragma omp threadprivate(mine)

static void numbers(void) {
  int present[16] = {0}, size = 0;
#pragma omp parallel num_threads(5)
  {
#pragma omp single
    size = omp_get_num_threads();
#pragma omp atomic
    ++present[omp_get_thread_num()];
    CHECK(omp_in_parallel());
  }
  for (int i = 0; i < 5; ++i) CHECK(present[i] == 1);
  CHECK(!omp_in_parallel() && omp_get_thread_num() == 0 && omp_get_num_threads() == 1);
  int alone = 0;
#pragma omp parallel if (alone) reduction(+ : size)
  size += omp_get_num_threads();
  omp_set_num_threads(3);
#pragma omp parallel reduction(+ : size)
  size += 100;
  printf("numbers: %d, at most %d\n", size, omp_get_max_threads());
}

static void private_to_threads(void) {
  mine = 11;
#pragma omp parallel num_threads(4) copyin(mine)
  mine += omp_get_thread_num();
  int sum = 0;
  for (int round = 0; round < 50; ++round) {
#pragma omp parallel num_threads(4) reduction(+ : sum)
    {
      CHECK(mine == 11 + omp_get_thread_num() + round);
      ++mine;
      sum += mine;
    }
  }
  printf("threadprivate: %d\n", sum);
}

static void barriers(void) {
  int step[8] = {0}, errors = 0;
#pragma omp parallel num_threads(4) reduction(+ : errors)
  {
    const int me = omp_get_thread_num();
    for (int i = 1; i <= 300; ++i) {
      step[me] = i;
#pragma omp barrier
      for (int k = 0; k < 4; ++k) errors += step[k] != i;
#pragma omp barrier
    }
  }
  printf("barriers: %d errors\n", errors);
}

static void singles(void) {
  int count = 0, from = 0;
#pragma omp parallel num_threads(4)
  {
    for (int i = 0; i < 100; ++i) {
      int value = -1;
#pragma omp single copyprivate(value)
      {
        ++count;
        value = count * 3;
      }
      CHECK(value == (i + 1) * 3);
    }
#pragma omp master
    ++from;
#pragma omp barrier
#pragma omp masked filter(2)
    from += 10 * omp_get_thread_num();
  }
  printf("singles: %d %d\n", count, from);
}

static void exclusion(void) {
  long a = 0, b = 0, c = 0, d = 0;
  long double e = 0;
  omp_lock_t lock;
  omp_nest_lock_t nest;
  omp_init_lock(&lock);
  omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(6)
  for (int i = 0; i < 2000; ++i) {
#pragma omp critical
    {
      const long before = a;
      if (i % 100 == 0) sched_yield();
      a = before + 1;
    }
#pragma omp critical(name)
    ++b;
    omp_set_lock(&lock);
    const long before = c;
    if (i % 100 == 0) sched_yield();
    c = before + 1;
    omp_unset_lock(&lock);
    omp_set_nest_lock(&nest);
    omp_set_nest_lock(&nest);
    ++d;
    omp_unset_nest_lock(&nest);
    omp_unset_nest_lock(&nest);
#pragma omp atomic
    e += 0.5L;
  }
  CHECK(omp_test_lock(&lock) && !omp_test_lock(&lock));
  CHECK(omp_test_nest_lock(&nest) == 1 && omp_test_nest_lock(&nest) == 2);
  omp_unset_lock(&lock);
  omp_destroy_lock(&lock);
  omp_destroy_nest_lock(&nest);
  printf("exclusion: %ld %ld %ld %ld %.1Lf\n", a, b, c, d, e);
}

static void nested(void) {
  omp_set_max_active_levels(3);
  int leaves = 0, wrong = 0;
#pragma omp parallel num_threads(3) reduction(+ : leaves, wrong)
  {
    const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(2) reduction(+ : leaves, wrong)
    {
      wrong += omp_get_level() != 2 || omp_get_active_level() != 2 || omp_get_num_threads() != 2;
      wrong += omp_get_ancestor_thread_num(1) != outer || omp_get_team_size(1) != 3;
      wrong += omp_get_ancestor_thread_num(0) != 0 || omp_get_team_size(0) != 1;
      wrong += omp_get_ancestor_thread_num(2) != omp_get_thread_num() || omp_get_ancestor_thread_num(3) != -1;
#pragma omp parallel num_threads(2) reduction(+ : leaves)
      ++leaves;
#pragma omp barrier
    }
    wrong += omp_get_thread_num() != outer || omp_get_num_threads() != 3;
  }
  omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2) reduction(+ : leaves)
  {
#pragma omp parallel num_threads(8) reduction(+ : leaves)
    leaves += 100 * omp_get_num_threads();
  }
  printf("nested: %d leaves, %d wrong\n", leaves, wrong);
}

static void settings(void) {
  omp_set_num_threads(4);
  int inside = 0;
#pragma omp parallel num_threads(2) reduction(+ : inside)
  {
    if (omp_get_thread_num() == 1) omp_set_num_threads(7); /* its own */
#pragma omp barrier
    inside += omp_get_max_threads();
  }
#pragma omp parallel num_threads(2)
#pragma omp single
  {
#pragma omp task if (0)
    omp_set_num_threads(9); /* likewise */
    CHECK(omp_get_max_threads() == 4);
  }
  omp_sched_t kind;
  int chunk;
  omp_set_schedule(omp_sched_guided, 9);
  omp_get_schedule(&kind, &chunk);
  omp_set_dynamic(1);
  printf("settings: %d %d, %d %d, dynamic %d", inside, omp_get_max_threads(), (int)kind, chunk,
         omp_get_dynamic());
  omp_set_dynamic(0);
  printf(", final %d, limit %d\n", omp_in_final(), omp_get_thread_limit() > 1000);
}

static void league(void) {
  int teams = 0, threads = 0;
#pragma omp teams num_teams(3) thread_limit(2) reduction(+ : teams, threads)
  {
    teams += 1 + 100 * omp_get_team_num();
#pragma omp parallel reduction(+ : threads)
    ++threads;
  }
  printf("teams: %d, %d threads\n", teams, threads <= 6 && threads >= 3);
  CHECK(omp_get_num_teams() == 1 && omp_get_team_num() == 0 && omp_get_thread_limit() > 1000);
}

/* Smaller and larger regions in turns: none has threads or tasks of the one before. */
static void sizes(void) {
  int ran = 0;
  for (int round = 0; round < 200; ++round) {
#pragma omp parallel num_threads(3 + round / 20)
    __asm__ volatile("" ::: "memory");
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 20; ++i) {
#pragma omp task shared(ran)
      {
        CHECK(omp_get_thread_num() < 2);
#pragma omp atomic
        ++ran;
      }
    }
  }
  printf("sizes: %d\n", ran);
}

static void* another(void* p) {
  int sum = 0;
  for (int i = 0; i < 20; ++i) {
#pragma omp parallel num_threads(3) reduction(+ : sum)
    sum += omp_get_thread_num();
  }
  *(int*)p = sum;
  return NULL;
}
static void threads_of_the_program(void) {
  int results[6], all = 0;
  for (int round = 0; round < 3; ++round) {
    pthread_t t[6];
    for (int i = 0; i < 6; ++i) pthread_create(&t[i], NULL, another, &results[i]);
    for (int i = 0; i < 6; ++i) {
      pthread_join(t[i], NULL);
      all += results[i];
    }
  }
  printf("threads of the program: %d\n", all);
}

/* Of a thread that has ended with its teams little stays. */
static void* one_region(void* p) {
  int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
  {
#pragma omp task
    {}
    ++sum;
  }
  CHECK(sum == 4);
  return p;
}
static long resident_kb(void) {
  long kb = 0;
  char line[256];
  FILE* f = fopen("/proc/self/status", "r");
  CHECK(f != NULL);
  while (fgets(line, sizeof line, f) != NULL) sscanf(line, "VmRSS: %ld", &kb);
  fclose(f);
  return kb;
}
static void little_stays(void) {
  long before = 0;
  for (int i = 0; i < 400; ++i) {
    if (i == 100) before = resident_kb();
    pthread_t t;
    pthread_create(&t, NULL, one_region, NULL);
    pthread_join(t, NULL);
  }
  printf("a thread leaves %s\n", resident_kb() - before < 1000 ? "little" : "much");
}

int main(void) {
  numbers();
  private_to_threads();
  barriers();
  singles();
  exclusion();
  nested();
  settings();
  league();
  sizes();
  threads_of_the_program();
  little_stays();
  return 0;
}
