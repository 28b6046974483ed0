// Create, join, detach, exit, names, attributes, thread-local variables, specific values.
#define _GNU_SOURCE
#include "check.h"
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

static __thread int mine = 7;
static __thread char big[3000];
static pthread_key_t key, late;
static int destroyed;

static void* count(void* a) {
  mine += (int)(long)a;
  big[2999] = (char)mine;
  errno = mine;
  for (int i = 0; i < 5; i++) {
    sched_yield();
    CHECK(errno == mine && big[2999] == (char)mine);
  }
  return (void*)(long)mine;
}
static void* by_exit(void* a) {
  pthread_exit(a);
  return NULL;
}
static void destroy(void* p) {
  __atomic_add_fetch(&destroyed, *(int*)p, __ATOMIC_SEQ_CST);
  free(p);
}
static void destroy_and_set_again(void* p) {
  static int rounds;
  if (rounds++ < 2) pthread_setspecific(late, p);
}
static void* with_values(void* a) {
  CHECK(pthread_getspecific(key) == NULL);
  int* p = malloc(sizeof *p);
  *p = (int)(long)a;
  CHECK(pthread_setspecific(key, p) == 0);
  sched_yield();
  CHECK(pthread_getspecific(key) == p);
  return NULL;
}
static void* with_late_value(void* a) {
  pthread_setspecific(late, a);
  return NULL;
}
static void* set_flag(void* a) {
  usleep(2000);
  __atomic_store_n((int*)a, 1, __ATOMIC_SEQ_CST);
  return NULL;
}
static sem_t go;
static void* set_flag_when_told(void* a) {
  while (sem_wait(&go) != 0) CHECK(errno == EINTR);
  return set_flag(a);
}
static void* own_name(void* a) {
  (void)a;
  char name[16];
  CHECK(pthread_setname_np(pthread_self(), "fifteen-letters") == 0);
  CHECK(pthread_getname_np(pthread_self(), name, sizeof name) == 0 && strcmp(name, "fifteen-letters") == 0);
  CHECK(pthread_setname_np(pthread_self(), "sixteen-letters!") == ERANGE);
  return NULL;
}
static void* own_stack(void* a) {
  (void)a;
  pthread_attr_t attr;
  CHECK(pthread_getattr_np(pthread_self(), &attr) == 0);
  void* low;
  size_t bytes;
  pthread_attr_getstack(&attr, &low, &bytes);
  CHECK((char*)low < (char*)&low && (char*)&low < (char*)low + bytes);
  pthread_attr_destroy(&attr);
  char deep[512 * 1024];
  memset(deep, 1, sizeof deep);
  return (void*)(long)deep[4711];
}
static void* join_other(void* a) {
  void* r;
  CHECK(pthread_join(*(pthread_t*)a, &r) == 0);
  return r;
}
static void* forever(void* a) {
  for (;;) pause();
  return a;
}

int main(void) {
  enum { n = 200 };
  pthread_t t[n];
  long sum = 0;
  for (int round = 0; round < 5; round++) {
    for (long i = 0; i < n; i++) CHECK(pthread_create(&t[i], NULL, count, (void*)i) == 0);
    for (int i = 0; i < n; i++) {
      void* r;
      CHECK(pthread_join(t[i], &r) == 0);
      sum += (long)r;
    }
  }
  printf("sum %ld, mine %d\n", sum, mine);

  void* r;
  CHECK(pthread_create(&t[0], NULL, by_exit, (void*)42) == 0);
  CHECK(pthread_join(t[0], &r) == 0 && r == (void*)42);
  CHECK(pthread_join(pthread_self(), &r) == EDEADLK);
  CHECK(pthread_equal(pthread_self(), pthread_self()) && !pthread_equal(pthread_self(), 0));

  CHECK(pthread_key_create(&key, destroy) == 0 && pthread_key_create(&late, destroy_and_set_again) == 0);
  for (long i = 0; i < 100; i++) CHECK(pthread_create(&t[i], NULL, with_values, (void*)i) == 0);
  for (int i = 0; i < 100; i++) pthread_join(t[i], NULL);
  printf("destroyed %d\n", destroyed);
  pthread_create(&t[0], NULL, with_late_value, &key);
  pthread_join(t[0], NULL);
  CHECK(pthread_key_delete(key) == 0 && pthread_key_delete(key) == EINVAL);
  pthread_key_t many[900];
  for (int i = 0; i < 900; i++) {
    CHECK(pthread_key_create(&many[i], NULL) == 0);
    CHECK(pthread_getspecific(many[i]) == NULL && pthread_setspecific(many[i], &many[i]) == 0);
  }
  for (int i = 0; i < 900; i++) CHECK(pthread_getspecific(many[i]) == &many[i]);

  int done = 0;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  CHECK(pthread_create(&t[0], &attr, set_flag, &done) == 0);
  while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) sched_yield();
  done = 0;
  sem_init(&go, 0, 0);
  CHECK(pthread_create(&t[0], NULL, set_flag_when_told, &done) == 0);
  CHECK(pthread_tryjoin_np(t[0], NULL) == EBUSY);
  CHECK(pthread_detach(t[0]) == 0 && pthread_join(t[0], NULL) == EINVAL);
  sem_post(&go);
  while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) sched_yield();

  pthread_create(&t[0], NULL, set_flag, &done);
  struct timespec at = after_ms(60000);
  CHECK(pthread_timedjoin_np(t[0], NULL, &at) == 0);
  pthread_create(&t[0], NULL, forever, NULL);
  at = after_ms(5);
  CHECK(pthread_timedjoin_np(t[0], NULL, &at) == ETIMEDOUT);

  pthread_create(&t[1], NULL, own_name, NULL);
  pthread_join(t[1], NULL);
  pthread_create(&t[1], NULL, own_stack, NULL);
  pthread_join(t[1], &r);
  printf("deep %ld\n", (long)r);
  own_stack(NULL);

  pthread_create(&t[1], NULL, by_exit, (void*)43);
  pthread_create(&t[2], NULL, join_other, &t[1]);
  CHECK(pthread_join(t[2], &r) == 0);
  printf("joined by another: %ld\n", (long)r);
  CHECK(getpid() == gettid());
  puts("done");
  return 17;
}
