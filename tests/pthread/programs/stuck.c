// More threads than workers are in system calls that the drop-in does not see, or spin, while the thread that
// they wait for is ready: stuck stdio | flockfile | spin. Without spare workers each stands still with 1, 2
// and 4 workers.
#include "check.h"
#include <unistd.h>

enum { threads = 6 };

// Each reader waits inside stdio for a line of its writer, which is made last.
enum { rounds = 20 };
static FILE *to[2][threads], *from[2][threads];
static void* answer(void* arg) {
  const int i = (int)(size_t)arg;
  char line[64];
  for (int r = 0; r < rounds; ++r) {
    CHECK(fgets(line, sizeof line, from[0][i]) != NULL);
    CHECK(fprintf(to[1][i], "and %s", line) > 0 && fflush(to[1][i]) == 0);
  }
  return NULL;
}
static void* ask(void* arg) {
  const int i = (int)(size_t)arg;
  char line[64], expected[64];
  for (int r = 0; r < rounds; ++r) {
    CHECK(fprintf(to[0][i], "%d of %d\n", r, i) > 0 && fflush(to[0][i]) == 0);
    CHECK(fgets(line, sizeof line, from[1][i]) != NULL);
    snprintf(expected, sizeof expected, "and %d of %d\n", r, i);
    CHECK(strcmp(line, expected) == 0);
  }
  return NULL;
}
static void stdio_on_pipes(void) {
  pthread_t t[2 * threads];
  for (int side = 0; side < 2; ++side)
    for (int i = 0; i < threads; ++i) {
      int p[2];
      CHECK(pipe(p) == 0);
      CHECK((from[side][i] = fdopen(p[0], "r")) != NULL && (to[side][i] = fdopen(p[1], "w")) != NULL);
    }
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&t[i], NULL, answer, (void*)(size_t)i) == 0);
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&t[threads + i], NULL, ask, (void*)(size_t)i) == 0);
  for (int i = 0; i < 2 * threads; ++i) CHECK(pthread_join(t[i], NULL) == 0);
}

// The holder of a stream sleeps; all others ask for it by functions of the C library, which lock it
// themselves.
static FILE* shared;
static int began;
static void* put(void* arg) {
  __atomic_fetch_add(&began, 1, __ATOMIC_SEQ_CST);
  CHECK(fputc('a' + (int)(size_t)arg, shared) != EOF);
  return NULL;
}
static void stream_lock(void) {
  CHECK((shared = tmpfile()) != NULL);
  for (int r = 0; r < 5; ++r) {
    pthread_t t[threads];
    __atomic_store_n(&began, 0, __ATOMIC_SEQ_CST);
    flockfile(shared);
    for (int i = 0; i < threads; ++i) CHECK(pthread_create(&t[i], NULL, put, (void*)(size_t)i) == 0);
    const struct timespec a_little = {0, 1000000};
    while (__atomic_load_n(&began, __ATOMIC_SEQ_CST) != threads) nanosleep(&a_little, NULL);
    nanosleep(&a_little, NULL);
    CHECK(ftell(shared) == r * threads);
    funlockfile(shared);
    for (int i = 0; i < threads; ++i) CHECK(pthread_join(t[i], NULL) == 0);
  }
  fclose(shared);
}

// Everybody spins until it is his turn: nobody calls anything.
static int turn;
static void* take_turns(void* arg) {
  const int me = (int)(size_t)arg;
  for (int r = 0; r < 3; ++r) {
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != r * threads + me) {
    }
    __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
  }
  return NULL;
}
static void spinning(void) {
  pthread_t t[threads];
  for (int i = threads; i-- > 0;) CHECK(pthread_create(&t[i], NULL, take_turns, (void*)(size_t)i) == 0);
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(t[i], NULL) == 0);
  CHECK(turn == 3 * threads);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  if (strcmp(argv[1], "stdio") == 0)
    stdio_on_pipes();
  else if (strcmp(argv[1], "flockfile") == 0)
    stream_lock();
  else if (strcmp(argv[1], "spin") == 0)
    spinning();
  else
    return 2;
  printf("stuck %s: ok\n", argv[1]);
  return 0;
}
