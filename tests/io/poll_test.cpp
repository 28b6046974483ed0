// poll, select, epoll_wait: several descriptors, time limits, what they report.
// test: timeout=180
#include "io/io_runs.hpp"

#include <atomic>
#include <sys/epoll.h>
#include <thread>

namespace {

using namespace io_runs;
namespace io = gw::io;

TEST(poll, time_limit_and_nothing) {
  on_threads([] {
    a_pipe p;
    pollfd fds[2] = {{p[0], POLLIN, 0}, {-1, POLLIN, 0}};
    EXPECT_EQ(io::poll(fds, 2, 0), 0);
    EXPECT_EQ(io::poll(fds, 2, 5), 0);
    EXPECT_EQ(io::poll(nullptr, 0, 2), 0);
    pollfd out{p[1], POLLOUT, 0};
    EXPECT_EQ(io::poll(&out, 1, -1), 1);
    EXPECT_EQ(out.revents, POLLOUT);
    pollfd bad{999'999, POLLIN, 0};
    EXPECT_EQ(io::poll(&bad, 1, -1), 1);
    EXPECT_EQ(bad.revents, POLLNVAL);
  });
}

TEST(poll, any_of_many) {
  on_threads([] {
    constexpr std::size_t n = 50;
    std::vector<a_pipe> pipes(n);
    auto poller = gw::spawn([&pipes] {
      std::vector<pollfd> fds;
      for (auto& p : pipes) fds.push_back({p[0], POLLIN, 0});
      int seen = 0;
      while (seen < 100) {
        const int ready = io::poll(fds.data(), fds.size(), -1);
        EXPECT_GT(ready, 0);
        for (auto& f : fds)
          if (f.revents & POLLIN) {
            char c;
            EXPECT_EQ(io::read(f.fd, &c, 1), 1);
            ++seen;
          }
      }
      return seen;
    });
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(io::write(pipes[i * 7 % n][1], "x", 1), 1);
      gw::yield();
    }
    EXPECT_EQ(poller.join(), 100);
  });
}

TEST(poll, several_at_one_descriptor_and_a_reader) {
  on_threads([] {
    for (int i = 0; i < 20; ++i) {
      a_socketpair s;
      std::atomic<int> polled{0};
      std::vector<gw::future<void>> threads;
      for (int k = 0; k < 5; ++k)
        threads.push_back(gw::spawn([&] {
          pollfd f{s[0], POLLIN | POLLRDHUP, 0};
          EXPECT_EQ(io::poll(&f, 1, -1), 1);
          polled.fetch_add(1);
        }));
      auto reader = gw::spawn([&] {
        char b[10];
        EXPECT_EQ(io::read(s[0], b, 10), 2);
        EXPECT_EQ(io::read(s[0], b, 10), 0);
      });
      EXPECT_EQ(io::write(s[1], "ab", 2), 2);
      gw::yield();
      s.close(1);  // for those who were too late for the bytes
      for (auto& t : threads) t.join();
      reader.join();
      EXPECT_EQ(polled.load(), 5);
    }
  });
}

// The limit and an event at about the same time, again and again.
TEST(poll, limit_against_event) {
  on_threads([] {
    a_pipe p;
    std::atomic<bool> done{false};
    auto writer = gw::spawn([&] {
      for (int i = 0; i < 100; ++i) {
        io::usleep(static_cast<unsigned>(900 + i * 2));
        io::write(p[1], "x", 1);
      }
      done.store(true);
    });
    int got = 0;
    while (got < 100) {
      pollfd f{p[0], POLLIN, 0};
      const int n = io::poll(&f, 1, 1);
      EXPECT_GE(n, 0);
      char b[100];
      if (n == 1) got += static_cast<int>(io::read(p[0], b, sizeof b));
    }
    writer.join();
    EXPECT_EQ(got, 100);
  });
}

TEST(poll, select) {
  on_threads([] {
    a_pipe p, q;
    fd_set r, w;
    FD_ZERO(&r);
    FD_ZERO(&w);
    FD_SET(p[0], &r);
    timeval t{0, 3000};
    EXPECT_EQ(io::select(p[0] + 1, &r, nullptr, nullptr, &t), 0);
    EXPECT_FALSE(FD_ISSET(p[0], &r));
    EXPECT_EQ(t.tv_usec, 0);
    auto writer = gw::spawn([&p] {
      io::usleep(2000);
      io::write(p[1], "x", 1);
    });
    FD_SET(p[0], &r);
    FD_SET(q[0], &r);
    EXPECT_EQ(io::select(std::max(p[0], q[0]) + 1, &r, nullptr, nullptr, nullptr), 1);
    EXPECT_TRUE(FD_ISSET(p[0], &r));
    EXPECT_FALSE(FD_ISSET(q[0], &r));
    FD_SET(q[1], &w);
    EXPECT_EQ(io::select(std::max({p[0], q[0], q[1]}) + 1, &r, &w, nullptr, nullptr), 2);
    writer.join();
  });
}

TEST(poll, the_programs_own_epoll) {
  on_threads([] {
    a_pipe p;
    const int e = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event want{};
    want.events = EPOLLIN;
    want.data.u64 = 77;
    ASSERT_EQ(::epoll_ctl(e, EPOLL_CTL_ADD, p[0], &want), 0);
    epoll_event got[4];
    EXPECT_EQ(io::epoll_wait(e, got, 4, 2), 0);
    auto writer = gw::spawn([&p] {
      for (int i = 0; i < 20; ++i) {
        io::usleep(300);
        io::write(p[1], "x", 1);
      }
    });
    for (int seen = 0; seen < 20;) {
      EXPECT_EQ(io::epoll_wait(e, got, 4, -1), 1);
      EXPECT_EQ(got[0].data.u64, 77u);
      char b[20];
      seen += static_cast<int>(io::read(p[0], b, 20));
    }
    writer.join();
    io::close(e);
  });
}

// An OS thread that a thread starts has its worker's register on x86-64. It waits by itself all the same.
TEST(poll, an_os_thread_of_the_programs_own) {
  on_threads([] {
    a_pipe p;
    std::atomic<bool> over{false};
    std::thread other([&p, &over] {
      char c = 0;
      EXPECT_EQ(io::read(p[0], &c, 1), 1);
      io::usleep(100);
      io::sleep_for(std::chrono::microseconds(100));
      pollfd f{p[0], POLLIN, 0};
      EXPECT_EQ(io::poll(&f, 1, 1), 0);
      timeval t{0, 100};
      EXPECT_EQ(io::select(0, nullptr, nullptr, nullptr, &t), 0);
      over.store(true);
    });
    io::usleep(10'000);
    EXPECT_EQ(io::write(p[1], "x", 1), 1);
    while (!over.load()) io::usleep(1000);
    other.join();
  });
}

}  // namespace
