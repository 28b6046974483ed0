// Objects that main owns by std::shared_ptr when a run begins: threads copy and drop the pointers at many
// workers, none of which destroys the object; main does, once, when it drops its own.
// test: timeout=300 skip-qemu
#include "support/elsewhere.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <memory_resource>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace gw = godwit;

// Also with a sanitizer's malloc: elsewhere nothing has to be kept.
[[maybe_unused]] const int on_processes = setenv("GODWIT_SUBSTRATE", "processes", 1);

/// Objects, in all processes.
const support::shared<std::atomic<int>> destroyed;

struct object : std::enable_shared_from_this<object> {
  explicit object(long n) : v(n) {}
  object(const object&) = delete;
  ~object() {
    v = -1;
    destroyed->fetch_add(1);
  }
  volatile long v;
};

using pointer = std::shared_ptr<object>;

struct kind {
  const char* name;
  pointer (*make)(long);
};
std::pmr::memory_resource& pool() {
  static std::pmr::unsynchronized_pool_resource all;
  return all;
}
constexpr kind kinds[] = {{"together", [](long n) { return std::make_shared<object>(n); }},
                          {"apart", [](long n) { return pointer(new object(n)); }},
                          {"deleter",
                           [](long n) {
                             return pointer(new object(n), [text = std::string(100, 'x')](object* o) {
                               if (text.size() == 100) delete o;
                             });
                           }},
                          {"alias",
                           [](long n) {
                             struct holder {
                               std::string text = std::string(100, 'x');
                               std::unique_ptr<object> o;
                             };
                             const auto all = std::make_shared<holder>();
                             all->o = std::make_unique<object>(n);
                             return pointer(all, all->o.get());
                           }},
                          {"unique", [](long n) { return pointer(std::make_unique<object>(n)); }},
                          {"pool", [](long n) {
                             return std::allocate_shared<object>(
                                 std::pmr::polymorphic_allocator<object>(&pool()), n);
                           }}};

// What main has made.
std::vector<pointer> objects;
std::map<int, pointer> by_number;
std::vector<std::weak_ptr<object>> watched;

/// Copies that live across a spawn and are dropped wherever their thread is then.
long walk(int depth) {
  const pointer mine = objects[static_cast<std::size_t>(depth) % objects.size()];
  const pointer found = by_number.begin()->second;
  const std::weak_ptr<object> weak = watched.back();
  if (depth == 0) return mine->v + found->v;
  auto left = gw::spawn([depth, &mine] {
    const pointer own = mine;
    return walk(depth - 1) + own->v - own->v;
  });
  const long right = walk(depth - 1);
  const pointer again = weak.lock(), itself = mine->weak_from_this().lock();
  return left.join() + right + (again != nullptr && again->v == found->v ? 0 : 1'000'000) +
         (mine->v > 0 ? 0 : 1'000'000) + (itself == mine || itself == nullptr ? 0 : 1'000'000);
}

struct Kept : testing::TestWithParam<kind> {
  void make(std::size_t count) {
    objects.clear();
    by_number.clear();
    watched.clear();
    *destroyed = 0;
    for (std::size_t i = 0; i < count; ++i) objects.push_back(GetParam().make(7));
    by_number[3] = GetParam().make(7);
    watched.push_back(by_number[3]);
  }
  void drop(std::size_t count) {
    EXPECT_EQ(*destroyed, 0) << "while main owns all";
    for (const pointer& p : objects) EXPECT_EQ(p.use_count(), 1);
    EXPECT_EQ(by_number[3].use_count(), 1);
    EXPECT_FALSE(watched.back().expired());
    objects.clear();
    by_number.clear();
    EXPECT_TRUE(watched.back().expired());
    watched.clear();
    EXPECT_EQ(*destroyed, static_cast<int>(count + 1));
  }
};

TEST_P(Kept, WhoeverCopiesThem) {
  for (const auto heap : {gw::choice::heap::automatic, gw::choice::heap::separate})
    for (const char* force : {"random", "parents", "children"})
      for (const std::uint32_t workers : {1u, 2u, 4u}) {
        gw::options o = support::schedule(workers, force, workers == 4 ? 5 : 0);
        o.heap = heap;
        SCOPED_TRACE(support::describe(o));
        make(2);
        for (int run = 0; run < 2; ++run)
          EXPECT_EQ(gw::run<long>([] { return walk(5); }, o), 14 << 5) << "run " << run;
        drop(2);
        if (HasFailure()) return;
      }
}

// As far apart as counts can be: each copy is made here and dropped there.
TEST_P(Kept, AllDroppedAtOneWorker) {
  for (const auto heap : {gw::choice::heap::automatic, gw::choice::heap::separate}) {
    gw::options o = support::schedule(2);
    o.heap = heap;
    make(1);
    EXPECT_EQ(gw::run<long>(
                  [] {
                    long sum = 0;
                    for (int i = 0; i < 10; ++i) {
                      gw::migrate_to(gw::worker{0});
                      const pointer mine = objects[0];
                      const std::weak_ptr<object> weak = mine;
                      gw::migrate_to(gw::worker{1});
                      sum += weak.lock() == mine ? mine->v : 1'000'000;
                    }
                    return sum;
                  },
                  o),
              70);
    drop(1);
  }
}

// They are counted, and destroyed by whoever has them last, like any: also where memory of main's pool is
// used again at one worker.
TEST_P(Kept, NotWhatThreadsMake) {
  for (const auto heap : {gw::choice::heap::automatic, gw::choice::heap::separate}) {
    gw::options o = support::schedule(2, "random");
    o.heap = heap;
    make(1);
    GetParam().make(7);  // memory that held such an object
    *destroyed = 0;
    EXPECT_EQ(gw::run<int>(
                  [make = GetParam().make] {
                    int wrong = 0;
                    for (int i = 0; i < 20; ++i) {
                      support::leaf(i);
                      const int before = *destroyed;
                      pointer mine = make(i);
                      const std::weak_ptr<object> weak = mine;
                      pointer copy = mine;
                      wrong += mine.use_count() != 2;
                      mine.reset();
                      wrong += *destroyed != before || weak.expired();
                      copy.reset();
                      wrong += *destroyed != before + 1 || !weak.expired();
                    }
                    return wrong;
                  },
                  o),
              0);
    EXPECT_EQ(*destroyed, 20);
    *destroyed = 0;
    drop(1);
  }
}

// It makes and drops them, and gives memory back to the system while it is looked at.
TEST(KeptBeside, OtherOsThreadsOfMain) {
  *destroyed = 0;
  objects.assign(3, std::make_shared<object>(7));
  by_number[3] = std::make_shared<object>(7);
  watched.push_back(by_number[3]);
  int made = 0;
  std::jthread other([&](const std::stop_token& end) {
    while (!end.stop_requested()) {
      const pointer copy = by_number[3];
      const auto own = std::make_shared<object>(1);
      std::vector<std::vector<pointer>> large(20, std::vector<pointer>(20'000, own));
      large.erase(large.begin() + 3, large.end());
      ++made;
    }
  });
  for (int i = 0; i < 20; ++i) {
    std::vector<std::vector<char>> memory(50, std::vector<char>(200'000));
    EXPECT_EQ(gw::run<long>([] { return walk(4); }, support::schedule(2, "random")), 14 << 4);
  }
  other.request_stop();
  other.join();
  EXPECT_EQ(*destroyed, made);
  EXPECT_EQ(objects[0].use_count(), 3);
  EXPECT_EQ(by_number[3].use_count(), 1);
  objects.clear();
  by_number.clear();
  watched.clear();
  EXPECT_EQ(*destroyed, made + 2);
}

/// What a block that counts looks like, once for each word.
std::vector<std::uint64_t> looks_like_one(std::size_t times) {
  static const pointer some = std::make_shared<object>(7);
  const std::uint64_t* at[2];
  static_assert(sizeof at == sizeof some);
  std::memcpy(at, &some, sizeof some);
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < times; ++i) all.insert(all.end(), {at[1][0], 0x100000001u * (i % 7 + 1)});
  return all;
}

const support::shared<std::atomic<int>> wrong;  // in workers

// Whatever its words are, memory is what main has written: here, in workers, and between the C library's
// blocks.
TEST(KeptBeside, MemoryThatOnlyLooksAsIfItHeldSome) {
  const auto before = looks_like_one(10'000);
  struct memory {
    std::vector<std::uint64_t> words;
    std::vector<std::unique_ptr<std::uint64_t[]>> blocks;
  };
  const auto all = std::make_unique<memory>();
  all->words = before;
  for (std::size_t i = 0; i < 1'000; ++i) {
    all->blocks.push_back(std::make_unique<std::uint64_t[]>(3));
    all->blocks.back()[2] = before[0];  // beside the size of the next block
  }
  EXPECT_EQ(gw::run<int>(
                [&all = *all, &before] {
                  gw::on_each_worker([&all, &before] {
                    *wrong += all.words != before;
                    all.blocks.clear();
                    all.words.assign(all.words.size(), 0);
                  });
                  return wrong->load();
                },
                support::schedule(2, "random")),
            0);
  EXPECT_EQ(all->words, before);
}

// Variables of the program go before the worker has ended.
TEST(KeptBeside, AWorkerThatExits) {
  *destroyed = 0;
  objects.assign(1, std::make_shared<object>(7));
  try {
    gw::run<int>(
        [] {
          pointer(objects[0]).reset();
          std::exit(3);
          return 0;
        },
        support::schedule(1));
    ADD_FAILURE() << "it has gone on";
  } catch (const gw::run_error& e) {
    EXPECT_NE(std::string(e.what()).find("exit(3)"), std::string::npos) << e.what();
  }
  EXPECT_EQ(*destroyed, 0);
  objects.clear();
}

INSTANTIATE_TEST_SUITE_P(Kinds, Kept, testing::ValuesIn(kinds),
                         [](const auto& info) { return info.param.name; });

}  // namespace
