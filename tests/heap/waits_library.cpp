// A library that waits_test loads while it runs.
#include <pthread.h>
#include <unistd.h>

extern "C" void waits_library_add(pthread_mutex_t* m, long* n);

/// Long enough that others come meanwhile.
extern "C" void waits_library_add(pthread_mutex_t* m, long* n) {
  pthread_mutex_lock(m);
  const long before = *n;
  usleep(50);
  *n = before + 1;
  pthread_mutex_unlock(m);
}
