/* A pthread program that does nothing but what threads cost; run plainly and by godwit-pthread (programs.py).
 *   churn create NUMBER LIVE    create and join NUMBER threads, LIVE at a time
 *   churn turns NUMBER          two threads take NUMBER turns, by mutex and condition variable
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long turn, last, ran;

static void* count(void* a) {
  __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
  return a;
}

static void* take_turns(void* which) {
  const long me = (long)which;
  pthread_mutex_lock(&lock);
  while (turn < last) {
    if (turn % 2 == me) {
      ++turn;
      pthread_cond_signal(&changed);
    } else {
      pthread_cond_wait(&changed, &lock);
    }
  }
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void must(int error) {
  if (error == 0) return;
  fprintf(stderr, "churn: a pthread function failed: %s\n", strerror(error));
  exit(1);
}

int main(int argc, char** argv) {
  if (argc == 4 && strcmp(argv[1], "create") == 0) {
    const long number = atol(argv[2]), live = atol(argv[3]);
    pthread_t* const all = malloc((size_t)live * sizeof *all);
    for (long done = 0; done < number; done += live) {
      for (long i = 0; i < live; ++i) must(pthread_create(&all[i], NULL, count, NULL));
      for (long i = 0; i < live; ++i) must(pthread_join(all[i], NULL));
    }
    free(all);
    printf("%ld threads\n", ran);
  } else if (argc == 3 && strcmp(argv[1], "turns") == 0) {
    pthread_t other;
    last = atol(argv[2]);
    must(pthread_create(&other, NULL, take_turns, (void*)1));
    take_turns((void*)0);
    must(pthread_join(other, NULL));
    printf("%ld turns\n", turn);
  } else {
    fprintf(stderr, "usage: %s create NUMBER LIVE | turns NUMBER\n", argv[0]);
    return 2;
  }
  return 0;
}
