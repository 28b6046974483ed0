// Message queues: threads that wait for room, for messages, with limits of time, interrupted by signals and
// cancelled.
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"

static mqd_t queue;
static int handled;

static void handler(int signal) {
  (void)signal;
  __atomic_store_n(&handled, 1, __ATOMIC_SEQ_CST);
}
static void* sends(void* arg) {
  const char who = (char)('a' + (int)(size_t)arg);
  for (int i = 0; i < 200; ++i) CHECK(mq_send(queue, &who, 1, 0) == 0);
  return NULL;
}
static void* receives(void* arg) {
  size_t sum = 0;
  for (int i = 0; i < 200; ++i) {
    char c;
    unsigned priority = 9;
    CHECK(mq_receive(queue, &c, 1, &priority) == 1 && priority == 0);
    sum += (size_t)c;
  }
  (void)arg;
  return (void*)sum;
}
static void* waits(void* arg) {
  char c;
  (void)arg;
  CHECK(mq_receive(queue, &c, 1, NULL) == -1 && errno == EINTR);
  while (mq_receive(queue, &c, 1, NULL) == -1 && errno == EINTR) {  // until it is cancelled
  }
  return NULL;
}

int main(void) {
  struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 1};
  char name[64];
  snprintf(name, sizeof name, "/godwit_queues_%d", (int)getpid());
  queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
  if (queue == (mqd_t)-1) {
    puts("no message queues here");
    return 0;
  }
  CHECK(mq_unlink(name) == 0);
  pthread_t s[6], r[6];
  for (int i = 0; i < 6; ++i) CHECK(pthread_create(&r[i], NULL, receives, NULL) == 0);
  for (int i = 0; i < 6; ++i) CHECK(pthread_create(&s[i], NULL, sends, (void*)(size_t)i) == 0);
  size_t sum = 0;
  for (int i = 0; i < 6; ++i) {
    void* one;
    CHECK(pthread_join(s[i], NULL) == 0 && pthread_join(r[i], &one) == 0);
    sum += (size_t)one;
  }
  CHECK(sum == 200 * (6 * 'a' + 15));

  char c;
  struct timespec soon = after_ms(20), wrong = {0, -1};
  CHECK(mq_timedreceive(queue, &c, 1, NULL, &soon) == -1 && errno == ETIMEDOUT);
  CHECK(mq_timedreceive(queue, &c, 1, NULL, &wrong) == -1 && errno == EINVAL);
  CHECK(mq_timedsend(queue, "x", 1, 0, &wrong) == -1 && errno == EINVAL);
  for (int i = 0; i < 4; ++i) CHECK(mq_timedsend(queue, "x", 1, (unsigned)i, &soon) == 0);
  CHECK(mq_timedsend(queue, "x", 1, 0, &soon) == -1 && errno == ETIMEDOUT);
  CHECK(mq_timedsend(queue, "xy", 2, 0, &soon) == -1 && errno == EMSGSIZE);
  for (int i = 0; i < 4; ++i) {
    unsigned priority;
    CHECK(mq_receive(queue, &c, 1, &priority) == 1 && priority == (unsigned)(3 - i));
  }

  struct sigaction a = {.sa_handler = handler};
  CHECK(sigaction(SIGUSR1, &a, NULL) == 0);
  pthread_t t;
  CHECK(pthread_create(&t, NULL, waits, NULL) == 0);
  // Again: it may not have come to its wait when the first arrives.
  const struct timespec moment = {0, 5000000};
  struct mq_attr now;
  for (int i = 0; i < 20; ++i) {
    CHECK(pthread_kill(t, SIGUSR1) == 0);
    nanosleep(&moment, NULL);
  }
  CHECK(mq_getattr(queue, &now) == 0 && now.mq_curmsgs == 0);
  CHECK(pthread_cancel(t) == 0);
  void* result;
  CHECK(pthread_join(t, &result) == 0 && result == PTHREAD_CANCELED && handled);
  puts("message queues");
  return mq_close(queue);
}
