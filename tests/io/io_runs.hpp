// What the tests of io share: runs on 1, 2 and 4 workers that are threads, pipes and sockets that close
// themselves.
#pragma once

#include <godwit/godwit.hpp>
#include <godwit/io.hpp>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <array>
#include <fcntl.h>
#include <functional>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace io_runs {

namespace gw = godwit;

inline gw::options threads(std::uint32_t workers) {
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.workers = workers;
  return o;
}

/// Also with random steals and delays inside the protocols.
inline void on_threads(const std::function<void()>& f) {
  for (const std::uint32_t workers : {1u, 2u, 4u})
    for (const bool forced : {false, true}) {
      gw::options o = threads(workers);
      if (forced) {
        o.force_steal = gw::choice::force_steal::random;
        o.delay_us = 20;
        o.seed = workers + 7;
      }
      SCOPED_TRACE(testing::Message() << workers << " workers, forced " << forced);
      gw::run<void>([&f] { f(); }, o);
    }
}

/// Two descriptors, [0] to read.
struct ends {
  std::array<int, 2> fd{-1, -1};
  ends() = default;
  ends(const ends&) = delete;
  ~ends() {
    close(0);
    close(1);
  }
  void close(unsigned i) {
    if (fd[i] >= 0) gw::io::close(fd[i]);
    fd[i] = -1;
  }
  int operator[](unsigned i) const { return fd[i]; }
};
struct a_pipe : ends {
  explicit a_pipe(int flags = 0) { EXPECT_EQ(::pipe2(fd.data(), flags), 0); }
};
struct a_socketpair : ends {
  explicit a_socketpair(int type = SOCK_STREAM) { EXPECT_EQ(::socketpair(AF_UNIX, type, 0, fd.data()), 0); }
};

inline sockaddr_in loopback(std::uint16_t port = 0) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(port);
  return a;
}

/// Listens on 127.0.0.1.
struct listener {
  int fd;
  sockaddr_in address{};
  explicit listener(int backlog = 128) {
    fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address = loopback();
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd, backlog), 0);
    socklen_t n = sizeof address;
    EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &n), 0);
  }
  listener(const listener&) = delete;
  ~listener() { gw::io::close(fd); }
};

inline int connected_to(const listener& to) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(gw::io::connect(fd, reinterpret_cast<const sockaddr*>(&to.address), sizeof to.address), 0)
      << gw::io::error();
  return fd;
}

/// A TCP connection.
struct a_connection : ends {
  a_connection() {
    const listener l;
    fd[1] = connected_to(l);
    fd[0] = gw::io::accept(l.fd, nullptr, nullptr);
    EXPECT_GE(fd[0], 0);
  }
};

}  // namespace io_runs
