// The load generator: connects, then keeps a message under way on `active` connections. A connection that got
// its message back rests until its turn comes again, so all of them are used.
#include "echo.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../common/clock.hpp"

namespace echo {

void check(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

void many_files() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

namespace {
double cpu_seconds(int pid) {
  clockid_t clock;
  timespec t{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
}  // namespace

outcome generate(const load& l) {
  outcome result;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(l.port);
  inet_pton(AF_INET, l.host.c_str(), &to.sin_addr);
  const int e = epoll_create1(EPOLL_CLOEXEC);
  std::vector<int> fds(l.connections);
  for (unsigned i = 0; i < l.connections; ++i) {
    fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fds[i] >= 0, "socket");
    const int one = 1;
    setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const linger reset{1, 0};  // else every run leaves its ports in TIME_WAIT
    setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    check(connect(fds[i], reinterpret_cast<sockaddr*>(&to), sizeof to) == 0, "connect");
    epoll_event want{};
    want.events = EPOLLIN;
    want.data.u32 = i;
    epoll_ctl(e, EPOLL_CTL_ADD, fds[i], &want);
  }
  std::vector<char> message(l.bytes, 'm'), back(l.bytes);
  std::vector<std::size_t> missing(l.connections, 0);
  const auto say = [&](unsigned i) {
    missing[i] = l.bytes;
    check(send(fds[i], message.data(), l.bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(l.bytes), "send");
  };
  const unsigned active = l.active == 0 || l.active > l.connections ? l.connections : l.active;
  unsigned turn = 0;
  for (; turn < active; ++turn) say(turn % l.connections);
  const std::uint64_t start = bench::now_ns();
  std::uint64_t from = start + static_cast<std::uint64_t>(l.warm_up * 1e9);
  const std::uint64_t until = from + static_cast<std::uint64_t>(l.seconds * 1e9);
  bool counting = false;
  epoll_event got[512];
  for (;;) {
    const int n = epoll_wait(e, got, 512, 10'000);
    check(n > 0, "no answer for 10 s");
    for (int k = 0; k < n; ++k) {
      const unsigned i = got[k].data.u32;
      const ssize_t bytes = recv(fds[i], back.data(), missing[i], 0);
      check(bytes > 0, "recv");
      result.wrong += std::memcmp(back.data(), message.data(), static_cast<std::size_t>(bytes)) != 0;
      if ((missing[i] -= static_cast<std::size_t>(bytes)) != 0) continue;
      result.messages += counting;
      if (active == l.connections) {
        say(i);
      } else {
        while (missing[turn % l.connections] != 0) ++turn;
        say(turn++ % l.connections);
      }
    }
    const std::uint64_t now = bench::now_ns();
    if (!counting && now >= from) {
      counting = true;
      from = now;
      result.server_cpu_seconds = -cpu_seconds(l.server);
    } else if (now >= until) {
      result.seconds = static_cast<double>(now - from) * 1e-9;
      result.server_cpu_seconds += cpu_seconds(l.server);
      break;
    }
  }
  for (const int fd : fds) close(fd);
  close(e);
  return result;
}

}  // namespace echo
