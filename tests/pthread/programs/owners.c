// Locks shared between processes, each a program of its own: a thread of the other process is not their
// owner, whatever its number.
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct shared {
  pthread_mutex_t mutex[3];
  pthread_rwlock_t rwlock;
  int waits;
} * s;

static void* locks_all(void* argument) {
  for (int i = 0; i < 3; ++i) CHECK(pthread_mutex_lock(&s->mutex[i]) == 0);
  CHECK(pthread_rwlock_wrlock(&s->rwlock) == 0);
  // While it holds them, the other process tries.
  char number[16];
  snprintf(number, sizeof number, "%d", *(int*)argument);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "owners", number, (char*)NULL);
    _exit(127);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  for (int i = 0; i < 3; ++i)
    CHECK(pthread_mutex_unlock(&s->mutex[i]) == 0 && (i == 2 || pthread_mutex_unlock(&s->mutex[i]) == EPERM));
  CHECK(pthread_rwlock_unlock(&s->rwlock) == 0);
  return NULL;
}
// A program that runs without godwit-pthread waits for the ordinary mutex.
static void gives_to_a_plain_program(const char* memory) {
  CHECK(pthread_mutex_lock(&s->mutex[2]) == 0);
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("LD_PRELOAD");
    alarm(20);
    execl("/proc/self/exe", "owners", memory, "waits", (char*)NULL);
    _exit(127);
  }
  while (__atomic_load_n(&s->waits, __ATOMIC_SEQ_CST) == 0) usleep(1000);
  usleep(50000);
  int status = 0;
  CHECK(pthread_mutex_unlock(&s->mutex[2]) == 0 && waitpid(child, &status, 0) == child && status == 0);
}
static void* locks_none(void* argument) {
  struct timespec soon;
  for (int i = 0; i < 3; ++i) {
    CHECK(pthread_mutex_trylock(&s->mutex[i]) == EBUSY);
    soon = after_ms(20);
    CHECK(pthread_mutex_timedlock(&s->mutex[i], &soon) == ETIMEDOUT);
    if (i != 2) CHECK(pthread_mutex_unlock(&s->mutex[i]) == EPERM);
  }
  soon = after_ms(20);
  CHECK(pthread_rwlock_timedwrlock(&s->rwlock, &soon) == ETIMEDOUT);
  soon = after_ms(20);
  CHECK(pthread_rwlock_timedrdlock(&s->rwlock, &soon) == ETIMEDOUT);
  return argument;
}

int main(int count, char** arguments) {
  int memory = count > 1 ? atoi(arguments[1]) : memfd_create("locks", 0);
  CHECK(memory >= 0 && (count > 1 || ftruncate(memory, sizeof *s) == 0));
  s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  CHECK(s != MAP_FAILED);
  if (count == 1) {
    const int types[] = {PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_NORMAL};
    pthread_mutexattr_t a;
    pthread_rwlockattr_t ra;
    CHECK(pthread_mutexattr_init(&a) == 0 && pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED) == 0);
    for (int i = 0; i < 3; ++i)
      CHECK(pthread_mutexattr_settype(&a, types[i]) == 0 && pthread_mutex_init(&s->mutex[i], &a) == 0);
    CHECK(pthread_rwlockattr_init(&ra) == 0 &&
          pthread_rwlockattr_setpshared(&ra, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_rwlock_init(&s->rwlock, &ra) == 0);
  }
  if (count == 3) {
    __atomic_store_n(&s->waits, 1, __ATOMIC_SEQ_CST);
    CHECK(pthread_mutex_lock(&s->mutex[2]) == 0 && pthread_mutex_unlock(&s->mutex[2]) == 0);
    return 0;
  }
  // The first thread of each.
  pthread_t t;
  CHECK(pthread_create(&t, NULL, count == 1 ? locks_all : locks_none, &memory) == 0 &&
        pthread_join(t, NULL) == 0);
  if (count == 1) {
    char number[16];
    snprintf(number, sizeof number, "%d", memory);
    gives_to_a_plain_program(number);
    puts("owners in two processes");
  }
  return 0;
}
