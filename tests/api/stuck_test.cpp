// A thread that waits for ever in the C library is named, as deadlocks of our own are; one that somebody can
// let go is not.
// test: timeout=240 skip-qemu
#include "support/child.hpp"
#include "support/sanitizer.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <semaphore.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace {

namespace gw = godwit;
using support::outcome;
using support::run_child;
using support::schedule;
using support::show;

[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

template <class F>
outcome run(F root, const gw::options& o) {
  return run_child(
      [&] {
        char name[] = "program";
        char* argv[] = {name, nullptr};
        return gw::run(1, argv, root, o);
      },
      {}, 60);
}

void expect_named(const outcome& o) {
  EXPECT_EQ(o.status, 70) << show(o);
  EXPECT_FALSE(o.timed_out);
  EXPECT_EQ(o.left_behind, 0);
  for (const char* words : {"godwit: deadlock: worker ", "std::mutex", "nobody is left"})
    EXPECT_TRUE(o.err_has(words)) << show(o);
  EXPECT_EQ(o.err_lines(), 1 + o.err_has("godwit: seed")) << show(o);
}

std::mutex mutex_;

/// Locks it, suspends at the spawn, and goes on -- perhaps elsewhere, and not before the child has ended,
/// which wants it too.
[[gnu::noinline]] long holds_it() {
  mutex_.lock();
  auto f = gw::spawn([] {
    mutex_.lock();
    mutex_.unlock();
    return 1L;
  });
  const long x = f.join();
  mutex_.unlock();
  return x;
}

TEST(stuck, mutex_of_a_suspended_thread) {
  expect_named(run([] { return static_cast<int>(holds_it()); }, schedule(3)));
  expect_named(run([] { return static_cast<int>(holds_it()); }, schedule(2, "parents")));
}

// The other workers have something to do for a while, and are idle then.
TEST(stuck, while_others_compute) {
  expect_named(run(
      [] {
        auto f = gw::spawn([] { return holds_it(); });
        for (int i = 0; i < 20; ++i) fib(15);
        return static_cast<int>(f.join());
      },
      schedule(3)));
}

// The same where the mutex lies in the heap that workers share: another one could let it go, but does not.
TEST(stuck, mutex_in_the_heap) {
  const auto root = [] {
    const auto m = std::make_shared<std::mutex>();
    m->lock();
    auto f = gw::spawn([m = m.get()] {
      const std::lock_guard l(*m);
      return 1;
    });
    const int x = f.join();
    m->unlock();
    return x;
  };
  expect_named(run(root, schedule(3)));
  expect_named(run(root, schedule(2, "parents")));
}

TEST(stuck, condition_that_nobody_signals) {
  expect_named(run(
      [] {
        std::mutex m;
        std::condition_variable c;
        std::unique_lock lock(m);
        c.wait(lock, [] { return false; });
      },
      schedule(2)));
}

// None of these is stuck: each waits longer than three looks take.
constexpr unsigned long_us = 2'000'000;

TEST(not_stuck, somebody_of_the_program_lets_it_go) {
  const outcome child = run(
      [] {
        std::mutex m;
        std::condition_variable c;
        bool ready = false;
        std::thread other([&] {
          usleep(long_us);
          const std::lock_guard lock(m);
          ready = true;
          c.notify_one();
        });
        {
          std::unique_lock lock(m);
          c.wait(lock, [&] { return ready; });
        }
        other.join();
        return 5;
      },
      schedule(2));
  EXPECT_EQ(child.status, 5) << show(child);
}

sem_t* posted_;
TEST(not_stuck, a_signal_lets_it_go) {
  support::shared<std::atomic<int>> pid;
  const outcome child = run_child(
      [&] {
        char name[] = "program";
        char* argv[] = {name, nullptr};
        return gw::run(
            1, argv,
            [p = pid.get()] {
              static sem_t own;
              sem_init(&own, 0, 0);
              posted_ = &own;
              std::signal(SIGUSR1, [](int) { sem_post(posted_); });
              p->store(static_cast<int>(getpid()));
              while (sem_wait(&own) != 0) {
              }
              return 6;
            },
            schedule(2));
      },
      [&](pid_t) {
        while (pid->load() == 0) usleep(1000);
        usleep(long_us);
        kill(pid->load(), SIGUSR1);
      },
      60);
  EXPECT_EQ(child.status, 6) << show(child);
}

TEST(not_stuck, another_process_lets_it_go) {
  auto* shared =
      static_cast<sem_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  sem_init(shared, 1, 0);
  support::shared<std::atomic<int>> there;
  const outcome child = run_child(
      [&] {
        char name[] = "program";
        char* argv[] = {name, nullptr};
        return gw::run(
            1, argv,
            [shared, t = there.get()] {
              t->store(1);
              while (sem_wait(shared) != 0) {
              }
              return 7;
            },
            schedule(2));
      },
      [&](pid_t) {
        while (there->load() == 0) usleep(1000);
        usleep(long_us);
        sem_post(shared);
      },
      60);
  EXPECT_EQ(child.status, 7) << show(child);
  munmap(shared, 4096);
}

// One holds the mutex for long, others wait for it: one of all workers on substrate threads, one in the heap.
int held_while_computing(std::mutex* m) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(long_us);
  auto f = gw::spawn([until, m] {
    const std::lock_guard lock(*m);
    while (std::chrono::steady_clock::now() < until) {
    }
    return 4;
  });
  {
    const std::lock_guard lock(*m);  // the other worker, which took this over
  }
  return f.join() + 4;
}
TEST(not_stuck, a_worker_that_computes_lets_it_go) {
  const outcome child = run([] { return held_while_computing(&mutex_); }, schedule(2));
  EXPECT_EQ(child.status, 8) << show(child);
}
TEST(not_stuck, another_worker_that_computes_lets_it_go) {
  const outcome child = run(
      [] {
        const auto m = std::make_unique<std::mutex>();
        return held_while_computing(m.get());
      },
      schedule(2));
  EXPECT_EQ(child.status, 8) << show(child);
}

// Main's other OS threads use what main made for all workers, and so may a function that is called now and
// then.
bool has_shared_heap() { return !support::with_asan || support::on_threads(); }
TEST(not_stuck, another_thread_of_main_lets_it_go) {
  if (!has_shared_heap()) GTEST_SKIP() << "there is no heap for what main makes for all";
  const outcome child = run_child(
      [] {
        const gw::shared_global<std::mutex> m;
        std::atomic<bool> is_locked = false;
        std::thread other([&] {
          const std::lock_guard lock(*m);
          is_locked = true;
          usleep(2 * long_us);
        });
        while (!is_locked) usleep(1000);
        char name[] = "program";
        char* argv[] = {name, nullptr};
        const int status = gw::run(
            1, argv,
            [m = m.get()] {
              const std::lock_guard lock(*m);
              return 11;
            },
            schedule(2));
        other.join();
        return status;
      },
      {}, 60);
  EXPECT_EQ(child.status, 11) << show(child);
}
TEST(not_stuck, a_tick_lets_it_go) {
  if (!has_shared_heap()) GTEST_SKIP() << "there is no heap for what main makes for all";
  const outcome child = run_child(
      [] {
        const gw::shared_global<sem_t> s;
        sem_init(s.get(), 1, 0);
        const auto at = std::chrono::steady_clock::now() + std::chrono::microseconds(long_us);
        gw::on_tick(std::chrono::milliseconds(100), [&] {
          if (std::chrono::steady_clock::now() > at) sem_post(s.get());
        });
        char name[] = "program";
        char* argv[] = {name, nullptr};
        const int status = gw::run(
            1, argv,
            [s = s.get()] {
              while (sem_wait(s) != 0) {
              }
              return 12;
            },
            schedule(2));
        gw::on_tick(std::chrono::milliseconds(100), nullptr);
        return status;
      },
      {}, 60);
  EXPECT_EQ(child.status, 12) << show(child);
}

}  // namespace
