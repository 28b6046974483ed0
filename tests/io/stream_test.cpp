// Bytes through pipes, local sockets and TCP: order, amounts, ends, several threads at one descriptor, modes
// and time limits.
// test: timeout=240
#include "io/io_runs.hpp"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <numeric>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>

namespace {

using namespace io_runs;
namespace io = gw::io;

/// More than fits anywhere, in pieces of all sizes.
template <class Ends>
void everything_arrives() {
  on_threads([] {
    Ends e;
    constexpr std::size_t all = 3'000'000;
    auto writer = gw::spawn([&e] {
      std::vector<unsigned char> data(all);
      for (std::size_t i = 0; i < all; ++i) data[i] = static_cast<unsigned char>(i * 7 + i / 251);
      std::size_t done = 0, piece = 1;
      while (done < all) {
        piece = std::min(piece * 3, all - done);
        EXPECT_EQ(io::write(e[1], data.data() + done, piece), static_cast<ssize_t>(piece));
        done += piece;
      }
      e.close(1);
    });
    std::vector<unsigned char> buffer(100'000);
    std::size_t got = 0, wrong = 0, most = 1;
    for (;;) {
      const ssize_t n = io::read(e[0], buffer.data(), most);
      if (n <= 0) {
        EXPECT_EQ(n, 0) << io::error();
        break;
      }
      for (ssize_t i = 0; i < n; ++i, ++got)
        wrong += buffer[static_cast<std::size_t>(i)] != static_cast<unsigned char>(got * 7 + got / 251);
      most = std::min(most * 2 + 1, buffer.size());
    }
    EXPECT_EQ(got, all);
    EXPECT_EQ(wrong, 0u);
    writer.join();
  });
}

TEST(stream, pipe) { everything_arrives<a_pipe>(); }
TEST(stream, socketpair) { everything_arrives<a_socketpair>(); }
TEST(stream, tcp) { everything_arrives<a_connection>(); }

template <class Ends>
void ping_pong() {
  on_threads([] {
    Ends there, back;
    constexpr int rounds = 500;
    auto other = gw::spawn([&] {
      int v;
      for (int i = 0; i < rounds; ++i) {
        EXPECT_EQ(io::read(there[0], &v, sizeof v), 4);
        ++v;
        EXPECT_EQ(io::write(back[1], &v, sizeof v), 4);
      }
    });
    for (int i = 0; i < rounds; ++i) {
      int v = i;
      EXPECT_EQ(io::write(there[1], &v, sizeof v), 4);
      EXPECT_EQ(io::read(back[0], &v, sizeof v), 4);
      EXPECT_EQ(v, i + 1);
    }
    other.join();
  });
}

TEST(stream, ping_pong_pipe) { ping_pong<a_pipe>(); }
TEST(stream, ping_pong_socketpair) { ping_pong<a_socketpair>(); }
TEST(stream, ping_pong_tcp) { ping_pong<a_connection>(); }

// The last bytes and the end arrive together: the read that takes the bytes must not make the next one wait.
TEST(stream, end_right_after_data) {
  on_threads([] {
    for (int i = 0; i < 50; ++i) {
      a_connection c;
      auto reader = gw::spawn([&c] {
        char b[64];
        EXPECT_EQ(io::read(c[0], b, sizeof b), 5);
        EXPECT_EQ(io::read(c[0], b, sizeof b), 0);
        EXPECT_EQ(io::read(c[0], b, sizeof b), 0);
      });
      EXPECT_EQ(io::write(c[1], "bytes", 5), 5);
      c.close(1);
      reader.join();
    }
  });
}

TEST(stream, several_readers_and_writers) {
  on_threads([] {
    a_pipe p;
    constexpr int writers = 8, readers = 8, each = 300;
    std::atomic<long> sum{0};
    std::atomic<int> got{0};
    std::vector<gw::future<void>> threads, sources;
    for (int r = 0; r < readers; ++r)
      threads.push_back(gw::spawn([&] {
        int v;
        while (io::read(p[0], &v, sizeof v) == 4) {
          sum.fetch_add(v);
          got.fetch_add(1);
        }
      }));
    for (int w = 0; w < writers; ++w)
      sources.push_back(gw::spawn([&p, w] {
        for (int i = 0; i < each; ++i) {
          const int v = w * each + i;
          EXPECT_EQ(io::write(p[1], &v, sizeof v), 4);
          if (i % 7 == 0) gw::yield();
        }
      }));
    for (auto& t : sources) t.join();
    p.close(1);
    for (auto& t : threads) t.join();
    constexpr long n = writers * each;
    EXPECT_EQ(got.load(), n);
    EXPECT_EQ(sum.load(), n * (n - 1) / 2);
  });
}

TEST(stream, datagrams_keep_their_borders) {
  on_threads([] {
    a_socketpair s(SOCK_DGRAM);
    auto writer = gw::spawn([&s] {
      char b[200] = {};
      for (int i = 1; i < 200; ++i) EXPECT_EQ(io::send(s[1], b, static_cast<std::size_t>(i), 0), i);
    });
    char b[1000];
    for (int i = 1; i < 200; ++i) EXPECT_EQ(io::recv(s[0], b, sizeof b, 0), i);
    writer.join();
  });
}

TEST(stream, vectors) {
  on_threads([] {
    a_connection c;
    static constexpr std::size_t parts = 40, part = 20'000;
    auto writer = gw::spawn([&c] {
      std::vector<std::vector<char>> data;
      std::vector<iovec> v;
      for (std::size_t i = 0; i < parts; ++i) {
        data.emplace_back(part, static_cast<char>(i));
        v.push_back({data[i].data(), part});
      }
      EXPECT_EQ(io::writev(c[1], v.data(), static_cast<int>(v.size())), static_cast<ssize_t>(parts * part));
      c.close(1);
    });
    std::vector<char> a(7'777), b(33'333);
    std::size_t got = 0, wrong = 0;
    for (;;) {
      iovec v[2] = {{a.data(), a.size()}, {b.data(), b.size()}};
      const ssize_t n = io::readv(c[0], v, 2);
      if (n <= 0) break;
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i, ++got)
        wrong += (i < a.size() ? a[i] : b[i - a.size()]) != static_cast<char>(got / part);
    }
    EXPECT_EQ(got, parts * part);
    EXPECT_EQ(wrong, 0u);
    writer.join();
  });
}

TEST(stream, messages_and_waitall) {
  on_threads([] {
    a_socketpair s;
    auto writer = gw::spawn([&s] {
      char b[10] = "123456789";
      for (int i = 0; i < 20; ++i) {
        iovec v{b, 10};
        msghdr m{};
        m.msg_iov = &v;
        m.msg_iovlen = 1;
        EXPECT_EQ(io::sendmsg(s[1], &m, 0), 10);
        gw::yield();
      }
    });
    char b[100];
    EXPECT_EQ(io::recv(s[0], b, 100, MSG_WAITALL), 100);
    iovec v[2] = {{b, 30}, {b + 30, 70}};
    msghdr m{};
    m.msg_iov = v;
    m.msg_iovlen = 2;
    EXPECT_EQ(io::recvmsg(s[0], &m, MSG_WAITALL), 100);
    writer.join();
  });
}

TEST(stream, what_the_program_made_non_blocking_stays_so) {
  on_threads([] {
    a_pipe p(O_NONBLOCK);
    char b[100] = {};
    EXPECT_EQ(io::read(p[0], b, 1), -1);
    EXPECT_EQ(io::error(), EAGAIN);
    ssize_t n, all = 0;
    while ((n = io::write(p[1], b, sizeof b)) > 0) all += n;
    EXPECT_EQ(io::error(), EAGAIN);
    EXPECT_GE(all, 4096);
    a_connection c;
    io::fcntl(c[0], F_SETFL, O_NONBLOCK);
    EXPECT_EQ(io::recv(c[0], b, 1, 0), -1);
    EXPECT_EQ(io::error(), EAGAIN);
    const listener l;
    io::fcntl(l.fd, F_SETFL, O_NONBLOCK);
    EXPECT_EQ(io::accept(l.fd, nullptr, nullptr), -1);
    EXPECT_EQ(io::error(), EAGAIN);
  });
}

TEST(stream, modes_are_not_changed) {
  on_threads([] {
    a_pipe p;
    a_connection c;
    const listener l;
    std::vector<int> all = {p[0], p[1], c[0], c[1], l.fd};
    std::vector<int> before;
    for (const int fd : all) before.push_back(::fcntl(fd, F_GETFL));
    auto t = gw::spawn([&] {
      char b[2];
      io::read(p[0], b, 1);
      io::read(c[0], b, 1);
      io::close(io::accept(l.fd, nullptr, nullptr));
    });
    gw::yield();
    io::write(p[1], "x", 1);
    gw::yield();
    io::write(c[1], "x", 1);
    gw::yield();
    const int client = connected_to(l);
    t.join();
    io::close(client);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(::fcntl(all[i], F_GETFL), before[i]);
  });
}

TEST(stream, time_limits) {
  on_threads([] {
    a_connection c;
    const timeval limit{0, 20'000};
    char b[10];
    EXPECT_EQ(io::setsockopt(c[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    EXPECT_EQ(io::read(c[0], b, 10), -1);
    EXPECT_EQ(io::error(), EAGAIN);
    EXPECT_EQ(io::write(c[1], "abc", 3), 3);
    EXPECT_EQ(io::read(c[0], b, 10), 3);
    EXPECT_EQ(io::read(c[0], b, 10), -1);
    EXPECT_EQ(io::error(), EAGAIN);
  });
}

// Data and the limit at about the same time: nothing is lost, whoever wins.
TEST(stream, time_limits_against_data) {
  on_threads([] {
    a_connection c;
    const timeval limit{0, 300};
    EXPECT_EQ(io::setsockopt(c[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    constexpr int bytes = 100;
    std::atomic<int> got{0};
    std::vector<gw::future<void>> readers;
    for (int r = 0; r < 3; ++r)
      readers.push_back(gw::spawn([&] {
        char b;
        while (got.load() < bytes)
          if (io::read(c[0], &b, 1) == 1) got.fetch_add(1);
      }));
    for (int i = 0; i < bytes; ++i) {
      io::usleep(100 + static_cast<unsigned>(i) * 4);
      EXPECT_EQ(io::write(c[1], "x", 1), 1);
    }
    for (auto& r : readers) r.join();
    EXPECT_EQ(got.load(), bytes);
  });
}

TEST(stream, errors_are_those_of_the_calls) {
  on_threads([] {
    char b[4];
    EXPECT_EQ(io::read(-1, b, 4), -1);
    EXPECT_EQ(io::error(), EBADF);
    EXPECT_EQ(io::read(999'999, b, 4), -1);
    EXPECT_EQ(io::error(), EBADF);
    EXPECT_EQ(io::write(999'999, b, 4), -1);
    EXPECT_EQ(io::error(), EBADF);
    a_pipe p;
    EXPECT_EQ(io::recv(p[0], b, 4, 0), -1);
    EXPECT_EQ(io::error(), ENOTSOCK);
    EXPECT_EQ(io::accept(p[0], nullptr, nullptr), -1);
    EXPECT_EQ(io::error(), ENOTSOCK);
    EXPECT_EQ(io::read(p[1], b, 4), -1);
    EXPECT_EQ(io::error(), EBADF);
    a_connection c;
    c.close(0);
    int sent = 0;  // until the system has heard from the other end
    while (sent < 20'000 && io::send(c[1], b, 4, MSG_NOSIGNAL) >= 0) ++sent, io::usleep(1000);
    EXPECT_LT(sent, 20'000);
    EXPECT_TRUE(io::error() == EPIPE || io::error() == ECONNRESET) << io::error();
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in nobody;
    {
      const listener l;
      nobody = l.address;
    }
    EXPECT_EQ(io::connect(fd, reinterpret_cast<sockaddr*>(&nobody), sizeof nobody), -1);
    EXPECT_EQ(io::error(), ECONNREFUSED);
    io::close(fd);
  });
}

// One byte wakes the first of two that read. Its call fails, for its own reasons: the byte is the other's.
TEST(stream, a_call_that_fails_leaves_the_event_to_the_next) {
  gw::run<void>(
      [] {
        a_pipe p;
        const auto reads = [&p](char* to) {
          return static_cast<int>(io::read(p[0], to, 1)) < 0 ? io::error() : 0;
        };
        auto fails = gw::spawn([&reads] { return reads(reinterpret_cast<char*>(8)); });
        io::usleep(50'000);
        char c = 0;
        auto other = gw::spawn([&] { return reads(&c); });
        io::usleep(400'000);  // the check of those who wait long is over
        EXPECT_EQ(io::write(p[1], "x", 1), 1);
        EXPECT_EQ(fails.join(), EFAULT);
        for (int i = 0; i < 1000 && !other.ready(); ++i) io::usleep(10'000);
        const bool came = other.ready();
        EXPECT_TRUE(came);
        if (!came) io::write(p[1], "y", 1);  // so that the test ends
        EXPECT_EQ(other.join(), 0);
      },
      threads(2));
}

constexpr int no_filters = 77;  // status of a process that may not have one
/// From now on these system calls give EPERM, in the whole process.
void forbid(std::initializer_list<std::uint32_t> calls) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const std::uint32_t call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog all{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all) != 0)
    ::_exit(no_filters);
}
/// In a child process: reads a byte from a pipe, and ends with the error number.
[[noreturn]] void read_a_byte_without(std::initializer_list<std::uint32_t> calls) {
  ::alarm(20);
  forbid(calls);
  gw::run<void>(
      [] {
        a_pipe p;
        EXPECT_EQ(io::write(p[1], "x", 1), 1);
        char c = 0;
        const ssize_t n = io::read(p[0], &c, 1);
        ::_exit(n == 1 && c == 'x' ? 0 : n < 0 ? io::error() : 100);
      },
      threads(1));
  ::_exit(101);
}
// EPERM says of epoll that it cannot wait for a file. Of a call it says what it says.
TEST(stream, a_filter_that_refuses_calls) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto ends_with = [](int expected) {
    return [=](int status) {
      return WIFEXITED(status) && (WEXITSTATUS(status) == expected || WEXITSTATUS(status) == no_filters);
    };
  };
  EXPECT_EXIT(read_a_byte_without({SYS_preadv2}), ends_with(0), "");
  EXPECT_EXIT(read_a_byte_without({SYS_preadv2, SYS_readv}), ends_with(EPERM), "");
}

TEST(stream, files_eventfds_and_devices) {
  on_threads([] {
    char name[] = "/tmp/godwit_io_XXXXXX";
    const int file = ::mkstemp(name);
    ASSERT_GE(file, 0);
    ::unlink(name);
    std::vector<char> data(300'000, 'f'), back(300'000);
    EXPECT_EQ(io::write(file, data.data(), data.size()), 300'000);
    EXPECT_EQ(::lseek(file, 0, SEEK_CUR), 300'000);
    EXPECT_EQ(io::pread(file, back.data(), back.size(), 0), 300'000);
    EXPECT_EQ(back, data);
    EXPECT_EQ(io::pwrite(file, "xyz", 3, 10), 3);
    ::lseek(file, 10, SEEK_SET);
    EXPECT_EQ(io::read(file, back.data(), 4), 4);
    EXPECT_EQ(std::string(back.data(), 4), "xyzf");
    EXPECT_EQ(::lseek(file, 0, SEEK_CUR), 14);
    ::lseek(file, 0, SEEK_END);
    EXPECT_EQ(io::read(file, back.data(), 4), 0);
    io::close(file);

    const int event = ::eventfd(0, 0);
    auto reader = gw::spawn([event] {
      std::uint64_t v = 0;
      EXPECT_EQ(io::read(event, &v, 8), 8);
      return v;
    });
    gw::yield();
    std::uint64_t three = 3;
    EXPECT_EQ(io::write(event, &three, 8), 8);
    EXPECT_EQ(reader.join(), 3u);
    io::close(event);
    const int null = ::open("/dev/null", O_RDWR);
    EXPECT_EQ(io::write(null, "abc", 3), 3);
    EXPECT_EQ(io::read(null, back.data(), 3), 0);
    io::close(null);
  });
}

// A terminal knows no call that does not wait.
TEST(stream, terminals) {
  on_threads([] {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0) GTEST_SKIP() << "no pseudo-terminals here";
    ASSERT_EQ(::grantpt(master), 0);
    ASSERT_EQ(::unlockpt(master), 0);
    const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
    ASSERT_GE(terminal, 0);
    auto reader = gw::spawn([terminal] {
      char b[20];
      const ssize_t n = io::read(terminal, b, sizeof b);
      return std::string(b, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    });
    gw::yield();
    EXPECT_EQ(io::write(master, "line\n", 5), 5);
    EXPECT_EQ(reader.join(), "line\n");
    io::close(terminal);
    io::close(master);
  });
}

// A waiting thread leaves its worker to others: with one worker, this would stop at the first read.
TEST(stream, waiting_keeps_no_worker) {
  gw::run<void>(
      [] {
        std::vector<a_pipe> pipes(200);
        std::vector<gw::future<long>> threads;
        for (auto& p : pipes)
          threads.push_back(gw::spawn([&p] {
            int v = 0;
            io::read(p[0], &v, 4);
            return static_cast<long>(v);
          }));
        for (std::size_t i = pipes.size(); i-- > 0;) {
          const int v = static_cast<int>(i);
          io::write(pipes[i][1], &v, 4);
        }
        long sum = 0;
        for (auto& t : threads) sum += t.join();
        EXPECT_EQ(sum, 199 * 200 / 2);
      },
      threads(1));
}

// Threads that only yield keep the worker busy for ever: it looks for events all the same, whatever it did
// before.
TEST(stream, yielding_threads_keep_nobody_from_reading) {
  gw::run<void>(
      [] {
        a_pipe p;
        std::atomic<bool> over{false};
        std::vector<gw::thread> yielding;
        for (int i = 0; i < 3; ++i)
          yielding.emplace_back([&over] {
            while (!over) gw::yield();
          });
        for (int before = 0; before < 70; ++before) {
          for (int i = 0; i < before; ++i) gw::yield();
          std::thread writes([&p] {
            const char c = 1;
            EXPECT_EQ(::write(p[1], &c, 1), 1);
          });
          char c = 0;
          EXPECT_EQ(io::read(p[0], &c, 1), 1);
          writes.join();
        }
        over = true;
        for (gw::thread& t : yielding) t.join();
      },
      threads(1));
}

// From outside the run: no thread of it ever becomes ready otherwise, and that is no deadlock.
TEST(stream, an_os_thread_at_the_other_end) {
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    int there[2], back[2];
    ASSERT_EQ(::pipe(there), 0);
    ASSERT_EQ(::pipe(back), 0);
    std::thread echo([&] {
      char c;
      while (::read(there[0], &c, 1) == 1) {
        ::usleep(500);
        if (io::write(back[1], &c, 1) != 1) break;  // outside a run: just the system call
      }
    });
    gw::run<void>(
        [&] {
          for (int i = 0; i < 50; ++i) {
            char c = static_cast<char>(i), d = 0;
            EXPECT_EQ(io::write(there[1], &c, 1), 1);
            EXPECT_EQ(io::read(back[0], &d, 1), 1);
            EXPECT_EQ(c, d);
          }
        },
        threads(workers));
    ::close(there[1]);
    echo.join();
    for (const int fd : {there[0], back[0], back[1]}) ::close(fd);
  }
}

}  // namespace
