// Fault injection: whatever goes wrong, the run ends within two seconds with the right status and one clear
// message, and neither a process nor shared memory stays behind.
// test: timeout=120 skip-qemu
#include "support/child.hpp"
#include "support/sanitizer.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

namespace gw = godwit;
using support::outcome;
using support::run_child;
using support::schedule;
using support::show;
using support::with_asan;

[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

template <class F>
int run_words(std::vector<std::string> words, F&& root, const gw::options& o = {}) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const int status = gw::run(static_cast<int>(words.size()), argv.data(), root, o);
  if (support::own_shared_memory() != 0) std::fprintf(stderr, "shared memory was left mapped\n");
  return status;
}

/// Only the lines that the library wrote about the end of the run; sanitizers write pages.
std::string message(const outcome& o) {
  std::string lines;
  for (std::size_t at = 0; at < o.err.size();) {
    std::size_t end = o.err.find('\n', at);
    if (end == std::string::npos) end = o.err.size();
    const std::string line = o.err.substr(at, end - at);
    if (line.rfind("godwit: seed", 0) != 0 &&
        (!with_asan || line.rfind("godwit", 0) == 0 || line.rfind("  t", 0) == 0 || line == "  ..."))
      lines += line + '\n';
    at = end + 1;
  }
  return lines;
}

void expect_failure(const outcome& o, int status, std::initializer_list<const char*> words, int lines = 1) {
  EXPECT_EQ(o.status, status) << show(o);
  EXPECT_FALSE(o.timed_out);
  EXPECT_EQ(o.left_behind, 0) << show(o);
  EXPECT_LT(o.seconds, 20) << show(o);  // it ends by itself, not by a timeout
  const std::string text = message(o);
  EXPECT_EQ(text.rfind("godwit: ", 0), 0u) << show(o);
  if (lines != 0) {
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), lines) << show(o);
  }
  for (const char* w : words)
    EXPECT_NE(text.find(w), std::string::npos) << "no '" << w << "' in: " << show(o);
  EXPECT_FALSE(o.err_has("shared memory was left")) << show(o);
}

const char* const forces[] = {"none", "parents", "children", "random"};

/// What the tests that kill somebody share: the process numbers of the workers.
struct pids {
  std::array<std::atomic<int>, 16> of;
  std::atomic<int> ready;
};

TEST(fault, worker_killed_from_outside) {
  for (const char* force : forces)
    for (int victim = 0; victim < 3; ++victim) {
      SCOPED_TRACE(force);
      support::shared<pids> shared;
      const auto child = run_child(
          [&] {
            return run_words(
                {},
                [p = shared.get()] {
                  gw::on_each_worker([p] { p->of[gw::worker_id()] = getpid(); });
                  p->ready = 1;
                  for (;;) fib(10);
                },
                schedule(3, force));
          },
          [&](pid_t) {
            while (shared->ready.load() == 0) usleep(500);
            usleep(3000);
            kill(shared->of[victim], SIGKILL);
          });
      const std::string who =
          "worker " + std::to_string(victim) + " (process " + std::to_string(shared->of[victim]) + ")";
      expect_failure(child, 137, {who.c_str(), "signal 9 (Killed)"});
    }
}

// All of them idle: the supervisor notices all the same.
TEST(fault, sleeping_worker_killed_from_outside) {
  support::shared<pids> shared;
  const auto child = run_child(
      [&] {
        return run_words(
            {},
            [p = shared.get()] {
              gw::on_each_worker([p] { p->of[gw::worker_id()] = getpid(); });
              p->ready = 1;
              for (;;) pause();
            },
            schedule(4));
      },
      [&](pid_t) {
        while (shared->ready.load() == 0) usleep(500);
        usleep(100000);
        kill(shared->of[2], SIGKILL);
      });
  expect_failure(child, 137, {"worker", "signal 9 (Killed)"});
}

TEST(fault, supervisor_killed) {
  for (const char* force : {"none", "random"}) {
    support::shared<pids> shared;
    const auto child = run_child(
        [&] {
          return run_words(
              {},
              [p = shared.get()] {
                gw::on_each_worker([p] { p->of[gw::worker_id()] = getpid(); });
                p->ready = 1;
                for (;;) fib(10);
              },
              schedule(4, force));
        },
        [&](pid_t pid) {
          while (shared->ready.load() == 0) usleep(500);
          kill(pid, SIGKILL);
        });
    EXPECT_EQ(child.status, 137);
    EXPECT_EQ(child.left_behind, 0) << show(child);
  }
}

struct end_of_thread {
  const char* name;
  void (*body)();
  int status;
  std::vector<const char*> words;
};

volatile std::uintptr_t nowhere = 16;
void crash_null() { *reinterpret_cast<volatile int*>(nowhere) = 1; }
void crash_jump() { reinterpret_cast<void (*)()>(std::uintptr_t{8})(); }
void user_signal() { raise(SIGUSR1); }
void exit_3() { std::exit(3); }
void quick_exit_3() { _exit(3); }
void exit_0() { _exit(0); }

class ends_badly : public testing::TestWithParam<const char*> {};
TEST_P(ends_badly, inside_a_thread) {
  const end_of_thread ways[] = {
      {"abort", [] { std::abort(); }, 134, {"worker", "signal 6 (Aborted)"}},
      {"exit(3)", exit_3, 70, {"worker", "exit(3)", "returning from the root thread"}},
      {"_exit(3)", quick_exit_3, 70, {"worker", "exit(3)"}},
      {"_exit(0)", exit_0, 70, {"worker", "exit(0)"}},
      {"SIGUSR1", user_signal, 138, {"worker", "signal 10"}},
      {"null", crash_null, with_asan ? 70 : 139, {"worker"}},
      {"jump", crash_jump, with_asan ? 70 : 139, {"worker"}},
  };
  for (const end_of_thread& way : ways) {
    SCOPED_TRACE(way.name);
    if (with_asan && way.words.size() == 1) continue;  // which handler wins is the sanitizer's business
    const auto child = run_child([&] {
      return run_words(
          {},
          [body = way.body] {
            auto f = gw::spawn([body] {
              fib(6);
              body();
            });
            for (;;) fib(5);
            f.join();
          },
          schedule(3, GetParam()));
    });
    expect_failure(child, way.status, {});
    for (const char* w : way.words) EXPECT_TRUE(child.err_has(w)) << show(child);
  }
}
INSTANTIATE_TEST_SUITE_P(fault, ends_badly, testing::ValuesIn(forces));

[[gnu::noinline]] void throw_one() { throw 1; }

TEST(fault, exception_from_a_noexcept_function) {
  const auto child = run_child([] {
    return run_words(
        {}, [] { gw::spawn([]() noexcept { throw_one(); }).join(); }, schedule(2));
  });
  EXPECT_EQ(child.status, 134) << show(child);
  EXPECT_TRUE(child.err_has("signal 6")) << show(child);
}

[[gnu::noinline]] int recurse(int n) {
  volatile char frame[500];
  frame[0] = static_cast<char>(n);
  return n == 0 ? 0 : recurse(n - 1) + frame[0];
}
[[gnu::noinline]] int recurse_spawning(int n) {
  auto f = gw::spawn([n] { return recurse_spawning(n + 1); });
  return f.join() + 1;
}

TEST(fault, stack_overflow_by_calls) {
  for (const char* force : forces) {
    const auto child = run_child([&] {
      return run_words(
          {"--godwit-stack-bytes=1M"},
          [] {
            auto f = gw::spawn([] { return recurse(100'000'000); });
            return f.join();
          },
          schedule(2, force));
    });
    expect_failure(child, 70, {"worker", "stack overflow", "--godwit-stack-bytes"});
  }
}

TEST(fault, stack_overflow_by_spawns) {
  for (const std::uint32_t workers : {1u, 2u, 3u}) {
    const auto child = run_child([&] {
      return run_words(
          {"--godwit-stack-bytes=1M"}, [] { return recurse_spawning(0); }, schedule(workers));
    });
    expect_failure(child, 70, {"worker", "stack overflow", "--godwit-stack-bytes"});
  }
}

TEST(fault, stack_overflow_by_one_large_frame) {
  const auto child = run_child([] {
    return run_words(
        {"--godwit-stack-bytes=256K"},
        [] {
          auto f = gw::spawn([] {
            volatile char big[600 << 10];
            asm volatile("" : : "r"(big) : "memory");  // or the compiler keeps one byte of it
            big[0] = 1;
            return static_cast<int>(big[0]);
          });
          return f.join();
        },
        schedule(2));
  });
  expect_failure(child, 70, {"worker", "stack overflow", "--godwit-stack-bytes"});
}

TEST(fault, heap_full_of_suspended_threads) {
  for (const char* force : {"parents", "children"}) {
    const auto child = run_child([&] {
      return run_words(
          {"--godwit-heap-bytes=1M"}, [] { return recurse_spawning(0); }, schedule(2, force));
    });
    expect_failure(child, 70, {"worker", "heap is full", "--godwit-heap-bytes"});
  }
}

TEST(fault, heap_full_of_results) {
  const auto child = run_child([] {
    return run_words(
        {"--godwit-heap-bytes=1M", "--godwit-heap=private"},
        [] {
          gw::shared_future<std::string> kept[40];
          for (auto& k : kept) k = gw::spawn([] { return std::string(100000, 'x'); });
          return static_cast<int>(kept[0].get().size());
        },
        schedule(2));
  });
  expect_failure(child, 70, {"worker", "heap is full", "--godwit-heap-bytes"});
}

TEST(fault, write_through_a_reference_to_a_local_of_main) {
  for (const char* force : forces)
    for (const std::uint32_t workers : {1u, 3u}) {
      const auto child = run_child([&] {
        long sum = 5;
        const int status = run_words(
            {},
            [&sum] {
              if (sum != 5) return;  // reading works
              auto f = gw::spawn([&sum] { sum += 1; });
              f.join();
            },
            schedule(workers, force));
        return status != 0 ? status : sum == 6 ? 0 : 99;
      });
      expect_failure(child, 70, {"worker", "local variable", "godwit::run<T>", "return v"});
    }
}

struct cell {
  alignas(64) std::byte handle[2][sizeof(gw::shared_future<int>)];
  std::atomic<int> set[2];
};

// A waits for B and B for A; they get each other's handles through shared memory.
[[gnu::noinline]] int wait_for_the_other(cell* c, int who) {
  while (c->set[who].load() == 0) gw::yield();
  auto* other = reinterpret_cast<gw::shared_future<int>*>(c->handle[who]);
  return other->get() + 1;
}

TEST(fault, deadlock_of_two_threads) {
  for (const char* force : forces)
    for (const std::uint32_t workers : {1u, 2u, 4u}) {
      SCOPED_TRACE(std::string(force) + " " + std::to_string(workers));
      support::shared<cell> shared;
      const auto child = run_child([&] {
        return run_words(
            {},
            [c = shared.get()] {
              gw::shared_future<int> a = gw::spawn([c] { return wait_for_the_other(c, 0); });
              gw::shared_future<int> b = gw::spawn([c] { return wait_for_the_other(c, 1); });
              new (c->handle[0]) gw::shared_future<int>(b);
              new (c->handle[1]) gw::shared_future<int>(a);
              c->set[0] = c->set[1] = 1;
              return a.get();
            },
            schedule(workers, force));
      });
      expect_failure(child, 70, {"deadlock", "outstanding joins: 3", "fault_test.cpp:"}, 4);
    }
}

TEST(fault, deadlock_of_a_thread_with_itself) {
  support::shared<cell> shared;
  const auto child = run_child([&] {
    return run_words(
        {},
        [c = shared.get()] {
          gw::shared_future<int> a = gw::spawn([c] { return wait_for_the_other(c, 0); });
          new (c->handle[0]) gw::shared_future<int>(a);
          c->set[0] = 1;
          return a.get();
        },
        schedule(2));
  });
  expect_failure(child, 70, {"deadlock", "outstanding joins: 2", "fault_test.cpp:"}, 3);
}

TEST(fault, deadlock_of_many_threads) {
  support::shared<cell> shared;
  const auto child = run_child([&] {
    return run_words(
        {},
        [c = shared.get()] {
          gw::shared_future<int> a = gw::spawn([c] { return wait_for_the_other(c, 0); });
          new (c->handle[0]) gw::shared_future<int>(a);
          c->set[0] = 1;
          std::array<gw::future<int>, 50> f;
          for (auto& x : f) x = gw::spawn([a]() mutable { return a.get(); });
          for (auto& x : f) x.join();
        },
        schedule(3));
  });
  expect_failure(child, 70, {"deadlock", "fault_test.cpp:", "..."}, 0);
}

TEST(fault, join_twice) {
  for (const char* force : forces) {
    const auto child = run_child([&] {
      return run_words(
          {},
          [] {
            auto f = gw::spawn([] { return 1; });
            return f.join() + f.join();
          },
          schedule(2, force));
    });
    expect_failure(child, 70, {"join", "no thread", "fault_test.cpp:"});
  }
}

TEST(fault, join_of_an_empty_future) {
  const auto child = run_child([] {
    return run_words(
        {},
        [] {
          gw::future<std::string> f;
          return static_cast<int>(f.join().size());
        },
        schedule(2));
  });
  expect_failure(child, 70, {"join", "no thread", "fault_test.cpp:"});
}

TEST(fault, get_of_an_empty_shared_future) {
  const auto child = run_child([] {
    return run_words(
        {},
        [] {
          gw::shared_future<int> f;
          return f.get();
        },
        schedule(2));
  });
  expect_failure(child, 70, {"no thread", "fault_test.cpp:"});
}

TEST(fault, join_outside_of_run) {
  const auto child = run_child([] {
    gw::future<int> f;
    return f.join();
  });
  expect_failure(child, 70, {"outside", "run"});
}

TEST(fault, spawn_outside_of_run) {
  const auto child = run_child([] { return gw::spawn([] { return 1; }).join(); });
  expect_failure(child, 70, {"outside", "godwit::run"});
  const auto second = run_child([] {
    gw::run<int>([] { return 1; }, schedule(2));
    return static_cast<int>(fib(5));
  });
  expect_failure(second, 70, {"outside", "godwit::run"});
}

TEST(fault, on_each_worker_outside_of_run) {
  const auto child = run_child([] {
    gw::on_each_worker([] {});
    return 0;
  });
  expect_failure(child, 70, {"outside", "run"});
}

TEST(fault, on_each_worker_with_a_local_variable_of_its_caller) {
#if !__has_builtin(__builtin_clear_padding)
  GTEST_SKIP() << "this compiler cannot clear padding, which may look like a reference";
#endif
  const auto child = run_child([] {
    return run_words(
        {},
        [] {
          int mine = 0;
          gw::on_each_worker([&mine] { ++mine; });
          return mine;
        },
        schedule(2));
  });
  expect_failure(child, 70, {"on_each_worker in ", "fault_test.cpp:", "capture by value"});
}

/// Not even where the padding of a closure has been the address of a local variable.
TEST(fault, on_each_worker_with_padding) {
  const auto child = run_child([] {
    return run_words(
        {},
        [] {
          struct padded {
            char one;
            long two;
          };
          int local = 0;
          int* const address = &local;
          alignas(padded) std::array<std::byte, sizeof(padded)> room;
          std::memcpy(room.data(), &address, sizeof address);
          auto* const p = new (room.data()) padded;
          p->one = 0;
          p->two = 1;
          struct call {
            padded inner;
            void operator()() const {}
          };
          call c;
          std::memcpy(static_cast<void*>(&c), room.data(), sizeof c);
          gw::on_each_worker(c);
          return 0;
        },
        schedule(2));
  });
  EXPECT_EQ(child.status, 0) << child.err;
}

TEST(fault, run_inside_of_run) {
  const auto child = run_child([] {
    return run_words(
        {}, [] { return gw::run<int>([] { return 1; }, schedule(2)); }, schedule(2));
  });
  expect_failure(child, 1, {"inside a run"});
  const auto returned = run_child([] {
    return run_words(
        {}, [] { return gw::run(0, nullptr, [] { return 1; }) == 70 ? 17 : 1; }, schedule(2));
  });
  expect_failure(returned, 17, {"inside a run"});
}

TEST(fault, heap_pointer_that_migrated) {
  if (with_asan) GTEST_SKIP() << "the sanitizer's heap is its own";
  const auto child = run_child([] {
    return run_words(
        {"--godwit-heap=private"},
        [] {
          gw::on_each_worker([] {});  // they are all there
          const std::vector<long> v(10000, 1);
          for (const std::uint32_t here = gw::worker_id(); gw::worker_id() == here;) fib(5);
          return static_cast<int>(v[5000]);
        },
        schedule(4, "random"));
  });
  expect_failure(child, 70, {"worker", "heap memory of worker", "heap does not migrate"});
}

TEST(fault, too_little_address_space) {
  if (with_asan) GTEST_SKIP() << "the sanitizer needs it itself";
  const auto child = run_child([] {
    return run_words({"--godwit-heap-bytes=500G", "--godwit-workers=400"}, [] { return 0; });
  });
  expect_failure(child, 70, {"--godwit-heap-bytes"});
}

}  // namespace
