// What main makes in a shared_scope or as shared_global: one object for all workers and runs.
// test: timeout=300 skip-asan skip-qemu
#include "heap/heap.hpp"
#include "heap/shared_objects.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/single_threaded.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

namespace heap = godwit::heap;
using namespace shared_objects_test;

// Built before main as well.
gw::shared_global<memo> global_memo;
gw::shared_global<std::vector<int>> results(3, 7);

TEST(Scope, WhatIsAllocatedInItLiesInTheHeap) {
  std::unique_ptr<int> inside, outside = std::make_unique<int>(1), nested, other;
  {
    const gw::shared_scope shared;
    EXPECT_FALSE(__libc_single_threaded);  // main counts references as workers do
    inside = std::make_unique<int>(2);
    {
      const gw::shared_scope again;
      nested = std::make_unique<int>(3);
    }
    std::thread([&] { other = std::make_unique<int>(4); }).join();  // not affected
    EXPECT_TRUE(in_heap(std::make_unique<int>(5).get()));
  }
  EXPECT_TRUE(in_heap(inside.get()));
  EXPECT_TRUE(in_heap(nested.get()));
  EXPECT_FALSE(in_heap(outside.get()));
  EXPECT_FALSE(in_heap(other.get()));
  EXPECT_FALSE(in_heap(std::make_unique<int>(6).get()));
}

TEST(Scope, OsThreadsOfMainHaveScopesAtOnce) {
  constexpr int threads = 12, each = 20'000;
  std::vector<std::vector<std::unique_ptr<int>>> all(threads);
  std::atomic<int> ready{0};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&all, &ready, t] {
      const gw::shared_scope shared;
      ++ready;
      while (ready != threads) usleep(1);
      for (int i = 0; i < each; ++i) all[static_cast<std::size_t>(t)].push_back(std::make_unique<int>(t));
      for (int i = 0; i < each; i += 2) all[static_cast<std::size_t>(t)][static_cast<std::size_t>(i)].reset();
    });
  for (std::thread& t : running) t.join();
  heap::check_invariants();
  for (int t = 0; t < threads; ++t)
    for (int i = 1; i < each; i += 2)
      ASSERT_EQ(*all[static_cast<std::size_t>(t)][static_cast<std::size_t>(i)], t);
}

TEST(Scope, TooManyAtOnceAreRefused) {
  std::atomic<int> in{0}, refused{0};
  std::atomic<bool> end{false};
  std::vector<std::thread> running;
  for (int t = 0; t < 20; ++t)
    running.emplace_back([&] {
      try {
        const gw::shared_scope shared;
        ++in;
        while (!end) usleep(100);
      } catch (const std::runtime_error&) {
        ++refused;
      }
    });
  while (in + refused != 20) usleep(100);
  end = true;
  for (std::thread& t : running) t.join();
  EXPECT_EQ(in, 16);
  EXPECT_EQ(refused, 4);
}

TEST(Scope, ThreadsFillATableInSeveralRuns) {
  for_each_schedule([](const gw::options& o) {
    for (int round = 0; round < 3; ++round) {
      gw::run<int>(
          [round] {
            return many(
                [round](int n) {
                  elsewhere();
                  global_memo->put(1000 * round + n);
                  elsewhere();
                  return 0;
                },
                5);
          },
          o);
      for (int n = 0; n < 32; ++n)
        EXPECT_EQ(global_memo->texts.at(1000 * round + n), long_text(1000 * round + n));
    }
    EXPECT_EQ(global_memo->texts.size(), 96u);
    heap::check_invariants();
    global_memo->texts.clear();
  });
}

TEST(Scope, MainGrowsWhatThreadsGrow) {
  for_each_schedule([](const gw::options& o) {
    results->clear();
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 500; ++i) results->push_back(i);
      gw::run<void>(
          [] {
            for (int i = 0; i < 500; ++i) results->push_back(1000 + i);
            elsewhere();
          },
          o);
    }
    ASSERT_EQ(results->size(), 4000u);
    for (std::size_t i = 0; i < 4000; ++i)
      ASSERT_EQ((*results)[i], static_cast<int>(i % 1000 < 500 ? i % 500 : 1000 + i % 500));
  });
}

struct counted {
  static inline std::atomic<int>* destroyed = nullptr;
  std::string text = long_text(3);
  ~counted() { ++*destroyed; }
};

TEST(Scope, CountsOfSharedPtrAreExact) {
  for_each_schedule([](const gw::options& o) {
    std::shared_ptr<counted> p;
    std::weak_ptr<counted> w;
    {
      const gw::shared_scope shared;
      counted::destroyed = new std::atomic<int>(0);
      p = std::make_shared<counted>();
      w = p;
    }
    const int sum = gw::run<int>(
        [&p] {
          return many(
              [&p](int) {
                const std::shared_ptr<counted> mine = p;
                elsewhere();
                std::vector<std::shared_ptr<counted>> copies(10, mine);
                elsewhere();
                return static_cast<int>(copies.back()->text.size());
              },
              5);
        },
        o);
    EXPECT_EQ(sum, 32 * static_cast<int>(long_text(3).size()));
    EXPECT_EQ(p.use_count(), 1);
    EXPECT_EQ(*counted::destroyed, 0);
    p.reset();
    EXPECT_TRUE(w.expired());
    EXPECT_EQ(*counted::destroyed, 1);
    delete std::exchange(counted::destroyed, nullptr);
  });
}

// The last one to have it may be a thread.
TEST(Scope, AThreadMayDestroyWhatMainMade) {
  for_each_schedule([](const gw::options& o) {
    std::shared_ptr<counted>* p = nullptr;
    {
      const gw::shared_scope shared;
      counted::destroyed = new std::atomic<int>(0);
      p = new std::shared_ptr<counted>(std::make_shared<counted>());
    }
    gw::run<void>(
        [p] {
          many(
              [p](int n) {
                elsewhere();
                if (n == 5) p->reset();
                return 0;
              },
              4);
        },
        o);
    EXPECT_EQ(*p, nullptr);
    EXPECT_EQ(*counted::destroyed, 1);
    delete p;
    delete std::exchange(counted::destroyed, nullptr);
  });
}

/// What main keeps of what threads have made, in variables of each kind.
std::string* kept_in_variable = nullptr;
struct box {
  std::string* text = nullptr;
  char* inside = nullptr;
};

TEST(Kept, IsWhatMainCanReach) {
  for_each_schedule([](const gw::options& o) {
    box* shared_box = nullptr;
    {
      const gw::shared_scope shared;
      shared_box = new box[3];
    }
    const auto fill = [shared_box] {
      for (int i = 0; i < 3; ++i) {
        shared_box[i].text = new std::string(long_text(i));
        elsewhere();
      }
      shared_box[2].inside = new char[1 << 20] + 12345;  // found by an address inside, of a large one
      *shared_box[2].inside = 'x';
    };
    gw::run<void>(fill, o);
    kept_in_variable = std::exchange(shared_box[0].text, nullptr);
    auto in_mains_heap = std::make_unique<std::string*>(std::exchange(shared_box[1].text, nullptr));
    std::string* volatile on_stack = std::exchange(shared_box[2].text, nullptr);
    // What the next ones leave lies where those would, were they not kept.
    for (int i = 0; i < 3; ++i)
      gw::run<void>([] { many([](int n) { return new std::string(long_text(n)) == nullptr; }, 4); }, o);
    EXPECT_EQ(*kept_in_variable, long_text(0));
    EXPECT_EQ(**in_mains_heap, long_text(1));
    EXPECT_EQ(*on_stack, long_text(2));
    EXPECT_EQ(*shared_box[2].inside, 'x');
    delete kept_in_variable;
    delete *in_mains_heap;
    delete on_stack;
    delete[](shared_box[2].inside - 12345);
    delete[] shared_box;
    heap::check_invariants();
  });
}

TEST(Kept, IsNothingElse) {
  for_each_schedule([](const gw::options& o) {
    gw::run<void>([] {}, o);
    const std::uint64_t before = heap::live_bytes(), spans = heap::here.all->fresh;
    for (int round = 0; round < 10; ++round)
      gw::run<void>(
          [] {
            many(
                [](int n) {  // leaks, all of it
                  auto* leaked = new std::vector<std::string>(100, long_text(n));
                  elsewhere();
                  leaked->push_back(long_text(n));
                  return static_cast<int>(std::calloc(300, 1000) == nullptr);
                },
                4);
          },
          o);
    gw::run<void>([] {}, o);
    EXPECT_LE(heap::live_bytes(), before + 5'000'000);  // of 50; an old word on main's stack may lead to one
    EXPECT_LT(heap::here.all->fresh,
              spans + 1000);  // 16 * 300 KB * 10 would be 768 more for the large ones alone
    heap::check_invariants();
  });
}

// Also by command: STRESS_REPEAT=5 has 1,000.
TEST(Kept, RunsInARowDoNotGrow) {
  const gw::options o = support::schedule(2, "random");
  const std::uint64_t runs = 200 * support::number_from_environment("STRESS_REPEAT", 1);
  std::uint64_t live = 0, spans = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    std::vector<std::unique_ptr<std::string>> from_main;
    {
      const gw::shared_scope shared;
      for (int n = 0; n < 16; ++n) from_main.push_back(std::make_unique<std::string>(long_text(n)));
    }
    gw::run<void>(
        [&from_main] {
          many(
              [&from_main](int n) {
                global_memo->put(n);
                delete from_main[static_cast<std::size_t>(n)].release();
                return static_cast<int>(new std::string(static_cast<std::size_t>(10'000 + n), 'x') ==
                                        nullptr);
              },
              4);
        },
        o);
    for (auto& p : from_main) static_cast<void>(p.release());  // threads have freed them
    {
      const gw::shared_scope shared;  // main's own comes and goes as well
      std::vector<std::string> texts(300, long_text(1));
    }
    if (i == 20) live = heap::live_bytes(), spans = heap::here.all->fresh;
  }
  EXPECT_LE(heap::live_bytes(), live + 1'000'000);  // they leak 32 MB
  EXPECT_LE(heap::here.all->fresh, spans + 32);
  heap::check_invariants();
  global_memo->texts.clear();
}

// A run in a scope of main, and a scope in a thread.
TEST(Scope, AroundARunAndInAThread) {
  for_each_schedule([](const gw::options& o) {
    const gw::shared_scope shared;
    auto before = std::make_unique<std::string>(long_text(1));
    EXPECT_EQ(gw::run<int>(
                  [&before] {
                    return many(
                        [&before](int n) {
                          const gw::shared_scope nothing;
                          auto own = std::make_unique<std::string>(long_text(n));
                          elsewhere();
                          return static_cast<int>(*own != long_text(n) || *before != long_text(1));
                        },
                        4);
                  },
                  o),
              0);
    EXPECT_TRUE(in_heap(std::make_unique<int>(1).get()));
    heap::check_invariants();
  });
}

TEST(Scope, SharedGlobalInAThreadIsRefused) {
  EXPECT_THROW(gw::run<void>([] { const gw::shared_global<int> own(1); }, support::schedule(2)),
               std::logic_error);
}

TEST(Refused, WhereWorkersCannotHaveThem) {
  gw::options o = support::schedule(2);
  o.heap = gw::choice::heap::separate;
  EXPECT_NE(why_refused(o).find("leave the option away"), std::string::npos);
  o = support::schedule(5000);
  o.stack_bytes = o.heap_bytes = 1 << 20;
  EXPECT_NE(why_refused(o).find("4096 workers at most"), std::string::npos);
  o = support::schedule(4);
  o.substrate = gw::choice::substrate::sim;
  o.sim_hosts = 2;
  EXPECT_NE(why_refused(o).find("on several hosts each process would have its own"), std::string::npos);
}

}  // namespace
