// fork, exec and their relatives inside threads, on both substrates: the child has its thread's frames to
// itself, what it prints and how it ends is its own business, and what cannot work in it says so.
// test: timeout=240 skip-qemu
#include "support/child.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <numeric>
#include <spawn.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

namespace gw = godwit;
using support::outcome;
using support::run_child;
using support::schedule;
using support::show;

const char* const forces[] = {"none", "parents", "children", "random"};

[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

int status_of(pid_t pid) {
  int status = -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Calls itself @p depth times with frames of its own, and gives back what is in all of them.
[[gnu::noinline]] long deep(int depth, long seed) {
  volatile long frame[64];
  for (int i = 0; i < 64; ++i) frame[i] = seed + i;
  const long below = depth == 0 ? 0 : deep(depth - 1, seed + 1);
  long sum = below;
  for (const volatile long& word : frame) sum += word;
  return sum;
}

/// Parent and child both change all of their frames, again and again, and both look whether they are alone.
/// 0: they are.
[[gnu::noinline]] int fork_and_look(int id) {
  std::array<volatile long, 200> mine;
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = id;
  const pid_t pid = fork();
  if (pid < 0) return 1;
  const long value = pid == 0 ? -id : id + 1000;
  bool good = true;
  for (int round = 0; round < 50; ++round) {
    for (auto& word : mine) word = value + round;
    good &= deep(20, value) == deep(20, value);
    good &= deep(20, value) == 21 * 64 * value + 64 * 210 + 21 * 63 * 32;
    for (const auto& word : mine) good &= word == value + round;
  }
  if (pid == 0) _exit(good ? 7 : 8);
  return !good ? 2 : status_of(pid) == 7 ? 0 : 3;
}

TEST(fork, parent_and_child_have_frames_of_their_own) {
  for (const char* force : forces)
    for (const std::uint32_t workers : {1u, 2u, 4u}) {
      SCOPED_TRACE(std::string(force) + " " + std::to_string(workers));
      const int wrong = gw::run<int>(
          [] {
            gw::future<int> f[6];
            for (int i = 0; i < 6; ++i)
              f[i] = gw::spawn([i] {
                fib(5);
                const int found = fork_and_look(i);
                fib(5);
                return found;
              });
            const long sum = fib(8);
            int all = fork_and_look(100);
            for (auto& x : f) all += x.join();
            return all + (sum == 21 ? 0 : 1000);
          },
          schedule(workers, force));
      EXPECT_EQ(wrong, 0);
    }
}

// The parent goes on while the child lives, and what both do with the stack does not meet.
TEST(fork, child_outlives_its_thread) {
  support::shared<std::atomic<int>> found, go;
  const bool good = gw::run<bool>(
      [f = found.get(), go = go.get()] {
        auto x = gw::spawn([f, go] {
          volatile long here = 5;
          const pid_t pid = fork();
          if (pid == 0) {
            while (go->load() == 0) usleep(100);
            const bool well = here == 5 && deep(100, 3) == deep(100, 3);
            f->store(well ? 1 : 2);
            _exit(0);
          }
          here = 6;
          return static_cast<int>(pid);
        });
        const pid_t pid = x.join();
        fib(12);
        deep(200, 1);
        go->store(1);
        // Its parent is the worker that forked it: nobody else can wait for it.
        while (f->load() == 0) usleep(100);
        return pid > 0;
      },
      schedule(2, "random"));
  EXPECT_TRUE(good);
  EXPECT_EQ(found->load(), 1);
}

TEST(fork, under_every_policy) {
  for (const char* policy :
       {"greedy", "iso", "stalling", "crude", "locked_free", "child_full", "child_rtc"}) {
    SCOPED_TRACE(policy);
    gw::options o = schedule(2);
    o.policy = gw::choice::named{policy};
    EXPECT_EQ(gw::run<int>([] { return fork_and_look(3); }, o), 0);
  }
}

TEST(fork, child_prints_and_ends_as_in_any_program) {
  for (const char* force : forces) {
    SCOPED_TRACE(force);
    const auto child = run_child([&] {
      const int status = gw::run<int>(
          [] {
            auto f = gw::spawn([] {
              std::printf("before\n");
              std::fflush(stdout);
              const pid_t pid = fork();
              if (pid == 0) {
                std::printf("child\n");
                std::exit(5);
              }
              return status_of(pid);
            });
            return f.join();
          },
          schedule(3, force));
      std::printf("ended with %d\n", status);
      return 0;
    });
    EXPECT_EQ(child.status, 0) << show(child);
    EXPECT_EQ(child.out, "before\nchild\nended with 5\n") << show(child);
  }
}

TEST(fork, child_execs) {
  for (const char* force : forces) {
    SCOPED_TRACE(force);
    const int status = gw::run<int>(
        [] {
          auto f = gw::spawn([] {
            const pid_t pid = fork();
            if (pid == 0) {
              execl("/bin/sh", "sh", "-c", "exit 9", static_cast<char*>(nullptr));
              _exit(1);
            }
            return status_of(pid);
          });
          fib(8);
          return f.join();
        },
        schedule(3, force));
    EXPECT_EQ(status, 9);
  }
}

// A child of a child is a plain fork.
TEST(fork, in_the_child) {
  const int status = gw::run<int>(
      [] {
        const pid_t pid = fork();
        if (pid != 0) return status_of(pid);
        const pid_t second = fork();
        if (second == 0) _exit(4);
        _exit(status_of(second) + 1);
      },
      schedule(2));
  EXPECT_EQ(status, 5);
}

// It is no worker's thread where the worker register is not inherited, but the heap is that of its worker.
TEST(fork, by_another_os_thread_of_a_worker) {
  const int found = gw::run<int>(
      [] {
        const auto shared = std::make_unique<volatile int>(1);
        int written = -1, stopped = -1;
        std::thread([&] {
          const pid_t writes = fork();
          if (writes == 0) {
            *shared = 2;
            _exit(7);
          }
          written = status_of(writes);
          const pid_t waits = fork();
          if (waits == 0)
            for (;;) pause();
          kill(waits, SIGTERM);
          stopped = status_of(waits);
        }).join();
        return (*shared == 1 ? 0 : 1) + (written == 7 ? 0 : 2) + (stopped == 128 + SIGTERM ? 0 : 4);
      },
      schedule(2));
  EXPECT_EQ(found, 0);
}

// Its frames and its part of the heap are not those of the thread that forks at the same time.
TEST(fork, by_two_os_threads_of_a_worker_at_once) {
  const int found = gw::run<int>(
      [] {
        auto* const wrong = new std::atomic<int>(0);  // no frame: they are elsewhere for a while
        std::thread beside([wrong] {
          for (int i = 0; i < 200; ++i) {
            const pid_t pid = fork();
            if (pid == 0) _exit(7);
            *wrong += status_of(pid) != 7;
          }
        });
        int all = 0;
        for (int i = 0; i < 200; ++i) {
          const auto mine = std::make_unique<int>(i);
          const pid_t pid = fork();
          if (pid == 0) _exit(*mine == i ? 7 : 8);
          all += status_of(pid) != 7 || *mine != i;
        }
        beside.join();
        all += *wrong;
        delete wrong;
        return all;
      },
      schedule(2));
  EXPECT_EQ(found, 0);
}

TEST(fork, relatives_work_as_ever) {
  for (const char* force : {"none", "random"}) {
    const int sum = gw::run<int>(
        [] {
          auto f = gw::spawn([] {
            const int by_system = WEXITSTATUS(std::system("exit 3"));
            std::FILE* p = popen("echo 40", "r");
            int by_popen = 0;
            if (p == nullptr || std::fscanf(p, "%d", &by_popen) != 1) return -1;
            pclose(p);
            pid_t pid = -1;
            char sh[] = "sh", c[] = "-c", words[] = "exit 200";
            char* arguments[] = {sh, c, words, nullptr};
            if (posix_spawn(&pid, "/bin/sh", nullptr, nullptr, arguments, environ) != 0) return -2;
            return by_system + by_popen + status_of(pid);
          });
          fib(5);
          return f.join();
        },
        schedule(2, force));
    EXPECT_EQ(sum, 243);
  }
}

// What a worker makes of signals that go to whole groups is not what its children shall make of them.
TEST(fork, children_are_stopped_by_signals) {
  const int status = gw::run<int>(
      [] {
        int all = 0;
        for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
          const pid_t pid = fork();
          if (pid == 0)
            for (;;) pause();
          kill(pid, signal);
          all += status_of(pid) == 128 + signal;
          const pid_t second = fork();
          if (second == 0) {
            execl("/bin/sh", "sh", "-c", "while :; do sleep 1; done", static_cast<char*>(nullptr));
            _exit(1);
          }
          kill(second, signal);
          all += status_of(second) == 128 + signal;
        }
        return all;
      },
      schedule(2));
  EXPECT_EQ(status, 6);
}

/// The child calls @p body and says how it ended; its words are on standard error.
template <class F>
outcome in_child(F body) {
  return run_child([&] {
    return gw::run<int>(
        [body] {
          auto f = gw::spawn([body] {
            const pid_t pid = fork();
            if (pid == 0) {
              body();
              return 1000;
            }
            return status_of(pid);
          });
          return f.join();
        },
        schedule(2));
  });
}

TEST(fork, what_needs_a_worker_says_so) {
  const outcome spawns = in_child([] { static_cast<void>(fib(5)); });
  EXPECT_EQ(spawns.status, 70) << show(spawns);
  EXPECT_TRUE(spawns.err_has("which fork made in a thread")) << show(spawns);
  EXPECT_TRUE(spawns.err_has("spawn")) << show(spawns);
  EXPECT_EQ(spawns.err_lines(), 1) << show(spawns);

  const outcome returns = in_child([] {});
  EXPECT_EQ(returns.status, 70) << show(returns);
  EXPECT_TRUE(returns.err_has("which fork made in a thread")) << show(returns);
  EXPECT_EQ(returns.err_lines(), 1) << show(returns);

  const outcome joins = run_child([] {
    return gw::run<int>(
        [] {
          auto f = gw::spawn([] { return 3; });
          const pid_t pid = fork();
          if (pid == 0) _exit(f.join());
          return status_of(pid) + f.join();
        },
        schedule(2, "parents"));
  });
  EXPECT_EQ(joins.status, 73) << show(joins);
  EXPECT_TRUE(joins.err_has("join")) << show(joins);
}

TEST(fork, child_that_dies_dies_alone) {
  const outcome child = in_child([] { std::abort(); });
  EXPECT_EQ(child.status, 134) << show(child);
  EXPECT_EQ(child.left_behind, 0);
}

// Not a fork, but what takes a worker away is named.
TEST(exec, in_a_thread_is_named) {
  GODWIT_NEEDS_PROCESSES("exec replaces the whole process there, as in any program");
  for (const char* program : {"/bin/true", "/bin/false"}) {
    const auto child = run_child([&] {
      char name[] = "program";
      char* argv[] = {name, nullptr};
      return gw::run(
          1, argv,
          [program] {
            auto f = gw::spawn([program] { return execl(program, program, static_cast<char*>(nullptr)); });
            return f.join();
          },
          schedule(2));
    });
    EXPECT_EQ(child.status, 70) << show(child);
    EXPECT_TRUE(child.err_has("called exec")) << show(child);
    EXPECT_TRUE(child.err_has(program + 5)) << show(child);
  }
}

}  // namespace
