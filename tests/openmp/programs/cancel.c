/* Cancellation; needs OMP_CANCELLATION=true. */
#include <sched.h>
#include <sys/resource.h>

#include "check.h"

static long most_kilobytes(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

int main(void) {
  CHECK(omp_get_cancellation());
  int after = 0, begun = 0;
#pragma omp parallel num_threads(4) shared(after)
  {
#pragma omp task
    {}
    if (omp_get_thread_num() == 1) {
#pragma omp cancel parallel
    }
#pragma omp barrier
#pragma omp atomic
    ++after;
  }
  CHECK(after == 0);

  long ran = 0;
#pragma omp parallel num_threads(4)
  {
#pragma omp for schedule(dynamic) reduction(+ : ran)
    for (int i = 0; i < 1000000; ++i) {
      ++ran;
      if (i == 100) {
#pragma omp cancel for
      }
#pragma omp cancellation point for
    }
#pragma omp for schedule(static) reduction(+ : ran)
    for (int i = 0; i < 100; ++i) ran += 10000000; /* not cancelled any more */
  }
  CHECK(ran >= 1000000000 && ran < 1001000000);

  int other = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp sections
    {
#pragma omp section
      {
#pragma omp cancel sections
      }
#pragma omp section
      {
#pragma omp cancellation point sections
#pragma omp atomic
        ++other;
      }
    }
#pragma omp barrier
  }
  CHECK(other <= 1);

#pragma omp parallel num_threads(3)
#pragma omp single
  {
#pragma omp taskgroup
    {
      for (int i = 0; i < 1000; ++i) {
#pragma omp task shared(begun)
        {
#pragma omp atomic
          ++begun;
          if (begun > 10) {
#pragma omp cancel taskgroup
          }
        }
      }
    }
#pragma omp taskgroup
    {
#pragma omp task shared(begun)
#pragma omp atomic
      begun += 10000;
    }
  }
  CHECK(begun >= 10010 && begun < 11000);
  int first = 0, discarded = 50;
#pragma omp parallel num_threads(3)
#pragma omp single
#pragma omp taskgroup
  {
#pragma omp task depend(out : first)
    {
      rest_us(1000); /* the others have been made, and wait for this one */
#pragma omp cancel taskgroup
    }
    for (int i = 0; i < 50; ++i) {
#pragma omp task depend(in : first) shared(discarded)
#pragma omp atomic
      --discarded;
    }
  }
  CHECK(discarded == 50);

  for (int round = 0; round < 200; ++round) {
    int passed = 0;
#pragma omp parallel num_threads(4) shared(passed)
    {
      for (int i = 0; i < 20; ++i) {
        if (omp_get_thread_num() == round % 4 && i == round % 20) {
#pragma omp cancel parallel
        }
#pragma omp barrier
#pragma omp atomic
        ++passed;
      }
    }
    CHECK(passed <= 4 * (round % 20));
  }

  /* Who has not seen that the region is cancelled goes through as many loops as it likes. */
  int loops = 0;
#pragma omp parallel num_threads(2) shared(loops)
  {
    if (omp_get_thread_num() == 0) {
#pragma omp cancel parallel
    }
    for (int k = 0; k < 40; ++k) {
#pragma omp for schedule(dynamic) nowait
      for (int i = 0; i < 4; ++i)
#pragma omp atomic
        ++loops;
    }
  }
  CHECK(loops <= 160);

  /* A cancelled task ends though nobody fulfils its event. */
  int called = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskgroup
  {
#pragma omp task if (0) shared(called)
    {
      for (int k = 0; k < 100; ++k) {
        omp_event_handle_t event;
#pragma omp task detach(event) shared(called)
        {
#pragma omp atomic
          ++called;
          omp_fulfill_event(event);
        }
      }
#pragma omp cancel taskgroup
    }
  }
  CHECK(called <= 100);

  /* And leaves no memory behind: 200,000 of them would be 40 MB. */
  const long kilobytes = most_kilobytes();
#pragma omp parallel num_threads(2)
#pragma omp single
  for (int round = 0; round < 2000; ++round) {
#pragma omp taskgroup
    {
      for (int k = 0; k < 100; ++k) {
        omp_event_handle_t event;
#pragma omp task detach(event)
        omp_fulfill_event(event);
      }
#pragma omp task if (0)
      {
#pragma omp cancel taskgroup
      }
    }
  }
  CHECK(most_kilobytes() - kilobytes < 20000);

  /* Loops that end only by being cancelled, one after the other. */
  int lost = 0;
#pragma omp parallel num_threads(4) reduction(+ : lost)
  for (int round = 0; round < 8000; ++round) {
#pragma omp for schedule(static)
    for (int i = 0; i < 4; ++i) {
      const double since = omp_get_wtime();
      if (i == 0) {
#pragma omp cancel for
      }
      while (omp_get_wtime() - since < 20) {
#pragma omp cancellation point for
        sched_yield();
      }
      ++lost;
    }
  }
  CHECK(lost == 0);
  printf("cancelled\n");
  return 0;
}
