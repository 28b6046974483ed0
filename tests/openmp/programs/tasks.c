/* Tasks: what they compute, where they run, and what waits for them. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "check.h"

static long fib(int n) {
  if (n < 2) return n;
  long x, y;
#pragma omp task shared(x)
  x = fib(n - 1);
#pragma omp task shared(y) untied
  y = fib(n - 2);
#pragma omp taskwait
  return x + y;
}

static int queens(int n, int row, const char* before) {
  if (row == n) return 1;
  int found[16] = {0}, sum = 0;
  for (int column = 0; column < n; ++column) {
    int free = 1;
    for (int r = 0; r < row && free; ++r) free = before[r] != column && abs(before[r] - column) != row - r;
    if (!free) continue;
#pragma omp task shared(found) firstprivate(column, row, before)
    {
      char board[16];
      memcpy(board, before, (size_t)row);
      board[row] = (char)column;
      found[column] = queens(n, row + 1, board);
    }
  }
#pragma omp taskwait
  for (int i = 0; i < n; ++i) sum += found[i];
  return sum;
}

static void sort(int* a, int n, int* room) {
  if (n < 32) {
    for (int i = 1; i < n; ++i)
      for (int k = i; k > 0 && a[k - 1] > a[k]; --k) {
        const int t = a[k];
        a[k] = a[k - 1];
        a[k - 1] = t;
      }
    return;
  }
  const int half = n / 2;
#pragma omp taskgroup
  {
#pragma omp task
    sort(a, half, room);
    sort(a + half, n - half, room + half);
  }
  int i = 0, k = half;
  for (int o = 0; o < n; ++o) room[o] = k == n || (i < half && a[i] <= a[k]) ? a[i++] : a[k++];
  memcpy(a, room, sizeof *a * (size_t)n);
}

/* An unbalanced tree; nobody waits for the children: the barrier does. */
static long nodes;
static void tree(unsigned long long state, int depth) {
#pragma omp atomic
  ++nodes;
  const int children = depth == 0 ? 50 : (int)(state >> 33) % 100 < 47 ? 2 : 0;
  for (int i = 0; i < children; ++i) {
#pragma omp task if (depth < 200)
    tree((state + (unsigned long long)i + 1) * 6364136223846793005ull + 1442695040888963407ull, depth + 1);
  }
}

static void factor(void) { /* blocks of a sparse matrix, as in LU */
  enum { blocks = 8, size = 10 };
  static double* m[blocks][blocks];
  for (int i = 0; i < blocks; ++i)
    for (int j = 0; j < blocks; ++j)
      if (i == j || (i * j) % 3 != 1) {
        m[i][j] = malloc(sizeof(double) * size * size);
        for (int k = 0; k < size * size; ++k)
          m[i][j][k] = (double)((i + 2 * j + k * 7) % 13) + (i == j ? 50 : 0);
      }
#pragma omp parallel
#pragma omp single nowait
  for (int k = 0; k < blocks; ++k) {
    for (int i = k + 1; i < blocks; ++i)
      if (m[i][k] != NULL) {
#pragma omp task firstprivate(i, k)
        for (int n = 0; n < size * size; ++n) m[i][k][n] /= m[k][k][n % size * (size + 1)];
      }
#pragma omp taskwait
    for (int i = k + 1; i < blocks; ++i)
      for (int j = k + 1; j < blocks; ++j)
        if (m[i][k] != NULL && m[k][j] != NULL && m[i][j] != NULL) {
#pragma omp task firstprivate(i, j, k)
          for (int n = 0; n < size * size; ++n) m[i][j][n] -= m[i][k][n] * m[k][j][n] / 100;
        }
#pragma omp taskwait
  }
  double sum = 0;
  for (int i = 0; i < blocks; ++i)
    for (int j = 0; j < blocks; ++j)
      if (m[i][j] != NULL)
        for (int n = 0; n < size * size; ++n) sum += m[i][j][n];
  printf("factor: %.6f\n", sum);
}

static void clauses(void) {
  int undeferred = 0, final = 0, large = 0, late = 0;
  struct {
    int value[500];
  } big;
  for (int i = 0; i < 500; ++i) big.value[i] = i;
#pragma omp parallel shared(undeferred, final, large, late)
#pragma omp single
  {
    for (int i = 0; i < 100; ++i) {
#pragma omp task if (0) shared(undeferred)
      ++undeferred; /* no race: it runs before the task construct ends */
#pragma omp task final(1) mergeable shared(final)
      {
        CHECK(omp_in_final());
        int included = 0;
#pragma omp task shared(included)
        included = omp_in_final();
        CHECK(included == 1);
#pragma omp atomic
        ++final;
      }
#pragma omp task firstprivate(big, i) shared(large) priority(3)
#pragma omp atomic
      large += big.value[i];
#pragma omp taskyield
    }
    CHECK(undeferred == 100);
    memset(&big, 0, sizeof big);
#pragma omp task shared(late) untied
    {
#pragma omp task shared(late)
      {
        rest_us(2000); /* the others are at the end of the region */
#pragma omp task shared(late)
        {
          rest_us(2000);
#pragma omp atomic
          ++late;
        }
      }
    }
  }
  printf("clauses: %d %d %d %d\n", undeferred, final, large, late);
}

/* A tied task stays on its thread, with the thread's variables, whatever happens in between. */
static int held = -1;
#pragma omp threadprivate(held)
static void tied(int depth, int* wrong) {
  const int me = omp_get_thread_num();
  int* const where = &held;
  for (int i = 0; i < 3 && depth > 0; ++i) {
#pragma omp task firstprivate(depth)
    tied(depth - 1, wrong);
  }
  if (me != omp_get_thread_num() || where != &held)
#pragma omp atomic
    ++*wrong;
#pragma omp taskwait
  if (me != omp_get_thread_num() || where != &held)
#pragma omp atomic
    ++*wrong;
}

/* While a task holds a lock and waits for its child, its thread begins no other task that wants the lock. */
static void locked(void) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  int done = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 200; ++i) {
#pragma omp task shared(lock, done)
    {
      omp_set_lock(&lock);
#pragma omp task shared(done)
      ++done;
#pragma omp taskwait
      omp_unset_lock(&lock);
    }
  }
  printf("locked: %d\n", done);
}

/* The same where the child has ended but for its event: older tasks that want the lock are at hand. */
static void* later(void* event) {
  rest_us(5000);
  omp_fulfill_event((omp_event_handle_t)event);
  return NULL;
}
static void locked_for_an_event(void) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  int done = 0;
#pragma omp parallel
#pragma omp single
  {
#pragma omp task shared(lock, done) if (0)
    {
      omp_set_lock(&lock);
      pthread_t t;
      for (int i = 0; i < 20; ++i) {
#pragma omp task shared(done)
#pragma omp atomic
        ++done;
      }
      omp_unset_lock(&lock);
      for (int i = 0; i < 20; ++i) {
#pragma omp task shared(lock, done)
        {
          omp_set_lock(&lock);
#pragma omp atomic
          ++done;
          omp_unset_lock(&lock);
        }
      }
#pragma omp task shared(lock, done, t) if (0)
      {
        omp_set_lock(&lock);
        omp_event_handle_t event;
#pragma omp task detach(event) shared(t)
        pthread_create(&t, NULL, later, (void*)event);
#pragma omp taskwait
        omp_unset_lock(&lock);
      }
      pthread_join(t, NULL);
    }
  }
  printf("locked for an event: %d\n", done);
}

/* The same where tasks above older ones have ended, and what was theirs is used again: by the task that holds
 * the lock, at the same depth. */
static void locked_among_orphans(void) {
  static int begun, holder = -1, event_is_known, wrong;
  static omp_event_handle_t event;
#pragma omp parallel num_threads(2)
#pragma omp single
  if (omp_get_num_threads() == 2) {
#pragma omp task if (0)
    {
#pragma omp task
      {
#pragma omp task
        if (__atomic_load_n(&holder, __ATOMIC_ACQUIRE) == omp_get_thread_num()) wrong = 1;
#pragma omp task
        { /* the other thread begins with this one, when its maker has ended */
          __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
          while (!__atomic_load_n(&event_is_known, __ATOMIC_ACQUIRE)) sched_yield();
          rest_us(5000);
          omp_fulfill_event(event);
        }
      }
      while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE)) sched_yield();
    }
#pragma omp task if (0)
    {
      __atomic_store_n(&holder, omp_get_thread_num(), __ATOMIC_RELEASE);
      omp_event_handle_t here;
#pragma omp task detach(here)
      {
        event = here;
        __atomic_store_n(&event_is_known, 1, __ATOMIC_RELEASE);
      }
#pragma omp taskwait
      __atomic_store_n(&holder, -1, __ATOMIC_RELEASE);
    }
  }
  printf("locked among orphans: %d wrong\n", wrong);
}

static void loops(void) {
  static int seen[1000];
  long sum = 0;
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskloop grainsize(7)
    for (int i = 0; i < 1000; ++i) ++seen[i];
#pragma omp taskloop num_tasks(13)
    for (int i = 999; i >= 0; --i) ++seen[i];
#pragma omp taskloop
    for (unsigned long long i = 0; i < 1000; ++i) ++seen[i];
#pragma omp taskloop grainsize(strict : 300)
    for (int i = 0; i < 1000; ++i) ++seen[i];
#pragma omp taskloop if (0)
    for (int i = 0; i < 1000; ++i) ++seen[i];
#pragma omp taskloop nogroup
    for (int i = 0; i < 1000; i += 2) {
#pragma omp atomic
      ++seen[i];
    }
#pragma omp taskwait
#pragma omp taskloop collapse(2) reduction(+ : sum)
    for (int i = 0; i < 20; ++i)
      for (int j = 0; j < 30; ++j) sum += i * j;
#pragma omp taskloop simd lastprivate(sum)
    for (int i = 0; i < 10; ++i) sum = 1000000 + i;
  }
  for (int i = 0; i < 1000; ++i) CHECK(seen[i] == (i % 2 == 0 ? 6 : 5));
  printf("taskloops: %ld\n", sum);
}

/* A task goes by the settings that its maker had, whatever that changes later. */
static void asks(int depth, int wanted, int* right) {
#pragma omp atomic
  *right += omp_get_max_threads() == wanted;
  if (depth == 0) return;
#pragma omp task firstprivate(depth, wanted)
  asks(depth - 1, wanted, right); /* may run when all above it have ended */
  omp_set_num_threads(100 + depth);
}
static void settings(void) {
  int right = 0;
  omp_set_num_threads(3);
#pragma omp parallel num_threads(2) shared(right)
#pragma omp single
  for (int i = 2; i < 50; ++i) {
    omp_set_num_threads(i);
#pragma omp task firstprivate(i)
    asks(5, i, &right);
    omp_set_num_threads(1000 + i);
  }
  printf("settings: %d, %d after it\n", right, omp_get_max_threads());
}

static int ended_;
static void* end_later(void* event) {
  rest_us(2000);
  __atomic_store_n(&ended_, 1, __ATOMIC_RELEASE);
  omp_fulfill_event((omp_event_handle_t)event);
  return NULL;
}
static void detached(void) {
  int order = 0;
  pthread_t t;
#pragma omp parallel
#pragma omp single
  {
    omp_event_handle_t event;
    int after = 0;
#pragma omp task detach(event) depend(out : order) shared(t)
    {
      order = 1;
      pthread_create(&t, NULL, end_later, (void*)event);
    }
#pragma omp task depend(in : order) shared(after)
    after = order + __atomic_load_n(&ended_, __ATOMIC_ACQUIRE);
#pragma omp taskwait
    CHECK(after == 2);
    pthread_join(t, NULL);
    omp_event_handle_t early;
#pragma omp task detach(early)
    omp_fulfill_event(early);
  }
  printf("detached\n");
}

/* Others run what one has made that makes no further call: it waits in its own way. */
static void silent(void) {
  int left = 0;
  for (int i = 0; i < 100; ++i) {
#pragma omp parallel
#pragma omp single
    {
      __atomic_store_n(&left, 8, __ATOMIC_RELAXED);
      for (int k = 0; k < 8; ++k) {
#pragma omp task shared(left)
        __atomic_sub_fetch(&left, 1, __ATOMIC_RELEASE);
      }
      while (omp_get_num_threads() > 1 && __atomic_load_n(&left, __ATOMIC_ACQUIRE) != 0) sched_yield();
    }
    CHECK(left == 0);
  }
  printf("silent\n");
}

int main(void) {
  long f = 0, q = 0;
  int wrong = 0;
  static int a[20000], room[20000];
  for (int i = 0; i < 20000; ++i) a[i] = i * 7919 % 20011;
#pragma omp parallel
  {
#pragma omp single
    {
      f = fib(20);
#pragma omp task
      q = queens(8, 0, "");
#pragma omp task
      sort(a, 20000, room);
      tree(1, 0);
    }
#pragma omp single nowait
    tied(7, &wrong);
  }
  const int before = omp_get_max_threads();
  settings();
  omp_set_num_threads(before);
  for (int i = 1; i < 20000; ++i) CHECK(a[i - 1] <= a[i]);
  printf("fib %ld, queens %ld, %ld nodes, tied %d\n", f, q, nodes, wrong);
  factor();
  clauses();
  locked();
  locked_for_an_event();
  locked_among_orphans();
  loops();
  detached();
  silent();
  nodes = 0;
  tree(1, 0); /* outside regions, too */
#pragma omp taskwait
  printf("outside: %ld, %ld nodes\n", fib(15), nodes);
  return 0;
}
