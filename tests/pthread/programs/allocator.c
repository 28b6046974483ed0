// A program that brings its own allocator, which locks: it is called before anything else has begun, and from
// inside the C library.
#include "check.h"

#include <stdint.h>

static char memory[64 << 20];
static size_t used;
static int ready, in_use;
static pthread_mutex_t lock;

static void* take(size_t bytes) {
  if (!ready) {
    if (pthread_mutex_init(&lock, NULL) != 0) abort();
    ready = 1;
  }
  pthread_mutex_lock(&lock);
  const size_t at = (used + 31) & ~(size_t)15;
  const size_t all = (bytes + 15) & ~(size_t)15;
  void* p = NULL;
  if (all >= bytes && all < sizeof memory - at) {
    p = memory + at;
    used = at + all;
    ((size_t*)p)[-1] = bytes;
    ++in_use;
  }
  pthread_mutex_unlock(&lock);
  return p;
}
void* malloc(size_t bytes) { return take(bytes); }
void free(void* p) {
  if (p == NULL) return;
  pthread_mutex_lock(&lock);
  --in_use;
  pthread_mutex_unlock(&lock);
}
void* calloc(size_t n, size_t each) {
  char* p = take(n * each);  // not malloc: the compiler would make that, with the loop, a call of calloc
  if (p != NULL) memset(p, 0, n * each);
  return p;
}
void* realloc(void* old, size_t bytes) {
  void* p = take(bytes);
  if (p == NULL || old == NULL) return p;
  const size_t before = ((size_t*)old)[-1];
  memcpy(p, old, before < bytes ? before : bytes);
  free(old);
  return p;
}
void* memalign(size_t align, size_t bytes) {
  char* p = take(bytes + align + 16);
  if (p == NULL) return NULL;
  char* q = (char*)(((uintptr_t)p + 16 + align - 1) & ~(uintptr_t)(align - 1));
  ((size_t*)q)[-1] = bytes;
  return q;
}
void* aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }
int posix_memalign(void** out, size_t align, size_t bytes) {
  return (*out = memalign(align, bytes)) == NULL ? ENOMEM : 0;
}

static void* allocates(void* arg) {
  uintptr_t sum = 0;
  for (int i = 1; i <= 1000; ++i) {
    char* p = malloc((size_t)i);
    memset(p, i, (size_t)i);
    p = realloc(p, (size_t)i + 10);
    for (int k = 0; k < i; ++k) sum += p[k] == (char)i;
    free(p);
  }
  (void)arg;
  return (void*)sum;
}

int main(void) {
  pthread_t t[6];
  for (int i = 0; i < 6; ++i) CHECK(pthread_create(&t[i], NULL, allocates, NULL) == 0);
  for (int i = 0; i < 6; ++i) {
    void* sum;
    CHECK(pthread_join(t[i], &sum) == 0 && (uintptr_t)sum == 1000 * 1001 / 2);
  }
  puts("an allocator that locks");
  return 0;
}
