// Stacks that stay, cut from the ranges of several workers: src/stack/pool.hpp.
#include <gtest/gtest.h>

#include "stack/pool.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using godwit::stack::pool;

/// Ranges of four workers, a gap that faults behind each.
struct ranges {
  static constexpr std::uint64_t bytes = 4 << 20, distance = 8 << 20, count = 4;
  std::uintptr_t first;
  ranges() {
    void* p =
        mmap(nullptr, (count + 1) * distance, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    first = (reinterpret_cast<std::uintptr_t>(p) + distance - 1) / distance * distance;
    for (std::uint64_t i = 0; i < count; ++i)
      mprotect(reinterpret_cast<void*>(first + i * distance), bytes, PROT_READ | PROT_WRITE);
  }
};

void*& next(void* top) { return *static_cast<void**>(top); }

TEST(pool, gives_each_stack_once_and_all_of_them) {
  for (const std::uint64_t size : {64u << 10, 256u << 10, 1u << 20}) {
    const ranges r;
    pool p;
    p.init(r.first, r.distance, r.count, r.bytes, size, size);
    std::set<std::uintptr_t> ends;
    while (void* list = p.take())
      for (void* s = list; s != nullptr; s = next(s)) {
        const auto top = reinterpret_cast<std::uintptr_t>(s);
        const std::uintptr_t low = p.low_of(top), end = p.end_of(top);
        EXPECT_EQ(end % size, 0u);
        EXPECT_EQ(low, end - size + static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE))) << "the guard";
        EXPECT_EQ(p.top_of(low), top);
        EXPECT_EQ(top % 64, 0u);
        EXPECT_LE(top + 64, reinterpret_cast<std::uintptr_t>(p.block_of(top)));
        EXPECT_LT((end - size - r.first) % r.distance, r.bytes) << "inside a range";
        EXPECT_LE((end - r.first) % r.distance, r.bytes);
        EXPECT_TRUE(ends.insert(end).second);
        EXPECT_FALSE(p.is_root(top));
        EXPECT_FALSE(p.in_guard(top));
        EXPECT_TRUE(p.in_guard(end - size));
        std::memset(reinterpret_cast<void*>(low), 1, 64);
      }
    EXPECT_EQ(ends.size(), r.bytes / size * r.count - 1) << "one is the root's";
    EXPECT_TRUE(p.is_root(p.root_top()));
    p.check_invariants();
  }
}

TEST(pool, what_is_given_back_is_used_again) {
  const ranges r;
  pool p;
  p.init(r.first, r.distance, r.count, r.bytes, 64 << 10, 64 << 10);
  std::vector<void*> lists;
  while (void* list = p.take()) lists.push_back(list);
  const auto count = [](void* list) {
    unsigned n = 0;
    for (; list != nullptr; list = next(list)) ++n;
    return n;
  };
  unsigned before = 0, after = 0;
  for (void* list : lists) {
    before += count(list);
    p.give(list, count(list));
  }
  p.check_invariants();
  while (void* list = p.take()) after += count(list);
  EXPECT_EQ(before, after);
}

// What one worker keeps the others cannot have.
TEST(pool, few_are_given_out_one_by_one) {
  const ranges r;
  pool p;
  p.init(r.first, r.distance, r.count, r.bytes, 1 << 20, 1 << 20);
  EXPECT_EQ(p.batch_size(), 1u);
  for (std::uint64_t i = 0; i < r.bytes / (1 << 20) * r.count - 1; ++i) {
    void* list = p.take();
    ASSERT_NE(list, nullptr) << i;
    EXPECT_EQ(next(list), nullptr);
  }
  EXPECT_EQ(p.take(), nullptr);
  pool many;
  many.init(r.first, r.distance, r.count, r.bytes, 4 << 10, 4 << 10);  // (none is used)
  EXPECT_EQ(many.batch_size(), pool::batch);
}

// Whatever each worker keeps, the rest is there: usable() of them can be in use.
TEST(pool, usable_counts_what_workers_keep) {
  const ranges r;
  pool p;
  p.init(r.first, r.distance, r.count, r.bytes, 64 << 10, 64 << 10);
  const std::uint64_t all = r.bytes / (64 << 10) * r.count - 1;
  EXPECT_GE(p.usable(r.count), all / 2);
  EXPECT_LE(p.usable(r.count) + r.count * (p.most_kept() + p.batch_size()), all);
  EXPECT_EQ(p.usable(all), 1u);
}

TEST(pool, workers_take_and_give_at_the_same_time) {
  const ranges r;
  pool p;
  p.init(r.first, r.distance, r.count, r.bytes, 64 << 10, 64 << 10);
  std::atomic<bool> wrong{false};
  std::vector<std::thread> workers;
  for (int w = 0; w < 3; ++w)
    workers.emplace_back([&, w] {
      for (int i = 0; i < 3000; ++i) {
        void* list = p.take();
        if (list == nullptr) continue;
        unsigned n = 0;
        for (void* s = list; s != nullptr; s = next(s), ++n)
          static_cast<std::uint64_t*>(s)[-1] = static_cast<std::uint64_t>(w * 10000 + i);
        for (void* s = list; s != nullptr; s = next(s))
          if (static_cast<std::uint64_t*>(s)[-1] != static_cast<std::uint64_t>(w * 10000 + i)) wrong = true;
        p.give(list, n);
      }
    });
  for (auto& w : workers) w.join();
  EXPECT_FALSE(wrong.load());
  p.check_invariants();
}

// What was given back is the system's when it wants it; the links between the stacks are not.
TEST(pool, memory_of_free_stacks_can_be_taken) {
  if (std::getenv("STRESS_EMULATED") != nullptr)
    GTEST_SKIP() << "the emulator accepts any advice and ignores it";
  const auto resident = [](void* p, std::size_t bytes) {
    std::vector<unsigned char> pages(bytes / 4096);
    EXPECT_EQ(mincore(p, bytes, pages.data()), 0);
    std::size_t n = 0;
    for (const unsigned char in : pages) n += in & 1;
    return n;
  };
  constexpr std::size_t size = 16 << 10;  // 255 in each range
  const ranges r;
  pool p;
  p.init(r.first, r.distance, r.count, r.bytes, size, size);
  std::vector<void*> lists;
  unsigned stacks = 0;
  while (void* list = p.take()) {
    lists.push_back(list);
    for (void* s = list; s != nullptr; s = next(s), ++stacks) {
      const auto low = p.low_of(reinterpret_cast<std::uintptr_t>(s));
      std::memset(reinterpret_cast<void*>(low), 1, reinterpret_cast<std::uintptr_t>(s) - low);
    }
  }
  for (void* list : lists) {
    unsigned n = 0;
    for (void* s = list; s != nullptr; s = next(s)) ++n;
    p.give(list, n);
  }
  // As if memory were short.
  std::size_t before = 0, after = 0;
  bool advised = true;
  for (std::uint64_t i = 0; i < r.count; ++i) {
    auto* range = reinterpret_cast<void*>(r.first + i * r.distance);
    before += resident(range, r.bytes);
    for (std::uintptr_t low = 0; low < r.bytes; low += size)
      advised = madvise(static_cast<char*>(range) + low + 4096, size - 4096, MADV_PAGEOUT) == 0 && advised;
    after += resident(range, r.bytes);
  }
  if (!advised) GTEST_SKIP() << "the system cannot be told to take memory";
  // All but 32 batches gave theirs: two of three pages, the third holds the link.
  EXPECT_LT(after, before - (stacks - 33 * pool::batch)) << before << " pages before";
  unsigned again = 0;
  while (void* list = p.take())
    for (void* s = list; s != nullptr; s = next(s)) ++again;
  EXPECT_EQ(again, stacks);
}

TEST(pool, an_overflow_faults) {
  if (std::getenv("STRESS_EMULATED") != nullptr)
    GTEST_SKIP() << "the emulator accepts any advice and ignores it";
  const ranges r;
  pool p;
  p.init(r.first, r.distance, r.count, r.bytes, 64 << 10, 64 << 10);
  void* list = p.take();
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    *reinterpret_cast<volatile char*>(p.low_of(reinterpret_cast<std::uintptr_t>(list)) - 1) = 1;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
}

}  // namespace
