// The heap that worker processes share, as programs see it: where it is and where not, locks in it, OS
// threads, forked children, what is left after a run.
// test: timeout=300 skip-asan skip-qemu
#include "heap/owning.hpp"

#include <godwit/sim.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <condition_variable>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

namespace gw = godwit;
using owning::elsewhere, owning::long_text, owning::many, owning::shared_heap;

int vectors(int n) {
  std::vector<int> v(static_cast<std::size_t>(50 + n), n);
  elsewhere();
  for (int i = 0; i < 1000; ++i) v.push_back(i);  // grows where the thread is now
  elsewhere();
  return v.front() != n || v.back() != 999 || v.size() != static_cast<std::size_t>(1050 + n);
}

TEST(Shared, IsTheDefault) {
  EXPECT_EQ(gw::run<int>([] { return many(vectors, 4); }, support::schedule(4, "random")), 0);
}

// With private heaps it stays: what it owns would be left behind.
TEST(Shared, AChildThatOwnsMayBeMadeToLeave) {
  const auto left = [](gw::choice::heap heap) {
    gw::options o = shared_heap(1, "children");
    o.heap = heap;
    EXPECT_EQ(gw::run<int>(
                  [] {
                    auto held = std::make_unique<int>(7);
                    return gw::spawn([held = std::move(held)] { return *held; }).join();
                  },
                  o),
              7);
    return gw::last_run_stats().at(0).suspends;
  };
  EXPECT_GT(left(gw::choice::heap::shared), left(gw::choice::heap::separate));
}

// A thread that cannot begin: nobody keeps what it was to own.
TEST(Shared, AClosureThatCannotBeSentIsDestroyed) {
  EXPECT_EQ(gw::run<long>(
                [] {
                  const auto text = std::make_shared<std::string>(long_text(1));
                  for (int i = 0; i < 3; ++i) try {
                      gw::spawn_at(
                          gw::worker(1000), [text](std::string) {}, long_text(i))
                          .join();
                    } catch (const std::invalid_argument&) {
                    }
                  return text.use_count();
                },
                shared_heap(2, "none")),
            1);
}

// Simulated workers of one host.
TEST(Shared, InTheSimulator) {
  gw::options o = shared_heap(8, "none");
  o.substrate = gw::choice::substrate::sim;
  o.quiet = true;
  EXPECT_EQ(gw::run<int>(
                [] {
                  std::vector<gw::future<std::unique_ptr<std::string>>> all;
                  for (int i = 0; i < 100; ++i)
                    all.push_back(gw::spawn([i, text = long_text(i)] {
                      gw::sim::charge(1000);
                      elsewhere();
                      return std::make_unique<std::string>(text);
                    }));
                  int wrong = 0;
                  for (int i = 0; i < 100; ++i)
                    wrong += *all[static_cast<std::size_t>(i)].join() != long_text(i);
                  return wrong;
                },
                o),
            0);
  std::uint64_t steals = 0;
  for (const auto& w : gw::last_run_stats()) steals += w.steals;
  EXPECT_GT(steals, 0u);
}

// Workers of several processes wait for each other by the C++ library's means.
TEST(Shared, MutexesAndConditionVariablesBetweenWorkers) {
  struct counted {
    std::mutex m;
    std::condition_variable c;
    int n = 0;
  };
  EXPECT_EQ(gw::run<int>(
                [] {
                  const auto all = std::make_shared<counted>();
                  gw::on_each_worker([all = all.get()] {
                    for (int i = 0; i < 200; ++i) {
                      const std::lock_guard l(all->m);
                      const int n = all->n;
                      if (i % 16 == 0) usleep(20);
                      all->n = n + 1;
                    }
                    all->c.notify_all();
                    std::unique_lock l(all->m);
                    all->c.wait(l, [&] { return all->n == 800; });
                  });
                  return all->n;
                },
                shared_heap(4, "none")),
            800);
}

// OS threads that a thread starts, and who frees what they and it have made.
TEST(Shared, OsThreadsInThreads) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  return many(
                      [](int n) -> int {
                        std::vector<std::string> made(20, long_text(n)), others;
                        std::thread([&made, &others, n] {
                          made.clear();
                          for (int i = 0; i < 20; ++i) others.push_back(long_text(n));
                          made.assign(20, "short");
                        }).join();
                        // what the OS thread made stays in its process: used here, and copied into the heap
                        made = std::vector<std::string>(others);
                        others = std::vector<std::string>();
                        elsewhere();
                        return made.size() != 20 || made.back() != long_text(n);
                      },
                      3);
                },
                shared_heap(2, "random")),
            0);
}

// What a forked child writes and frees of the heap does not reach the run.
TEST(Shared, AForkedChildHasACopy) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  return many(
                      [](int n) -> int {
                        auto text = std::make_unique<std::string>(long_text(n));
                        std::vector<std::string> many(100, long_text(n));
                        const pid_t pid = fork();
                        if (pid == 0) {
                          const bool whole = *text == long_text(n) && many.back() == long_text(n);
                          *text += "written by the child, and longer than before";
                          many.clear();
                          many.resize(1000, "of the child's own");
                          text.reset();
                          const pid_t next = fork();  // a child of the child
                          if (next == 0) _exit(std::string(5000, 'x').size() == 5000 ? 0 : 1);
                          int its = -1;
                          while (waitpid(next, &its, 0) < 0 && errno == EINTR) {
                          }
                          _exit(whole && its == 0 ? 0 : 1);
                        }
                        int status = -1;
                        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
                        }
                        elsewhere();
                        many.resize(200, long_text(n + 1));
                        return status != 0 || *text != long_text(n) || many.at(99) != long_text(n);
                      },
                      3);
                },
                shared_heap(2, "random")),
            0);
}

// What main allocates later is what it would be without runs.
TEST(Shared, ManyRunsLeaveNothing) {
  const auto mapped = [] {  // in pages: the first number
    std::ifstream in("/proc/self/statm");
    long pages = 0;
    in >> pages;
    return pages;
  };
  const long before = mapped();
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(gw::run<int>([] { return many(vectors, 2); }, shared_heap(2, "random")), 0);
  EXPECT_LT(mapped(), before + 10'000);
}

}  // namespace
