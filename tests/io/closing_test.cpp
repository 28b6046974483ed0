// Who closes all that it did not open, and others that change descriptors under threads that use them.
// test: timeout=180
#include "io/descriptors.hpp"
#include "io/events.hpp"
#include "io/io_runs.hpp"

#include <atomic>
#include <climits>
#include <csignal>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

namespace {

using namespace io_runs;
namespace io = gw::io;

/// Threads that wait are woken, and timers and new descriptors work as before.
void expect_events() {
  io::usleep(300);
  a_pipe p;
  auto reader = gw::spawn([&p] {
    char c = 0;
    EXPECT_EQ(io::read(p[0], &c, 1), 1);
    return c;
  });
  io::usleep(300);
  EXPECT_EQ(io::write(p[1], "y", 1), 1);
  EXPECT_EQ(reader.join(), 'y');
}

/// @p close_all: of 3 and above. What waited for one of those is told.
void while_one_waits(const std::function<void()>& close_all) {
  on_threads([&close_all] {
    a_pipe p;
    auto reader = gw::spawn([fd = p[0]] {
      char c;
      EXPECT_EQ(io::read(fd, &c, 1), -1);
      return io::error();
    });
    io::usleep(300);
    close_all();
    EXPECT_EQ(reader.join(), EBADF);
    EXPECT_EQ(::fcntl(p[0], F_GETFD), -1);
    EXPECT_EQ(::fcntl(p[1], F_GETFD), -1);
    p.fd = {-1, -1};
    expect_events();
  });
}

TEST(closing, closefrom) {
  while_one_waits([] { io::closefrom(3); });
}
TEST(closing, close_range) {
  while_one_waits([] { EXPECT_EQ(io::close_range(3, ~0u, 0), 0); });
}
TEST(closing, one_by_one) {
  while_one_waits([] {
    for (int fd = 3; fd < 1200; ++fd) io::close(fd);
  });
}

// The first number that is free, as programs count on that replace their standard input: other workers, which
// may only be about to start, open nothing.
TEST(closing, workers_that_start_take_no_numbers) {
  for (int i = 0; i < 300; ++i)
    gw::run<void>(
        [] {
          const int first = ::dup(0);
          ::close(first);
          for (int n = 0; n < 300; ++n) {
            const int again = ::dup(0);
            ASSERT_EQ(again, first) << "look " << n;
            ::close(again);
          }
        },
        threads(4));
}

TEST(closing, what_lies_between_and_beside_those_of_the_workers) {
  on_threads([] {
    io::usleep(100);
    ASSERT_EQ(godwit::events::ours().second, -1) << "sleeping needs none";
    godwit::events::prepare();
    const auto [low, high] = godwit::events::ours();
    ASSERT_GE(low, 0);
    ASSERT_LT(low, high);
    a_pipe p;
    const int after = ::fcntl(p[0], F_DUPFD_CLOEXEC, high + 1);
    const int before = ::fcntl(p[0], F_DUPFD_CLOEXEC, low - 3);
    ASSERT_GT(after, high);
    EXPECT_EQ(io::close_range(static_cast<unsigned>(low), static_cast<unsigned>(high), 0), 0)
        << "nothing but those";
    EXPECT_GE(::fcntl(low, F_GETFD), 0);
    EXPECT_GE(::fcntl(high, F_GETFD), 0);
    EXPECT_EQ(io::close_range(static_cast<unsigned>(before), static_cast<unsigned>(after), 0), 0);
    EXPECT_EQ(::fcntl(after, F_GETFD), -1);
    EXPECT_EQ(::fcntl(before, F_GETFD), -1);
    EXPECT_EQ(io::close(low), -1);
    EXPECT_EQ(io::error(), EBADF);
    EXPECT_EQ(io::dup2(p[0], high), -1);
    EXPECT_EQ(io::error(), EBUSY);
    EXPECT_EQ(io::close_range(5, 4, 0), -1);
    EXPECT_EQ(io::error(), EINVAL);
    EXPECT_EQ(io::close_range(1u << 20, ~0u, 2), -1) << "CLOSE_RANGE_UNSHARE";
    EXPECT_EQ(io::error(), EINVAL);
    EXPECT_EQ(io::close_range(3, ~0u, 4), 0) << "CLOSE_RANGE_CLOEXEC";
    EXPECT_EQ(::fcntl(p[0], F_GETFD), FD_CLOEXEC);
    expect_events();
  });
}

// accept puts the listener into non-blocking mode for the length of a system call: nobody is to see that, or
// to be undone by it.
TEST(closing, the_mode_during_accept_is_not_seen) {
  on_threads([] {
    const listener l(64);
    std::atomic<bool> done{false};
    constexpr int connections = 60;
    std::vector<gw::future<void>> threads;
    threads.push_back(gw::spawn([&] {
      for (int i = 0; i < connections; ++i) {
        const int fd = io::accept(l.fd, nullptr, nullptr);
        EXPECT_GE(fd, 0) << io::error();
        io::close(fd);
      }
      done.store(true);
    }));
    threads.push_back(gw::spawn([&] {
      for (unsigned i = 0; !done.load(); ++i) {
        const int mode = io::fcntl(l.fd, F_GETFL);
        EXPECT_EQ(mode & O_NONBLOCK, 0);
        if (i % 8 == 0) io::forget(l.fd);  // so that it is looked at again
        gw::yield();
      }
    }));
    for (int i = 0; i < connections; ++i) io::close(connected_to(l));
    for (auto& t : threads) t.join();
    EXPECT_EQ(io::fcntl(l.fd, F_GETFL) & O_NONBLOCK, 0);
  });
}

// A number that others closed and used again, while somebody begins to wait for it every few milliseconds.
TEST(closing, a_replaced_file_is_noticed_though_others_come_and_go) {
  gw::run<void>(
      [] {
        a_pipe p, q;
        std::atomic<bool> done{false};
        auto reader = gw::spawn([fd = p[0], &done] {
          char c = 0;
          EXPECT_EQ(io::read(fd, &c, 1), 1);
          done.store(true);
          return c;
        });
        auto poller = gw::spawn([fd = p[0], &done] {
          int rounds = 0;
          for (; !done.load() && rounds < 500; ++rounds) {
            pollfd f{fd, POLLPRI, 0};
            io::poll(&f, 1, 20);
          }
          return rounds;
        });
        io::usleep(1000);
        ASSERT_EQ(::syscall(SYS_dup3, q[0], p[0], 0), p[0]);  // behind our back
        EXPECT_EQ(io::write(q[1], "z", 1), 1);
        EXPECT_LT(poller.join(), 500);
        if (!done.load()) io::forget(p[0]);
        EXPECT_EQ(reader.join(), 'z');
      },
      threads(2));
}

// One who polls a number while it is closed may look once more before it is free. Nothing that it learns then
// is kept for the next file.
TEST(closing, what_is_learned_while_it_is_closed_is_forgotten) {
  on_threads([] {
    for (int i = 0; i < 100; ++i) {
      a_socketpair s;
      const int fd = s[0];
      auto poller = gw::spawn([fd] {
        pollfd f{fd, POLLIN, 0};
        EXPECT_EQ(io::poll(&f, 1, -1), 1);
        EXPECT_EQ(f.revents, POLLNVAL);
      });
      io::usleep(200);
      s.close(0);
      EXPECT_EQ(godwit::events::descriptor_of(fd)->state() % godwit::events::descriptor::one_event, 0u);
      poller.join();
    }
  });
}

// A non-blocking file that others closed: nobody waits for it, so no check finds that another has its number.
TEST(closing, a_blocking_file_in_the_place_of_a_non_blocking_one) {
  on_threads([] {
    char b[10] = {};
    for (const bool sockets : {false, true}) {
      std::array<int, 2> before{}, after{};
      if (sockets) {
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, before.data()), 0);
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, after.data()), 0);
      } else {
        ASSERT_EQ(::pipe2(before.data(), O_NONBLOCK), 0);
        ASSERT_EQ(::pipe(after.data()), 0);
      }
      const int fd = before[0];
      EXPECT_EQ(io::read(fd, b, 1), -1);
      EXPECT_EQ(io::error(), EAGAIN);
      ASSERT_EQ(::syscall(SYS_dup3, after[0], fd, 0), fd);  // behind our back
      auto writer = gw::spawn([&after, sockets] {
        io::usleep(5000);
        EXPECT_EQ(io::write(after[1], "abc", 3), 3);
        io::usleep(5000);
        if (sockets) {
          EXPECT_EQ(io::write(after[1], "defg", 4), 4);
        }
      });
      if (sockets) {
        EXPECT_EQ(io::recv(fd, b, 7, MSG_WAITALL), 7);
      } else {
        EXPECT_EQ(io::read(fd, b, 7), 3) << io::error();
      }
      writer.join();
      for (const int all : {fd, before[1], after[0], after[1]}) io::close(all);
    }
  });
}

volatile std::sig_atomic_t handled_ = 0;
// Outside a run closing is what the system call is, safe in handlers.
TEST(closing, in_handlers_of_signals) {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {
    io::close(::open("/dev/null", O_RDONLY));
    handled_ = handled_ + 1;
  };
  const itimerval often{{0, 50}, {0, 50}}, never{};
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  while (handled_ < 2000) io::close(::open("/dev/null", O_RDONLY));
  ASSERT_EQ(::setitimer(ITIMER_REAL, &never, nullptr), 0);
  ASSERT_EQ(::sigaction(SIGALRM, &before, nullptr), 0);
}

// It has no workers: what these slept in is closed, and another worker that closed something meanwhile is not
// waited for.
TEST(closing, in_a_forked_child) {
  gw::run<void>(
      [] {
        godwit::events::prepare();
        const std::pair<int, int> ours = godwit::events::ours();
        ASSERT_GE(ours.first, 0);
        const pid_t child = ::fork();
        if (child == 0) {
          const bool free = ::fcntl(ours.first, F_GETFD) == -1 && ::fcntl(ours.second, F_GETFD) == -1;
          const int fd = ::dup(0);
          ::_exit(free && io::dup2(fd, ours.first) == ours.first && io::close(ours.first) == 0 ? 0 : 1);
        }
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
      },
      threads(2));
}

// Longer than nanoseconds can count: not over at once.
TEST(closing, very_long_times) {
  on_threads([] {
    for (int i = 0; i < 2; ++i) {
      a_pipe p;
      auto writer = gw::spawn([&p] {
        io::usleep(500);
        EXPECT_EQ(io::write(p[1], "x", 1), 1);
      });
      if (i == 0) {
        pollfd f{p[0], POLLIN, 0};
        const timespec t{LONG_MAX, 999'999'999};
        EXPECT_EQ(io::ppoll(&f, 1, &t), 1);
      } else {
        fd_set r;
        FD_ZERO(&r);
        FD_SET(p[0], &r);
        timeval t{LONG_MAX, 999'999};
        EXPECT_EQ(io::select(p[0] + 1, &r, nullptr, nullptr, &t), 1);
      }
      writer.join();
    }
  });
}

}  // namespace
