/* What is not done says so: the argument names it. */
#include <string.h>

#include "check.h"

/* The event of a cancelled task does not end the task that has its memory now. Gives back how many did. */
static int fulfil_late(void) {
  enum { count = 40 };
  omp_event_handle_t old[count] = {0}, event;
  int first = 0, at[count], early = 0, may_end = 0;
#pragma omp taskgroup
  {
#pragma omp task depend(out : first)
    {
      rest_us(5000); /* the others have been made, and wait for this one */
#pragma omp cancel taskgroup
    }
    for (int k = 0; k < count; ++k) {
      event = (omp_event_handle_t)0;
#pragma omp task depend(in : first) detach(event)
      {}
      old[k] = event;
    }
  }
#pragma omp taskgroup
  for (int k = 0; k < 2 * count; ++k) {
#pragma omp task depend(out : at[k / 2]) detach(event)
    {}
#pragma omp task depend(in : at[k / 2]) shared(early, may_end)
    {
      int now;
#pragma omp atomic read
      now = may_end;
#pragma omp atomic
      early += now <= k;
    }
    for (int i = 0; i < count; ++i)
      if (old[i] != 0) omp_fulfill_event(old[i]);
    rest_us(100);
#pragma omp atomic write
    may_end = k + 1;
    omp_fulfill_event(event);
  }
  return early;
}

/* `ordered` of a region that the thread whose turn is first has left: libgomp waits for ever. */
static int order_without_first(void) {
  int inside = 0, alone = 1;
#pragma omp parallel num_threads(4) shared(inside, alone)
  {
    if (omp_get_thread_num() == 0) {
#pragma omp cancel parallel
    }
#pragma omp for ordered schedule(static, 1) nowait
    for (int i = 0; i < 40; ++i) {
#pragma omp ordered
      {
        if (++inside != 1) alone = 0;
        --inside;
      }
    }
#pragma omp for ordered(1) schedule(static, 1) nowait
    for (int i = 0; i < 40; ++i) {
#pragma omp ordered depend(sink : i - 1)
#pragma omp ordered depend(source)
    }
  }
  return alone;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  int x = 0;
  if (strcmp(what, "target") == 0) {
#pragma omp target map(tofrom : x)
    x = 1;
  } else if (strcmp(what, "affinity") == 0) {
    omp_display_affinity("%n");
  } else if (strcmp(what, "nested") == 0) {
    int there = 0;
#pragma omp parallel num_threads(4) reduction(+ : x)
#pragma omp parallel num_threads(4) reduction(+ : x)
    {
      x += 1;
#pragma omp master
      {
#pragma omp atomic
        ++there;
        for (int now = 0; now < 4;) { /* until all of them are there */
          rest_us(100);
#pragma omp atomic read
          now = there;
        }
      }
    }
  } else if (strcmp(what, "late") == 0) {
#pragma omp parallel num_threads(2)
#pragma omp single
    x = fulfil_late();
  } else if (strcmp(what, "ordered") == 0) {
    x = order_without_first();
  } else {
#pragma omp parallel
#pragma omp single
    x = omp_get_num_threads();
  }
  printf("%d\n", x);
  return 0;
}
