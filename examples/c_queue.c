/* Threads, a mutex and condition variables from C: a queue of bounded length between a producer and many
 * consumers.
 *
 *   example_c_queue --godwit-workers=4
 *
 * A thread that waits is suspended; its worker runs others meanwhile. docs/c-api.md */
#include <godwit.h>
#include <stdio.h>

enum { room = 8, consumers = 50, each = 200 };

static struct {
  gw_mutex* lock;
  gw_cond* changed;
  long values[room];
  unsigned put, taken; /* so many so far */
} queue;

static void put(long value) {
  gw_mutex_lock(queue.lock);
  while (queue.put - queue.taken == room) gw_cond_wait(queue.changed, queue.lock);
  queue.values[queue.put++ % room] = value;
  gw_cond_broadcast(queue.changed);
  gw_mutex_unlock(queue.lock);
}

static long take(void) {
  long value;
  gw_mutex_lock(queue.lock);
  while (queue.put == queue.taken) gw_cond_wait(queue.changed, queue.lock);
  value = queue.values[queue.taken++ % room];
  gw_cond_broadcast(queue.changed);
  gw_mutex_unlock(queue.lock);
  return value;
}

static void* consume(void* arg) {
  long* sum = arg; /* its own: nobody else writes there */
  for (int i = 0; i < each; ++i) *sum += take();
  return sum;
}

static int root(void* arg) {
  gw_thread* threads[consumers];
  long sums[consumers] = {0}, all = 0;
  int error = gw_mutex_create(&queue.lock);
  if (error == GW_OK) error = gw_cond_create(&queue.changed);
  for (int i = 0; i < consumers && error == GW_OK; ++i) error = gw_spawn(&threads[i], consume, &sums[i]);
  if (error != GW_OK) {
    fprintf(stderr, "c_queue: %s\n", gw_error_string(error));
    return 1;
  }
  for (long i = 1; i <= consumers * each; ++i) put(i);
  for (int i = 0; i < consumers; ++i) {
    void* sum;
    gw_join(threads[i], &sum);
    all += *(long*)sum;
  }
  gw_cond_destroy(queue.changed);
  gw_mutex_destroy(queue.lock);
  printf("%d consumers took %d values, their sum is %ld\n", consumers, consumers * each, all);
  (void)arg;
  return 0;
}

int main(int argc, char** argv) { return gw_run(argc, argv, root, NULL); }
