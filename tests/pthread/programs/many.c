// many COUNT: so many threads begin, wait for each other, and go on. many until: as many as there can be:
// then pthread_create says EAGAIN, and when they have ended there is room for as many again, each time.
#include "check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long waiting;
static int go;

static void* wait_for_all(void* arg) {
  pthread_mutex_lock(&lock);
  if (++waiting == *(long*)arg) pthread_cond_broadcast(&changed);
  while (!go) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return NULL;
}

// Make up to `most`, let all that were made begin, and end them. Gives back how many.
static long all_begin(pthread_t* t, long most, int may_fail) {
  static long wanted;
  waiting = go = 0;
  wanted = most;
  long n = 0;
  for (int error = 0; n < most && error == 0; n += error == 0) {
    error = pthread_create(&t[n], NULL, wait_for_all, &wanted);
    CHECK(error == 0 || (may_fail && error == EAGAIN));
  }
  pthread_mutex_lock(&lock);
  wanted = n;
  while (waiting != n) pthread_cond_wait(&changed, &lock);
  go = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  for (long i = 0; i < n; ++i) CHECK(pthread_join(t[i], NULL) == 0);
  return n;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  enum { most = 100000 };
  pthread_t* t = malloc(most * sizeof *t);
  CHECK(t != NULL);
  if (strcmp(argv[1], "until") == 0) {
    const long n = all_begin(t, most, 1);
    CHECK(n > 0 && n < most);
    for (int i = 0; i < 20; ++i) CHECK(all_begin(t, n, 0) == n);
    printf("many: there was an end, and room again\n");
  } else {
    const long n = strtol(argv[1], NULL, 10);
    CHECK(all_begin(t, n, 0) == n);
    printf("many: %ld\n", n);
  }
  return 0;
}
