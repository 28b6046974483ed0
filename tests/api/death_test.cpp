// How runs end that end badly: with the same status and the same words on both substrates. (fault_test.cpp
// has what only workers have that are processes.) The table is in docs/writing-programs.md. Lines are known
// where there is debug information, as here.
// test: timeout=240 skip-qemu
#include "support/child.hpp"
#include "support/sanitizer.hpp"
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
#include <string>
#include <sys/resource.h>
#include <unistd.h>

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
int run(F root, const gw::options& o = schedule(2)) {
  char name[] = "program";
  char* argv[] = {name, nullptr};
  return gw::run(1, argv, root, o);
}

/// In a thread, while others compute.
template <class F>
outcome in_a_thread(F body, const gw::options& o = schedule(3)) {
  return run_child([=] {
    return run(
        [body] {
          auto f = gw::spawn([body] {
            fib(6);
            body();
          });
          for (int i = 0; i < 50; ++i) fib(8);
          f.join();
        },
        o);
  });
}

int godwit_lines(const outcome& o) {
  int n = 0;
  for (std::size_t at = o.err.find("godwit: "); at != std::string::npos; at = o.err.find("godwit: ", at + 1))
    n += (at == 0 || o.err[at - 1] == '\n') && o.err.compare(at, 12, "godwit: seed") != 0;
  return n;
}

void expect_end(const outcome& o, int status, std::initializer_list<const char*> words) {
  EXPECT_EQ(o.status, status) << show(o);
  EXPECT_FALSE(o.timed_out);
  EXPECT_EQ(o.left_behind, 0) << show(o);
  EXPECT_EQ(godwit_lines(o), 1) << show(o);
  for (const char* w : words) EXPECT_TRUE(o.err_has(w)) << "no '" << w << "' in: " << show(o);
}

volatile std::uintptr_t nowhere = 16;
volatile int zero = 0, some = 100;
[[gnu::noinline]] void throws() { throw 1; }
void throw_nothing() noexcept { throws(); }

TEST(death, by_a_signal_of_its_own) {
  if (!with_asan) {
    expect_end(in_a_thread([] { *reinterpret_cast<volatile int*>(nowhere) = 1; }), 139,
               {"worker ", "was killed by signal 11 (Segmentation fault)", "at address 0x10, in ",
                "the run is over"});
    expect_end(in_a_thread([] { reinterpret_cast<void (*)()>(std::uintptr_t{8})(); }), 139,
               {"worker ", "signal 11", "address 0x8"});
#if defined(__x86_64__)
    expect_end(in_a_thread([] { zero = some / zero; }), 136, {"worker ", "signal 8", "in "});
    expect_end(in_a_thread([] { __builtin_trap(); }), 132, {"worker ", "signal 4", "in "});
#endif
  }
  expect_end(in_a_thread([] { std::abort(); }), 134,
             {"worker ", "was killed by signal 6 (Aborted), in ", "; the run is over"});
  expect_end(in_a_thread([] { throw_nothing(); }), 134, {"worker ", "signal 6"});
}

constexpr int first_line = __LINE__;
[[gnu::noinline]] void die(bool aborts) {
  if (aborts) std::abort();
  *reinterpret_cast<volatile int*>(nowhere) = 1;
}
[[gnu::noinline]] int descend(int n, bool aborts) {
  if (n == 0) {
    die(aborts);
    return 1;
  }
  auto f = gw::spawn([n, aborts] { return descend(n - 1, aborts); });
  return 1 + f.join();
}
/// "death_test.cpp:70": @p n lines below first_line.
std::string line(int n) { return "death_test.cpp:" + std::to_string(first_line + n); }

TEST(death, says_the_line_and_its_callers_through_spawns) {
  const auto says = [](bool aborts, int status, const char* what, int in) {
    const outcome o = run_child([=] { return run([=] { descend(1, aborts); }, schedule(1)); });
    const std::string lines = "(" + line(in) + "), called at " + line(7) + ", " + line(10);
    expect_end(o, status, {what, "die(bool)", lines.c_str()});
  };
  says(true, 134, "signal 6 (Aborted), in ", 2);
  if (!with_asan) says(false, 139, " at address 0x10, in ", 3);
}

TEST(death, by_exit) {
  expect_end(in_a_thread([] { std::exit(3); }), 70,
             {"worker ", "left the run by exit(3)", "returning from the root thread"});
  expect_end(in_a_thread([] { std::exit(0); }), 70, {"worker ", "left the run by exit(0)"});
}

TEST(death, exit_writes_what_was_printed_and_calls_handlers) {
  const outcome child = in_a_thread([] {
    std::printf("before\n");
    std::atexit([] { std::printf("handler\n"); });
    std::exit(3);
  });
  EXPECT_EQ(child.status, 70) << show(child);
  EXPECT_NE(child.out.find("before\nhandler\n"), std::string::npos) << show(child);
}

// What main does around a run is its own business.
TEST(death, exit_outside_of_runs_is_as_ever) {
  const outcome child = run_child([]() -> int {
    gw::run<int>([] { return 1; }, schedule(2));
    std::exit(3);
  });
  EXPECT_EQ(child.status, 3) << show(child);
  EXPECT_EQ(child.err, "");
}

[[gnu::noinline]] int recurse(int n) {
  volatile char frame[500];
  frame[0] = static_cast<char>(n);
  return n == 0 ? 0 : recurse(n - 1) + frame[0];
}

TEST(death, by_deep_recursion_says_what_to_raise) {
  gw::options small = schedule(2);
  small.stack_bytes = 4 << 20;
  const outcome child = run_child([&] {
    return run(
        [] {
          auto f = gw::spawn([] { return recurse(100'000'000); });
          return f.join();
        },
        small);
  });
  const outcome root = run_child([&] { return run([] { return recurse(100'000'000); }, small); });
  if (support::on_threads()) {
    expect_end(child, 70, {"stack overflow", "256 KiB", "--godwit-thread-stack-bytes", "1024K"});
    expect_end(root, 70,
               {"stack overflow", "the root thread used up its 4 MiB", "--godwit-stack-bytes", "16M"});
  } else {
    expect_end(child, 70, {"stack overflow", "4 MiB", "--godwit-stack-bytes"});
    expect_end(root, 70, {"stack overflow", "4 MiB", "--godwit-stack-bytes"});
  }
}

TEST(death, a_run_inside_of_a_run_throws) {
  const outcome child = run_child([] {
    return run([] {
      auto f = gw::spawn([] {
        try {
          return gw::run<int>([] { return 1; });
        } catch (const gw::run_error& e) {
          return e.status() + (std::string(e.what()).find("inside a run") != std::string::npos);
        }
      });
      return f.join();
    });
  });
  EXPECT_EQ(child.status, 71) << show(child);
  const outcome through = run_child([] {
    try {
      gw::run<int>([] { return gw::run<int>([] { return 1; }); }, schedule(2));
    } catch (const gw::run_error& e) {
      return e.status() + 1;
    }
    return 0;
  });
  EXPECT_EQ(through.status, 71) << show(through);
}

struct wordless : std::runtime_error {
  wordless() : std::runtime_error("") {}
  const char* what() const noexcept override { return nullptr; }
};

TEST(death, of_an_exception_without_words) {
  const outcome child = run_child([] {
    return run(
        [] {
          auto f = gw::spawn([] { throw wordless(); });
          f.join();
        },
        schedule(2, "random"));
  });
  expect_end(child, 1, {"ended with an exception", "null pointer"});
  const outcome unseen = run_child(
      [] { return run([] { static_cast<void>(gw::spawn([] { throw wordless(); })); }, schedule(2)); });
  expect_end(unseen, 0, {"nobody joins", "null pointer"});
}

/// For a while, so that there is time to steal what waits for it.
[[gnu::noinline]] int takes_a_millisecond() {
  usleep(1000);
  return 1;
}

// A worker calls it in the middle of a thread, or between two.
TEST(death, of_a_spawn_or_a_wait_in_a_function_of_on_each_worker) {
  const auto on_worker = [](unsigned w, auto f) {
    return run_child([=] {
      return run(
          [=] {
            gw::on_each_worker([=] {
              if (gw::worker_id() == w) f();
            });
            return 0;
          },
          schedule(2, "none"));
    });
  };
  for (const unsigned w : {0u, 1u}) {  // the caller, and one that is idle
    SCOPED_TRACE(w);
    const std::string worker = "worker " + std::to_string(w);
    expect_end(on_worker(w, [] { gw::spawn(takes_a_millisecond).join(); }), 70,
               {worker.c_str(), "a function that on_each_worker calls came to a spawn"});
    expect_end(on_worker(w, [] { gw::invoke(takes_a_millisecond, takes_a_millisecond); }), 70,
               {worker.c_str(), "a function that on_each_worker calls came to a spawn"});
    expect_end(on_worker(w, [] { gw::yield(); }), 70,
               {worker.c_str(), "a function that on_each_worker calls came to a yield"});
    expect_end(on_worker(w, [] { gw::on_each_worker([] {}); }), 70,
               {worker.c_str(), "came to a call of on_each_worker at ", "death_test.cpp:"});
  }
  const outcome busy = run_child([] {
    return run(
        [] {
          auto f = gw::spawn([] {
            for (int i = 0; i < 200'000; ++i) fib(8);
          });
          gw::on_each_worker([] {
            if (gw::worker_id() == 0) gw::yield();
          });
          f.join();
          return 0;
        },
        schedule(2, "none"));
  });
  expect_end(busy, 70, {"worker 0", "a function that on_each_worker calls came to a yield"});
}

struct places {
  std::array<std::atomic<int>, 4> pid;
  std::atomic<int> ready;
};

/// Somebody sends @p signal to a worker -- on substrate threads to the process -- which is in the middle of
/// something.
outcome sent(int signal) {
  support::shared<places> shared;
  return run_child(
      [&] {
        return run(
            [p = shared.get()] {
              gw::on_each_worker([p] { p->pid[gw::worker_id()] = getpid(); });
              p->ready = 1;
              for (;;) fib(10);
            },
            schedule(3));
      },
      [&](pid_t) {
        while (shared->ready.load() == 0) usleep(500);
        kill(shared->pid[1], signal);
      });
}

TEST(death, by_a_signal_from_outside_names_the_sender) {
  if (with_asan && support::on_threads()) GTEST_SKIP() << "the process ends by the sanitizer's handler";
  const std::string me = "process " + std::to_string(getpid()) + " (";
  const std::string user = "of user " + std::to_string(getuid()) + " sent";
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    SCOPED_TRACE(signal);
    if (with_asan && (signal == SIGFPE || signal == SIGILL)) continue;  // the sanitizer handles these
    for (int round = 0; round < 5; ++round)                             // the first one, always
      expect_end(sent(signal), 128 + signal,
                 {("signal " + std::to_string(signal)).c_str(), me.c_str(), user.c_str()});
  }
}

TEST(death, by_raise) {
  if (with_asan) GTEST_SKIP() << "the sanitizer handles it";
  expect_end(in_a_thread([] { raise(SIGSEGV); }), 139, {"worker ", "signal 11", "which it sent to itself"});
}

TEST(death, interrupts_name_the_sender) {
  GODWIT_NEEDS_PROCESSES("a signal ends the process, as in any program");
  support::shared<std::atomic<int>> ready;
  const outcome child = run_child(
      [&] {
        return run([r = ready.get()] {
          r->store(1);
          for (;;) fib(10);
        });
      },
      [&](pid_t pid) {
        while (ready->load() == 0) usleep(500);
        kill(pid, SIGTERM);
      });
  expect_end(child, 143,
             {"interrupted by signal 15", ("process " + std::to_string(getpid()) + " (").c_str()});
}

TEST(limits, on_data_leave_room_for_a_run) {
  if (with_asan) GTEST_SKIP() << "the sanitizer needs it itself";
  const outcome child = run_child([] {
    const rlimit limit{100'000 << 10, 100'000 << 10};
    setrlimit(RLIMIT_DATA, &limit);
    return run([] { return static_cast<int>(fib(10)); }, schedule(4));
  });
  EXPECT_EQ(child.status, 55) << show(child);
}

TEST(limits, on_memory_that_workers_surely_pass_say_so) {
  GODWIT_NEEDS_PROCESSES("so many threads are too many addresses first");
  const outcome child = run_child([] { return run([] { return 0; }, schedule(16'000'000)); });
  expect_end(child, 70, {"16000000 workers", "MiB are available", "have at most", "GODWIT_WORKERS"});
}

TEST(limits, on_the_stack_that_are_too_low_say_so) {
  if (!support::on_threads()) GTEST_SKIP() << "only there";
  const outcome child = run_child([] {
    const rlimit limit{16 << 10, 16 << 10};
    setrlimit(RLIMIT_STACK, &limit);
    return run([] { return 0; });
  });
  expect_end(child, 70, {"ulimit -s"});
}

}  // namespace
