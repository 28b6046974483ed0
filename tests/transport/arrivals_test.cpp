// transport/mpi/arrivals: what ends a companion's sleep.
#include "transport/mpi/arrivals.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transport/far/port.hpp"

namespace {

using godwit::transport::mpi::arrivals;
namespace far = godwit::transport::far;

constexpr std::uint32_t at_once = 0, short_us = 1000, long_us = 10'000'000;

struct socket_pair {
  std::array<int, 2> ends{};
  socket_pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0); }
  ~socket_pair() {
    for (const int end : ends) close(end);
  }
  void send() const { EXPECT_EQ(write(ends[0], "x", 1), 1); }
};

class an_arrival : public testing::Test {
 protected:
  void SetUp() override {
    if (!arrivals().usable()) GTEST_SKIP() << "this kernel has no epoll_pwait2: nobody uses arrivals here";
  }
};

TEST_F(an_arrival, a_message_ends_the_wait_once) {
  const socket_pair with;
  arrivals a;
  a.wait(at_once);  // that it can be written to may be news
  EXPECT_FALSE(a.wait(short_us));
  with.send();
  EXPECT_TRUE(a.wait(long_us));
  EXPECT_FALSE(a.wait(short_us)) << "what somebody lets lie must not wake for ever";
  with.send();
  EXPECT_TRUE(a.wait(long_us));
}

TEST_F(an_arrival, a_poll_of_sockets_is_as_good_as_they) {
  const int inner = epoll_create1(EPOLL_CLOEXEC);
  arrivals a;
  const socket_pair with;  // later than a has looked for sockets
  epoll_event what{.events = EPOLLIN, .data = {}};
  ASSERT_EQ(epoll_ctl(inner, EPOLL_CTL_ADD, with.ends[1], &what), 0);
  with.send();
  EXPECT_TRUE(a.wait(long_us));
  close(inner);
}

TEST_F(an_arrival, sockets_that_come_later_are_found) {
  arrivals a;
  const socket_pair with;
  EXPECT_FALSE(a.wait(short_us));
  with.send();
  EXPECT_TRUE(a.wait(long_us));
}

TEST_F(an_arrival, a_bell_before_the_wait_ends_it) {
  static far::words words;
  arrivals a;
  a.wait(at_once);
  words.deaf = far::hears;
  far::ring_bell(words);
  EXPECT_FALSE(a.wait(short_us)) << "a companion that hears needs no signal";
  words.deaf = a.os_thread();
  far::ring_bell(words);
  EXPECT_TRUE(a.wait(long_us));
  EXPECT_FALSE(a.wait(short_us)) << "a bell ends one wait";
}

int urgent_seen = 0;

TEST_F(an_arrival, leaves_the_signal_as_it_was) {
  struct sigaction counts = {}, before = {};
  counts.sa_handler = [](int) { ++urgent_seen; };
  sigaction(SIGURG, &counts, &before);
  {
    const arrivals a;
    kill(getpid(), SIGURG);
  }
  EXPECT_EQ(urgent_seen, 0) << "it was the companion's";
  raise(SIGURG);
  EXPECT_EQ(urgent_seen, 1);
  sigaction(SIGURG, &before, nullptr);
}

}  // namespace
