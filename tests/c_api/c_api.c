/* The C interface, compiled as C99: threads, mutex, condition variable, sleep, errors. Says "all right"
 * and gives back 7. */
#include <godwit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x)                                              \
  do {                                                        \
    if (!(x)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
      exit(1);                                                \
    }                                                         \
  } while (0)

static gw_mutex* mutex;
static gw_cond* cond;
static long count;
static int detached;

static void* add(void* arg) {
  int i;
  for (i = 0; i < 100; ++i) {
    CHECK(gw_mutex_lock(mutex) == GW_OK);
    ++count;
    if (i % 10 == 0) gw_yield();
    CHECK(gw_mutex_unlock(mutex) == GW_OK);
  }
  return arg;
}

static void* announce(void* arg) {
  (void)arg;
  CHECK(gw_sleep_ns(1000000) == GW_OK);
  gw_mutex_lock(mutex);
  detached = 1;
  gw_cond_broadcast(cond);
  gw_cond_signal(cond);
  gw_mutex_unlock(mutex);
  return 0;
}

static int root(void* arg) {
  gw_thread* t[50];
  void* result;
  int i;
  CHECK(strcmp((const char*)arg, "root") == 0);
  CHECK(gw_worker_count() >= 1 && gw_worker_id() < gw_worker_count());
  CHECK(gw_mutex_create(&mutex) == GW_OK && gw_cond_create(&cond) == GW_OK);
  for (i = 0; i < 50; ++i) CHECK(gw_spawn(&t[i], add, &t[i]) == GW_OK);
  for (i = 0; i < 50; ++i) {
    CHECK(gw_join(t[i], &result) == GW_OK);
    CHECK(result == &t[i]);
  }
  CHECK(count == 5000);
  CHECK(gw_mutex_trylock(mutex) == GW_OK);
  CHECK(gw_mutex_trylock(mutex) == GW_E_BUSY);
  CHECK(gw_cond_timedwait(cond, mutex, 1000000) == GW_E_TIMED_OUT);
  CHECK(gw_spawn(&t[0], announce, 0) == GW_OK);
  CHECK(gw_detach(t[0]) == GW_OK);
  while (!detached) CHECK(gw_cond_wait(cond, mutex) == GW_OK);
  detached = 0;
  CHECK(gw_spawn(&t[0], announce, 0) == GW_OK);
  CHECK(gw_detach(t[0]) == GW_OK);
  while (!detached) CHECK(gw_cond_timedwait(cond, mutex, UINT64_MAX) == GW_OK);
  CHECK(gw_mutex_unlock(mutex) == GW_OK);
  CHECK(gw_spawn(0, add, 0) == GW_E_INVALID);
  gw_cond_destroy(cond);
  gw_mutex_destroy(mutex);
  return 7;
}

int main(int argc, char** argv) {
  char text[] = "root";
  gw_thread* none;
  CHECK(gw_spawn(&none, add, 0) == GW_E_INVALID);
  CHECK(gw_worker_count() == 0);
  CHECK(strcmp(gw_error_string(GW_OK), "no error") == 0);
  CHECK(gw_run(argc, argv, root, text) == 7);
  puts("all right");
  return 0;
}
