// A server with a thread per connection and clients, over TCP on 127.0.0.1 and over pipes: read, write, send,
// recv, accept, connect, poll, select.
#define _GNU_SOURCE
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

enum { clients = 60, messages = 30 };
static int listening;
static struct sockaddr_in address;
static long received;

static void* serve(void* a) {
  int fd = (int)(long)a;
  char b[200];
  ssize_t n;
  while ((n = read(fd, b, sizeof b)) > 0) {
    for (ssize_t i = 0; i < n; i++) b[i] ^= 0x20;
    CHECK(send(fd, b, (size_t)n, 0) == n);
  }
  close(fd);
  return NULL;
}
static void* accept_all(void* a) {
  for (int i = 0; i < clients; i++) {
    int fd = accept(listening, NULL, NULL);
    CHECK(fd >= 0);
    pthread_t t;
    CHECK(pthread_create(&t, NULL, serve, (void*)(long)fd) == 0);
    pthread_detach(t);
  }
  return a;
}
static void* talk(void* a) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(fd >= 0 && connect(fd, (struct sockaddr*)&address, sizeof address) == 0);
  for (int i = 0; i < messages; i++) {
    char b[64], r[64];
    int n = snprintf(b, sizeof b, "Message%ldx%d", (long)a, i);
    CHECK(write(fd, b, (size_t)n) == n);
    struct pollfd p = {fd, POLLIN, 0};
    if (i % 3 == 0) CHECK(poll(&p, 1, 10000) == 1 && (p.revents & POLLIN) != 0);
    if (i % 3 == 1) {
      fd_set set;
      FD_ZERO(&set);
      FD_SET(fd, &set);
      CHECK(select(fd + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(fd, &set));
    }
    CHECK(recv(fd, r, (size_t)n, MSG_WAITALL) == n);
    for (int k = 0; k < n; k++) CHECK((r[k] ^ 0x20) == b[k]);
    __atomic_add_fetch(&received, n, __ATOMIC_SEQ_CST);
  }
  shutdown(fd, SHUT_WR);
  char b;
  CHECK(read(fd, &b, 1) == 0);
  close(fd);
  return NULL;
}
static void* reads_a_byte(void* fd) {
  char b;
  CHECK(read(*(int*)fd, &b, 1) == 1);
  return NULL;
}
// After somebody has waited for it, and both ways.
static void changes_by_ioctl(void) {
  int pair[2], on = 1, off = 0;
  char b;
  pthread_t t;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  for (int i = 0; i < 2; i++) {
    CHECK(pthread_create(&t, NULL, reads_a_byte, &pair[0]) == 0);
    usleep(20000);
    CHECK(write(pair[1], "x", 1) == 1 && pthread_join(t, NULL) == 0);
    CHECK(ioctl(pair[0], FIONBIO, &on) == 0 && read(pair[0], &b, 1) == -1 && errno == EAGAIN);
    CHECK(ioctl(pair[0], FIONREAD, &on) == 0 && on == 0);
    on = 1;
    CHECK(ioctl(pair[0], FIONBIO, &off) == 0);
  }
  close(pair[0]);
  close(pair[1]);
  puts("ioctl(FIONBIO)");
}
static int ring[20][2];
static void* pass(void* a) {
  long me = (long)a;
  for (;;) {
    int v;
    if (read(ring[me][0], &v, sizeof v) != sizeof v) break;
    v--;
    CHECK(write(ring[(me + 1) % 20][1], &v, sizeof v) == sizeof v);
    if (v <= 0) break;
  }
  return NULL;
}
static void* pump(void* a) {
  static char block[1 << 20];
  CHECK(write(*(int*)a, block, sizeof block) == sizeof block);
  close(*(int*)a);
  return NULL;
}

int main(void) {
  listening = socket(AF_INET, SOCK_STREAM, 0);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  CHECK(bind(listening, (struct sockaddr*)&address, size) == 0 && listen(listening, 100) == 0);
  CHECK(getsockname(listening, (struct sockaddr*)&address, &size) == 0);
  pthread_t server, t[clients];
  pthread_create(&server, NULL, accept_all, NULL);
  for (long i = 0; i < clients; i++) CHECK(pthread_create(&t[i], NULL, talk, (void*)i) == 0);
  for (int i = 0; i < clients; i++) pthread_join(t[i], NULL);
  pthread_join(server, NULL);
  printf("received %ld\n", received);

  for (int i = 0; i < 20; i++) CHECK(pipe(ring[i]) == 0);
  for (long i = 0; i < 20; i++) pthread_create(&t[i], NULL, pass, (void*)i);
  int v = 2000;
  CHECK(write(ring[0][1], &v, sizeof v) == sizeof v);
  for (int i = 0; i < 20; i++) pthread_join(t[i], NULL);
  puts("ring");

  int ends[2];
  CHECK(pipe(ends) == 0);
  pthread_create(&t[0], NULL, pump, &ends[1]);
  long bytes = 0;
  char b[5000];
  for (ssize_t n; (n = read(ends[0], b, sizeof b)) > 0; bytes += n)
    if (bytes % 3 == 0) sched_yield();
  pthread_join(t[0], NULL);
  printf("pumped %ld\n", bytes);
  changes_by_ioctl();
  struct pollfd p = {ring[3][0], POLLIN, 0};
  long before = ms_now();
  CHECK(poll(&p, 1, 5) == 0 && ms_now() - before >= 4);
  CHECK(read(-1, b, 1) == -1 && errno == EBADF && poll(NULL, 0, 1) == 0);
  return 0;
}
