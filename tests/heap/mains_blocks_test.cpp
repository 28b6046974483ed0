// GODWIT_CHECK_HEAP: what main had allocated before the run, and threads have changed, is told with the line
// that allocated it, and variables by their names. What they only read, what they freed, and what is no
// object of the program's is not.
// test: timeout=300 once skip-asan skip-qemu
#include "heap/leaks_library.hpp"
#include "support/child.hpp"
#include "support/elsewhere.hpp"
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

namespace gw = godwit;

constexpr const char* what_to_do = "neither main nor other workers see such a change";

/// A process in which @p before makes what main has, and then @p root runs.
support::outcome outcome_of(const gw::options& o, const std::function<void()>& before,
                            const std::function<void()>& root) {
  return support::run_child([&] {
    before();
    gw::options with = o;
    with.heap = gw::choice::heap::shared;
    with.check_heap = true;
    return gw::run(
        0, nullptr,
        [&root] {
          gw::on_each_worker([] {});  // all workers are up
          root();
        },
        with);
  });
}

int tells(const support::outcome& o) {
  int n = 0;
  for (std::size_t at = 0; (at = o.err.find("changed their copy", at)) != std::string::npos; ++at) ++n;
  return n;
}
/// Is there a line for these blocks, allocated at this line of this file?
bool tells(const support::outcome& o, int workers, int blocks, std::size_t bytes, int line) {
  const std::string begins = "godwit: heap: threads in " + std::to_string(workers) +
                             (workers == 1 ? " worker" : " workers") + " changed their copy of " +
                             std::to_string(blocks) + (blocks == 1 ? " block (" : " blocks (") +
                             std::to_string(bytes) + " bytes) that main had allocated at ";
  const std::string place = "mains_blocks_test.cpp:" + std::to_string(line) + ")";
  for (std::size_t at = 0; (at = o.err.find(begins, at)) != std::string::npos; ++at)
    if (o.err.substr(at, o.err.find('\n', at) - at).find(place) != std::string::npos) return true;
  return false;
}
void expect_silence(const support::outcome& o) {
  EXPECT_EQ(o.status, 0) << show(o);
  EXPECT_EQ(tells(o), 0) << show(o);
  EXPECT_FALSE(o.err_has(what_to_do)) << show(o);
}

void for_each_schedule(const std::function<void(const gw::options&)>& body) {
  for (const char* force : {"none", "random", "parents", "children"})
    for (const std::uint32_t workers : {1u, 2u, 4u}) {
      const gw::options o = support::schedule(workers, force, workers == 4 ? 5 : 0);
      SCOPED_TRACE(support::describe(o));
      body(o);
      if (testing::Test::HasFailure()) return;
    }
}

std::vector<long> numbers;
std::map<int, long> table;
std::string text;
std::unique_ptr<long[]> large;
std::shared_ptr<std::vector<int>> owned;
char* unused = nullptr;
int counter = 0;
std::atomic<long> best{0};
long untouched[10'000];

TEST(MainsBlocks, ThatThreadsChangeAreToldWithTheirLine) {
  int numbers_line = 0, table_line = 0, text_line = 0, large_line = 0;
  const auto before = [&] {
    numbers_line = __LINE__ + 1;
    numbers.resize(1000);
    for (int i = 0; i < 10; ++i) {
      table_line = __LINE__ + 1;
      table[i] = i;
    }
    text_line = __LINE__ + 1;
    text.assign(100, 'a');
    large_line = __LINE__ + 1;
    large = std::make_unique<long[]>(3'000'000);  // a mapping of its own
  };
  before();  // for the lines
  for_each_schedule([&](const gw::options& o) {
    const auto out = outcome_of(
        o, [] {},
        [] {
          auto a = gw::spawn([] { numbers[999] = 1; });
          support::elsewhere(3);
          a.join();
          table[3] = table[4] = 7;
          text[99] = 'b';
          large[2'999'999] = 5;
        });
    EXPECT_EQ(out.status, 0) << show(out);
    EXPECT_TRUE(tells(out, 1, 1, 8000, numbers_line)) << show(out);
    EXPECT_TRUE(tells(out, 1, 2, 2 * 48, table_line)) << show(out);
    EXPECT_TRUE(tells(out, 1, 1, 101, text_line)) << show(out);
    EXPECT_TRUE(tells(out, 1, 1, 24'000'000, large_line)) << show(out);
    EXPECT_EQ(tells(out), 4) << show(out);
    EXPECT_TRUE(out.err_has(what_to_do)) << show(out);
  });
}

TEST(MainsBlocks, HowManyWorkersHaveChangedThem) {
  constexpr int line = __LINE__ + 1;
  const auto before = [] { numbers = std::vector<long>(10, 1); };
  const auto out =
      outcome_of(support::schedule(4, "none"), before, [] { gw::on_each_worker([] { ++numbers[5]; }); });
  EXPECT_TRUE(tells(out, 4, 1, 80, line)) << show(out);
}

// Reading, owners by counting, streams, freeing, and a write of what was there.
TEST(MainsBlocks, WhatThreadsOnlyUseIsNotTold) {
  const std::string name = testing::TempDir() + "mains_blocks_" + std::to_string(getpid());
  const auto before = [] {
    numbers.assign(1000, 3);
    text.assign(100, 'a');
    owned = std::make_shared<std::vector<int>>(100, 1);
    unused = static_cast<char*>(std::calloc(100, 1));
    std::ios::sync_with_stdio(false);
    std::cout << "main's\n";
  };
  for_each_schedule([&](const gw::options& o) {
    const auto out = outcome_of(o, before, [&name] {
      std::vector<gw::future<long>> all;
      for (int i = 0; i < 20; ++i)
        all.push_back(gw::spawn([i, mine = owned] {
          const std::vector<std::shared_ptr<std::vector<int>>> more(10, mine);
          const std::string copy = text;
          return numbers[static_cast<std::size_t>(i)] + (*more.back())[0] + copy[0];
        }));
      support::elsewhere(3);
      for (auto& f : all)
        if (f.join() != 4 + 'a') std::abort();
      numbers[7] = 3;
      std::printf("thread's\n");
      std::cout << "thread's\n";
      std::ofstream(name) << "thread's\n";
      std::memset(unused, 1, 100);
      std::free(unused);
    });
    expect_silence(out);
  });
  std::remove(name.c_str());
}

TEST(MainsBlocks, VariablesAreToldByTheirNames) {
  for_each_schedule([](const gw::options& o) {
    const auto out = outcome_of(
        o, [] {},
        [] {
          static int called = 0;
          gw::spawn([] { ++counter; }).join();
          best = untouched[5'000];
          best.store(7);
          ++called;
          large.reset(new long[1]);  // (main's had none)
        });
    EXPECT_EQ(out.status, 0) << show(out);
    for (const char* line : {"the variable (anonymous namespace)::counter (4 bytes)\n",
                             "the variable (anonymous namespace)::best (8 bytes)\n", "::called (4 bytes)\n",
                             "the variable (anonymous namespace)::large (8 bytes)\n"})
      EXPECT_TRUE(out.err_has(line)) << line << show(out);
    EXPECT_EQ(tells(out), 4) << show(out);
    EXPECT_TRUE(out.err_has(what_to_do)) << show(out);
  });
}

// Blocks that main has freed, moved, grown, and got again.
TEST(MainsBlocks, AreThoseThatAreInUseWhenTheRunBegins) {
  std::vector<std::pair<char*, std::size_t>> blocks;
  constexpr int line = __LINE__ + 1;
  const auto get = [](std::size_t bytes) { return static_cast<char*>(std::malloc(bytes)); };
  const auto before = [&] {
    std::mt19937 random(7);
    const auto any = [&](std::size_t below) { return random() % below; };
    for (int i = 0; i < 200'000; ++i) {
      if (blocks.size() < 3000 || any(2) == 0) {
        const std::size_t bytes = 1 + any(500);
        blocks.emplace_back(get(bytes), bytes);
        std::memset(blocks.back().first, 1, bytes);
      } else {
        std::swap(blocks[any(blocks.size())], blocks.back());
        std::free(blocks.back().first);
        blocks.pop_back();
      }
    }
  };
  std::size_t bytes = 0;
  const auto out = support::run_child([&] {
    before();
    for (std::size_t i = 0; i < blocks.size(); i += 3) bytes += blocks[i].second;
    std::printf("%zu %zu\n", (blocks.size() + 2) / 3, bytes);
    gw::options o = support::schedule(2, "random");
    o.check_heap = true;
    return gw::run(
        0, nullptr,
        [&] {
          for (std::size_t i = 0; i < blocks.size(); ++i)
            if (i % 3 == 0)
              blocks[i].first[blocks[i].second - 1] = 2;
            else if (i % 3 == 1)
              std::free(blocks[i].first);
        },
        o);
  });
  int count = 0;
  ASSERT_EQ(std::sscanf(out.out.c_str(), "%d %zu", &count, &bytes), 2) << show(out);
  ASSERT_GT(count, 1000);
  EXPECT_TRUE(tells(out, 1, count, bytes, line)) << show(out);
  EXPECT_EQ(tells(out), 1) << show(out);
}

TEST(MainsBlocks, AreThoseOfAllItsThreadsAndOfWhatItHasGrown) {
  char* grown = nullptr;
  int line = 0, thread_line = 0;
  std::vector<int*> of_threads(4);
  const auto before = [&] {
    grown = static_cast<char*>(std::malloc(10));
    line = __LINE__ + 1;
    grown = static_cast<char*>(std::realloc(grown, 10'000));
    std::vector<std::thread> threads;
    for (int*& mine : of_threads)
      threads.emplace_back([&mine, &thread_line] {
        for (int i = 0; i < 10'000; ++i) delete[] new int[static_cast<std::size_t>(i % 100)];
        thread_line = __LINE__ + 1;
        mine = new int[100]();
      });
    for (std::thread& t : threads) t.join();
  };
  before();
  const auto out = outcome_of(
      support::schedule(2, "none"), [] {},
      [&] {
        grown[9'999] ^= 1;
        for (int* mine : of_threads) mine[99] = 1;
      });
  EXPECT_TRUE(tells(out, 1, 1, 10'000, line)) << show(out);
  EXPECT_TRUE(tells(out, 1, 4, 1600, thread_line)) << show(out);
  EXPECT_EQ(tells(out), 2) << show(out);
}

TEST(MainsBlocks, BlocksOfALibraryAreItsOwn) {
  const auto out = outcome_of(
      support::schedule(2, "none"), [] { leaks_library::keep(100); },
      [] { std::memset(leaks_library::kept_, 1, 100); });
  expect_silence(out);
}

TEST(MainsBlocks, NobodyIsToldWhoHasNotAsked) {
  const auto out = support::run_child([] {
    numbers.assign(1000, 3);
    return gw::run(
        0, nullptr, [] { numbers[3] = 4; }, support::schedule(2, "none"));
  });
  EXPECT_TRUE(tells(out) == 1) << "the environment asks: " << show(out);
  const auto silent = support::run_child([] {
    numbers.assign(1000, 3);
    gw::options o = support::schedule(2, "none");
    const char* const no[] = {"program", "--godwit-check-heap=0"};
    char* argv[] = {const_cast<char*>(no[0]), const_cast<char*>(no[1]), nullptr};
    int argc = 2;
    return gw::run(
        argc, argv, [] { numbers[3] = 4; }, o);
  });
  expect_silence(silent);
}

// A second run looks at what main has then; a child of main's own allocates as ever.
TEST(MainsBlocks, EachRunLooksAnew) {
  const auto out = support::run_child([] {
    numbers.assign(1000, 3);
    gw::options o = support::schedule(2, "none");
    o.check_heap = true;
    for (int run = 0; run < 2; ++run) {
      if (gw::run(
              0, nullptr, [] { numbers[3] = 4; }, o) != 0)
        return 1;
      numbers.assign(1000, 4);  // as it is in the thread of the second run
    }
    const pid_t child = fork();
    if (child == 0) {
      std::vector<std::string> some(1000, std::string(100, 'c'));
      _exit(some.back().size() == 100 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
  });
  EXPECT_EQ(out.status, 0) << show(out);
  EXPECT_EQ(tells(out), 1) << show(out);
}

}  // namespace

// Asked for in the environment, from the begin of the process on.
int main(int argc, char** argv) {
  if (std::getenv("GODWIT_CHECK_HEAP") == nullptr) {
    setenv("GODWIT_CHECK_HEAP", "1", 1);
    execv("/proc/self/exe", argv);
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
