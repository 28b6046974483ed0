/* Tasks that wait for others. */
#include <pthread.h>

#include "check.h"

enum { N = 24 };

static void chain(void) {
  int value = 0, wrong = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 500; ++i) {
#pragma omp task depend(inout : value) shared(value, wrong) firstprivate(i)
    {
      if (value != i) ++wrong;
      ++value;
    }
  }
  printf("chain: %d, %d wrong\n", value, wrong);
}

static void readers(void) {
  int source = 0, read = 0, wrong = 0;
#pragma omp parallel
#pragma omp single
  for (int round = 1; round <= 30; ++round) {
#pragma omp task depend(out : source) shared(source, read, wrong) firstprivate(round)
    {
      if (read != (round - 1) * 10) ++wrong; /* all readers before have ended */
      source = round;
    }
    for (int i = 0; i < 10; ++i) {
#pragma omp task depend(in : source) shared(source, read, wrong) firstprivate(round)
      {
        if (source != round)
#pragma omp atomic
          ++wrong;
#pragma omp atomic
        ++read;
      }
    }
  }
  printf("readers: %d, %d wrong\n", read, wrong);
}

static void wavefront(void) {
  static int cell[N + 1][N + 1];
#pragma omp parallel
#pragma omp single
  for (int i = 1; i <= N; ++i)
    for (int j = 1; j <= N; ++j) {
#pragma omp task depend(in : cell[i - 1][j], cell[i][j - 1]) depend(out : cell[i][j]) firstprivate(i, j)
      cell[i][j] = (cell[i - 1][j] + cell[i][j - 1] + i * j) % 1013;
    }
  printf("wavefront: %d\n", cell[N][N]);
}

static void waits(void) {
  int a = 0, b = 0, order = 0;
#pragma omp parallel
#pragma omp single
  {
#pragma omp task depend(out : a) shared(a)
    a = 1;
#pragma omp task depend(out : b) shared(b)
    b = 2;
#pragma omp taskwait depend(in : a)
    CHECK(a == 1);
#pragma omp task if (0) depend(in : b) shared(a, b)
    a += b;
    CHECK(a == 3);
    for (int i = 0; i < 100; ++i) {
#pragma omp task depend(mutexinoutset : order) shared(order)
      ++order;
    }
#pragma omp task depend(in : order) shared(order, a)
    a += order;
  }
  printf("waits: %d %d\n", a, order);
}

static void objects(void) {
  int x = 0, seen = 0;
  omp_depend_t out, in;
#pragma omp depobj(out) depend(inout : x)
#pragma omp depobj(in) depend(in : x)
#pragma omp parallel
#pragma omp single
  {
    for (int i = 0; i < 50; ++i) {
#pragma omp task depend(depobj : out) shared(x)
      ++x;
    }
#pragma omp task depend(depobj : in) shared(x, seen)
    seen = x;
#pragma omp depobj(in) update(out)
#pragma omp task depend(depobj : in) shared(x)
    x = -1;
#pragma omp taskwait
  }
#pragma omp depobj(out) destroy
#pragma omp depobj(in) destroy
  printf("objects: %d %d\n", seen, x);
}

/* Dependences are among children of one parent: those of different parents do not wait. */
static void parents(void) {
  static int x[40];
  int wrong = 0;
#pragma omp parallel
#pragma omp single
  for (int p = 0; p < 40; ++p) {
#pragma omp task firstprivate(p) shared(wrong)
    for (int i = 0; i < 25; ++i) {
#pragma omp task firstprivate(p, i) shared(wrong) depend(inout : x[p])
      {
        if (x[p] != i)
#pragma omp atomic
          ++wrong;
        ++x[p];
      }
    }
  }
  int sum = 0;
  for (int p = 0; p < 40; ++p) sum += x[p];
  printf("parents: %d, %d wrong\n", sum, wrong);
}

/* Tasks that wait for an event run in their team, whoever fulfils it. */
static omp_event_handle_t event_;
static int known;
static void* fulfil(void* p) {
  while (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) rest_us(100);
  rest_us(5000);
  omp_fulfill_event(event_);
  return p;
}
static void event_from_elsewhere(void) {
  int order = 0, stranger = 0, in_team = 0;
  pthread_t t;
  pthread_create(&t, NULL, fulfil, NULL);
#pragma omp parallel num_threads(4)
#pragma omp single
  {
    omp_event_handle_t event;
#pragma omp task detach(event) depend(out : order)
    {
      event_ = event;
      __atomic_store_n(&known, 1, __ATOMIC_RELEASE);
    }
    for (int i = 0; i < 20; ++i) {
#pragma omp task depend(in : order) shared(t, in_team, stranger)
      {
#pragma omp atomic
        in_team += omp_get_num_threads() == 4;
#pragma omp atomic
        stranger += pthread_equal(pthread_self(), t) != 0;
      }
    }
  }
  pthread_join(t, NULL);
  printf("event from elsewhere: %d in the team, %d not\n", in_team, stranger);
}

/* Who fulfils an event may hold a lock: what waited for that does not begin inside of the call, whether there
 * is one thread, or no room for more tasks, nor in a wait of the one that holds it. */
static void event_under_a_lock(int threads) {
  static int begun, holder, wrong, done;
  holder = -1;
  begun = wrong = done = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
  {
    int order = 0;
    omp_event_handle_t first = 0, second = 0;
#pragma omp task detach(first) depend(out : order)
    __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 400; ++i) {
#pragma omp task depend(in : order)
      {
        if (__atomic_load_n(&holder, __ATOMIC_ACQUIRE) == omp_get_thread_num()) wrong = 1;
#pragma omp atomic
        ++done;
      }
    }
#pragma omp task if (0) shared(first)
    {
      while (threads > 1 && !__atomic_load_n(&begun, __ATOMIC_ACQUIRE)) rest_us(100);
      rest_us(2000); /* its function has returned */
      __atomic_store_n(&holder, omp_get_thread_num(), __ATOMIC_RELEASE);
      omp_fulfill_event(first);
#pragma omp task detach(second)
      omp_fulfill_event(second);
#pragma omp taskwait
      __atomic_store_n(&holder, -1, __ATOMIC_RELEASE);
    }
  }
  printf("event under a lock: %d done, %d wrong\n", done, wrong);
}

/* Each begins when the one before has ended, but not inside of its end: there is no stack for so many. */
static void long_chain(int threads) {
  int x = 0, n = 0;
  omp_event_handle_t event = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
  {
#pragma omp task detach(event) depend(out : x)
    rest_us(1);
    for (int i = 0; i < 300000; ++i) {
#pragma omp task depend(inout : x) shared(n)
      ++n;
    }
    omp_fulfill_event(event);
  }
  printf("a long chain: %d\n", n);
}

int main(void) {
  chain();
  readers();
  wavefront();
  waits();
  objects();
  parents();
  event_from_elsewhere();
  event_under_a_lock(1);
  event_under_a_lock(2);
  long_chain(1);
  long_chain(2);
  return 0;
}
