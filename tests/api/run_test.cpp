// Tests of run: values, exit statuses, several runs in one process, what workers see of main, output,
// options, interrupts.
// test: timeout=120 skip-qemu
#include "support/substrate.hpp"
#include "support/child.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace gw = godwit;
using support::for_each_schedule;
using support::run_child;
using support::show;

[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

/// run with a command line of these words.
template <class F>
int run_words(std::vector<std::string> words, F&& root, const gw::options& o = {}) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  return gw::run(static_cast<int>(words.size()), argv.data(), root, o);
}

TEST(run, gives_back_values) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>([] { return 7; }, o), 7);
    EXPECT_EQ(gw::run<std::string>([] { return std::string(100000, 'r'); }, o).size(), 100000u);
    gw::run<void>([] { fib(3); }, o);
    const auto m = gw::run<std::map<std::string, long>>(
        [] {
          const long f = fib(7);
          return std::map<std::string, long>{{"fib", f}};
        },
        o);
    EXPECT_EQ(m.at("fib"), 13);
  });
}

TEST(run, without_a_command_line) {
  gw::options o;
  o.workers = 3;
  EXPECT_EQ(gw::run(o, [] { return static_cast<int>(gw::worker_count()); }), 3);
  EXPECT_EQ(gw::run(o, [] { fib(3); }), 0);
  EXPECT_EQ(gw::run<long>(o, [] { return fib(7); }), 13);
  EXPECT_EQ(gw::run({}, [] { return 5; }), 5);
  o.bind = static_cast<gw::choice::bind>(9);
  EXPECT_THROW(gw::run<int>(o, [] { return 1; }), std::invalid_argument);
}

TEST(run, gives_back_exit_statuses) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(run_words(
                  {}, [] { fib(4); }, o),
              0);
    EXPECT_EQ(run_words(
                  {}, [] { return static_cast<int>(fib(4)); }, o),
              3);
    EXPECT_EQ(run_words(
                  {}, [] { return fib(5) == 5; }, o),
              1);
  });
}

TEST(run, exception_becomes_status_1_and_a_line) {
  for_each_schedule([](const gw::options& o) {
    testing::internal::CaptureStderr();
    const int status = run_words(
        {}, [] { gw::spawn([] { throw std::range_error("too far"); }).join(); }, o);
    std::string text = testing::internal::GetCapturedStderr();
    if (text.rfind("godwit: seed", 0) == 0) text.erase(0, text.find('\n') + 1);
    EXPECT_EQ(status, 1);
    EXPECT_EQ(text, "godwit: the root thread ended with an exception: too far\n");
  });
}

TEST(run, a_cancelled_root_becomes_a_line_that_says_what_to_do) {
  testing::internal::CaptureStderr();
  const int status = run_words(
      {},
      [] {
        gw::cancel_scope scope;
        scope.cancel();
        gw::yield();
      },
      support::schedule(1));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(status, 1);
  EXPECT_NE(text.find("call what a cancel_scope is to stop in its run(f)"), std::string::npos) << text;
}

TEST(run, rethrows_from_the_value_form) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_THROW(gw::run<int>([]() -> int { throw std::range_error("x"); }, o), std::range_error);
    EXPECT_THROW(gw::run<void>([] { gw::spawn([] { throw 3; }).join(); }, o), int);
  });
}

TEST(run, many_times_with_changing_workers) {
  for (int round = 0; round < 5; ++round)
    for (std::uint32_t workers = 1; workers <= 5; ++workers) {
      const auto seen = gw::run<std::uint32_t>([] { return fib(6) == 8 ? gw::worker_count() : 0; },
                                               support::schedule(workers));
      EXPECT_EQ(seen, workers);
      EXPECT_EQ(gw::last_run_stats().size(), gw::is_first_process() ? workers : 1);
    }
  EXPECT_EQ(support::own_shared_memory(), 0);
  EXPECT_EQ(gw::worker_count(), 0u);
}

TEST(run, after_a_run_that_failed) {
  GODWIT_NEEDS_PROCESSES("a fatal error ends the process");
  EXPECT_THROW(gw::run<int>([]() -> int { std::abort(); }, support::schedule(2)), gw::run_error);
  EXPECT_EQ(gw::run<long>([] { return fib(6); }, support::schedule(2)), 8);
  EXPECT_EQ(support::own_shared_memory(), 0);
}

int global_number = 0;
std::vector<std::string> global_words;

TEST(run, what_main_made_can_be_read_everywhere) {
  global_number = 41;
  global_words = {"one", std::string(100, 'w')};
  std::vector<int> local(1000);
  for (int i = 0; i < 1000; ++i) local[i] = i;
  std::map<std::string, int> map{{"a", 1}, {"b", 2}};
  const std::string text(200, 't');
  int on_stack = 5;
  for_each_schedule([&](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [&] {
                    std::array<gw::future<long>, 10> f;
                    for (int k = 0; k < 10; ++k)
                      f[k] = gw::spawn([&, k] {
                        fib(3);
                        long sum = global_number + on_stack + map.at("b") + static_cast<long>(text.size());
                        sum += static_cast<long>(global_words[1].size());
                        for (int i = k * 100; i < k * 100 + 100; ++i) sum += local[i];
                        return sum;
                      });
                    long sum = 0;
                    for (auto& x : f) sum += x.join();
                    return sum;
                  },
                  o),
              10 * (41 + 5 + 2 + 200 + 100) + 499500);
  });
}

// Each thread prints one line without flushing; all arrive, whole.
TEST(run, output_of_all_workers_is_flushed) {
  GODWIT_NEEDS_PROCESSES("there is one buffer");
  for_each_schedule([](const gw::options& o) {
    const auto child = run_child([&] {
      std::printf("before without newline;");
      std::cout << "also before;";
      return run_words(
          {},
          [] {
            std::array<gw::future<void>, 30> f;
            for (int i = 0; i < 30; ++i)
              f[i] = gw::spawn([i] {
                fib(3);
                if (i % 2 != 0)
                  std::printf("<p%d>", i);
                else
                  std::cout << "<c" << i << '>';
              });
            for (auto& x : f) x.join();
            gw::on_each_worker([] { std::printf("[w%u]", gw::worker_id()); });
            std::cout << "the end without newline";
          },
          o);
    });
    EXPECT_EQ(child.status, 0) << show(child);
    const auto count = [&](const std::string& s) {
      int n = 0;
      for (std::size_t at = child.out.find(s); at != std::string::npos; at = child.out.find(s, at + 1)) ++n;
      return n;
    };
    EXPECT_EQ(count("before without newline;"), 1) << show(child);
    EXPECT_EQ(count("also before;"), 1);
    EXPECT_EQ(count("the end without newline"), 1) << show(child);
    for (int i = 0; i < 30; ++i)
      EXPECT_EQ(count((i % 2 != 0 ? "<p" : "<c") + std::to_string(i) + ">"), 1) << i;
    for (std::uint32_t w = 0; w < o.workers; ++w)
      EXPECT_EQ(count("[w" + std::to_string(w) + "]"), 1) << show(child);
  });
}

TEST(run, from_a_thread_that_is_not_main) {
  for_each_schedule([](const gw::options& o) {
    long result = 0;
    std::thread([&] { result = gw::run<long>([] { return fib(8); }, o); }).join();
    EXPECT_EQ(result, 21);
  });
}

TEST(run, every_worker_has_its_own_id) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::array<std::atomic<int>, 16>> called;
    EXPECT_EQ(gw::run<std::uint32_t>(
                  [c = called.get()] {
                    gw::on_each_worker([c] { (*c)[gw::worker_id()].fetch_add(1); });
                    fib(4);
                    gw::on_each_worker([c] { (*c)[gw::worker_id()].fetch_add(1); });
                    return gw::worker_count();
                  },
                  o),
              o.workers);
    for (std::uint32_t w = 0; w < 16; ++w) EXPECT_EQ((*called)[w].load(), w < o.workers ? 2 : 0) << w;
  });
}

TEST(run, on_each_worker_from_several_threads_at_once) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> called;
    gw::run<int>(
        [c = called.get()] {
          std::array<gw::future<void>, 4> f;
          for (auto& x : f) x = gw::spawn([c] { gw::on_each_worker([c] { c->fetch_add(1); }); });
          for (auto& x : f) x.join();
          return 0;
        },
        o);
    EXPECT_EQ(called->load(), 4 * static_cast<int>(o.workers));
  });
}

TEST(run, on_tick_is_called_and_sees_shared_memory) {
  support::shared<std::atomic<int>> shared;
  int last = -1, calls = 0;
  gw::on_tick(std::chrono::milliseconds(1), [&] {
    ++calls;
    last = shared->load();
  });
  gw::run<int>(
      [s = shared.get()] {
        for (int i = 0; i < 20; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          s->fetch_add(1);
          fib(3);
        }
        return 0;
      },
      support::schedule(2));
  gw::on_tick({}, {});
  EXPECT_GE(calls, 2);
  EXPECT_EQ(last, 20) << "the last call comes after the run";
  const int before = calls;
  gw::run<int>([] { return 0; }, support::schedule(2));
  EXPECT_EQ(calls, before) << "an empty function ends it";
}

/// The first has all workers' counters one by one, other ranks their sums.
TEST(run, every_process_knows_what_all_workers_counted) {
  for (std::uint32_t workers = 1; workers <= 4; ++workers) {
    gw::run<int>([] { return gw::on_each_worker([] {}), 0; }, support::schedule(workers));
    std::uint64_t letters = 0, stack = 0;
    for (const auto& s : gw::last_run_stats())
      letters += s.letters, stack = std::max(stack, s.stack_high_bytes);
    EXPECT_EQ(letters, workers - 1);
    EXPECT_TRUE(stack > 0 || support::on_threads()) << "threads have no region whose use is counted";
  }
}

TEST(run, stats_count_what_happened) {
  gw::run<long>([] { return fib(10); }, support::schedule(2, "parents"));
  const auto& stats = gw::last_run_stats();
  ASSERT_EQ(stats.size(), 2u);
  std::uint64_t suspends = 0, resumes = 0, exposures = 0;
  for (const auto& s : stats) {
    suspends += s.suspends;
    resumes += s.resumes;
    exposures += s.exposures;
  }
  EXPECT_GT(suspends, 100u);
  EXPECT_EQ(suspends, resumes) << "everything that was suspended ran again";
  EXPECT_GT(exposures, 0u);
  if (!support::on_threads()) {
    EXPECT_GT(stats[0].stack_high_bytes, 0u);
  }
  EXPECT_GT(stats[0].heap_high_bytes, 0u);
  const auto child = run_child([] {
    return run_words({"--godwit-stats", "--godwit-workers=3"}, [] { fib(5); });
  });
  EXPECT_EQ(child.status, 0);
  EXPECT_NE(child.err.find("3 workers on 1 host, policy greedy"), std::string::npos) << show(child);
  EXPECT_NE(child.err.find("outstanding joins"), std::string::npos) << show(child);
}

TEST(run, spawns_outside_of_the_workers_are_impossible_but_handles_are_harmless) {
  gw::future<int> empty;
  gw::shared_future<int> none;
  EXPECT_FALSE(empty.valid());
  EXPECT_FALSE(none.valid());
  EXPECT_EQ(gw::worker_id(), 0u);
}

// What a user types wrong: one line, status 2, nothing started.
struct bad_option {
  const char* flag;
  const char* variable;
  const char* value;
  const char* words;
};
class bad_options : public testing::TestWithParam<bad_option> {};
TEST_P(bad_options, give_status_2_and_one_line) {
  const bad_option& bad = GetParam();
  support::shared<std::atomic<int>> started;
  const auto child = run_child([&] {
    std::vector<std::string> words;
    if (bad.flag != nullptr)
      words.push_back(std::string(bad.flag) + (bad.value[0] != '\0' ? "=" : "") + bad.value);
    if (bad.variable != nullptr) setenv(bad.variable, bad.value, 1);
    return run_words(words, [s = started.get()] { s->store(1); });
  });
  EXPECT_EQ(child.status, 2) << show(child);
  EXPECT_EQ(child.err_lines(), 1) << show(child);
  EXPECT_TRUE(child.err_has(bad.words)) << show(child);
  EXPECT_EQ(child.err.rfind("godwit: ", 0), 0u) << show(child);
  EXPECT_EQ(started->load(), 0);
}
INSTANTIATE_TEST_SUITE_P(run, bad_options,
                         testing::Values(bad_option{"--godwit-workers", nullptr, "-3", "workers"},
                                         bad_option{nullptr, "GODWIT_WORKERS", "abc", "GODWIT_WORKERS"},
                                         bad_option{nullptr, "GODWIT_WORKRS", "2", "GODWIT_WORKRS"},
                                         bad_option{"--godwit-nonsense", nullptr, "", "nonsense"},
                                         bad_option{"--godwit-stack-bytes", nullptr, "1", "stack"},
                                         bad_option{"--godwit-heap-bytes", nullptr, "99999T", "heap"},
                                         bad_option{"--godwit-force-steal", nullptr, "everybody",
                                                    "force-steal"},
                                         bad_option{"--godwit-delay-us", nullptr, "1.5", "delay"},
                                         bad_option{nullptr, "GODWIT_SEED", "", "GODWIT_SEED"}));

TEST(run, bad_options_throw_from_the_value_form) {
  gw::options o;
  o.workers = 100'000'000;
  EXPECT_THROW(gw::run<int>([] { return 1; }, o), std::invalid_argument);
}

TEST(run, flag_beats_variable_beats_struct) {
  const auto workers_of = [](std::vector<std::string> words, const char* variable) {
    return run_child([&] {
             if (variable != nullptr) setenv("GODWIT_WORKERS", variable, 1);
             return run_words(
                 words, [] { return static_cast<int>(gw::worker_count()); }, support::schedule(5));
           })
        .status;
  };
  EXPECT_EQ(workers_of({}, nullptr), 5);
  EXPECT_EQ(workers_of({}, "3"), 3);
  EXPECT_EQ(workers_of({"--godwit-workers=2"}, "3"), 2);
}

TEST(run, environment_variables_are_seen_by_threads) {
  setenv("SOME_NAME", "some value", 1);
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(
                  [] {
                    fib(3);
                    return std::string(std::getenv("SOME_NAME"));
                  },
                  o),
              "some value");
  });
}

// ^C, kill and a closed terminal in the middle of a run.
class interrupt : public testing::TestWithParam<int> {};
TEST_P(interrupt, ends_the_run) {
  GODWIT_NEEDS_PROCESSES("a signal ends the process");
  const int signal = GetParam();
  for (const char* force : {"none", "random"}) {
    support::shared<std::atomic<int>> going;
    const auto child = run_child(
        [&] {
          return run_words(
              {},
              [g = going.get()] {
                for (;;) {
                  fib(8);
                  g->store(1);
                }
              },
              support::schedule(4, force));
        },
        [&](pid_t pid) {
          while (going->load() == 0) usleep(1000);
          kill(signal == SIGINT ? -pid : pid, signal);  // a terminal sends ^C to the whole group
        });
    EXPECT_EQ(child.status, 128 + signal) << show(child);
    EXPECT_LT(child.seconds, 20) << show(child);
    EXPECT_EQ(child.left_behind, 0);
    EXPECT_TRUE(child.err_has("interrupted by signal")) << show(child);
  }
}
INSTANTIATE_TEST_SUITE_P(run, interrupt, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST(run, ignored_interrupts_stay_ignored) {
  support::shared<std::atomic<int>> going;
  const auto child = run_child(
      [&] {
        signal(SIGHUP, SIG_IGN);  // as nohup does
        return run_words(
            {},
            [g = going.get()] {
              int expected = 0;
              g->compare_exchange_strong(expected, 1);  // or 2 already
              while (g->load() < 2) fib(6);
              return 9;
            },
            support::schedule(2));
      },
      [&](pid_t pid) {
        while (going->load() == 0) usleep(1000);
        kill(-pid, SIGHUP);
        usleep(20000);
        going->store(2);
      });
  EXPECT_EQ(child.status, 9) << show(child);
}

/// main's own handlers, or the end of the process: nobody has told of the signal by then.
TEST(run, a_signal_that_comes_while_a_run_ends_is_for_main) {
  static std::atomic<int> caught;
  for (const bool handled : {true, false}) {
    const auto child = run_child([&] {
      if (handled) signal(SIGTERM, [](int) { caught = 1; });
      int ticks = 0;
      gw::on_tick(std::chrono::hours(1), [&] {
        if (++ticks == 2) kill(getpid(), SIGTERM);  // the last one comes after the workers' end
      });
      const int value = gw::run<int>([] { return static_cast<int>(fib(5)); }, support::schedule(2));
      return value == 5 && caught == 1 ? 9 : 1;
    });
    EXPECT_EQ(child.status, handled ? 9 : 128 + SIGTERM) << show(child);
  }
}

/// Another thread of main's process forks while the run goes on.
TEST(run, a_signal_for_a_child_of_main_is_for_that_alone) {
  support::shared<std::atomic<int>> step;
  const auto child = run_child(
      [&] {
        int status = -1;
        std::thread other([&, s = step.get()] {
          while (s->load() == 0) usleep(1000);
          const pid_t pid = fork();
          if (pid == 0) {
            s->store(2);
            for (;;) pause();
          }
          while (s->load() != 2) usleep(1000);
          kill(pid, SIGTERM);
          waitpid(pid, &status, 0);
          s->store(3);
        });
        const int value = gw::run<int>(
            [s = step.get()] {
              s->store(1);
              while (s->load() != 3) usleep(1000);
              return 9;
            },
            support::schedule(2));
        other.join();
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? value : 1;
      },
      {}, 60);
  EXPECT_EQ(child.status, 9) << show(child);
}

/// It has the parent's run, but not the thread that is inside it.
TEST(run, in_a_child_of_main_forked_meanwhile_is_refused) {
  support::shared<std::atomic<int>> step;
  const auto child = run_child([&] {
    int status = -1;
    std::thread other([&, s = step.get()] {
      while (s->load() == 0) usleep(1000);
      const pid_t pid = fork();
      if (pid == 0) _exit(run_words({}, [] { return 3; }));
      waitpid(pid, &status, 0);
      s->store(2);
    });
    const int value = gw::run<int>(
        [s = step.get()] {
          s->store(1);
          while (s->load() != 2) usleep(1000);
          return 9;
        },
        support::schedule(2));
    other.join();
    return WIFEXITED(status) && WEXITSTATUS(status) == 70 ? value : 1;
  });
  EXPECT_EQ(child.status, 9) << show(child);
  EXPECT_TRUE(child.err_has("fork made while its parent was inside run")) << show(child);
}

enum class waiter { ignores, waits_for_all };

/// The ends of workers are got by nobody, or by another thread, which does not know them.
TEST(run, ends_where_others_wait_for_its_workers) {
  GODWIT_NEEDS_PROCESSES("there are no children");
  for (const waiter how : {waiter::ignores, waiter::waits_for_all})
    for (const bool dies : {false, true}) {
      const auto child = run_child(
          [&] {
            std::atomic<bool> over{false};
            if (how == waiter::ignores) signal(SIGCHLD, SIG_IGN);
            std::thread other([&] {
              while (how == waiter::waits_for_all && !over)
                if (wait(nullptr) < 0) usleep(100);
            });
            const int status = run_words(
                {},
                [dies] {
                  fib(8);
                  if (dies) raise(SIGKILL);
                  return 9;
                },
                support::schedule(3));
            over = true;
            other.join();
            return status;
          },
          {}, 60);
      EXPECT_FALSE(child.timed_out) << show(child);
      const bool known = child.status == 128 + SIGKILL;  // the run may have been faster
      EXPECT_TRUE(child.status == (dies ? 70 : 9) || (dies && known && how == waiter::waits_for_all))
          << show(child);
      EXPECT_TRUE(!dies || known || child.err_has("waits for all children")) << show(child);
      EXPECT_EQ(child.left_behind, 0);
    }
}

}  // namespace
