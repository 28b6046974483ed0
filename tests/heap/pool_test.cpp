// Runs of spans: alignment, joining, growing, what is known to be zero, the end of the addresses.
// test: timeout=120 skip-qemu
#include "heap/pool.hpp"

#include "heap/memory.hpp"

#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace {

using godwit::heap::bytes_of;
using godwit::heap::here;
using godwit::heap::span;
using godwit::heap::span_bytes;
using heap_test::memory;
namespace pool = godwit::heap::pool;

TEST(Pool, AlignmentsUpToAGiB) {
  const memory m(1);
  for (std::uint64_t alignment = 1; alignment <= std::uint64_t{1} << 30; alignment *= 2) {
    span* const s = pool::take(3, alignment);
    ASSERT_NE(s, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes_of(s)) % alignment, 0u);
    EXPECT_EQ(s->spans, 3u);
  }
  pool::check_invariants();
}

TEST(Pool, WhatTouchesIsJoined) {
  const memory m(1);
  span* runs[9];
  for (span*& s : runs) s = pool::take(5);
  span* const last = pool::take(1);
  for (const int i : {0, 2, 4, 6, 8, 1, 7, 3, 5}) {
    pool::give(runs[i]);
    pool::check_invariants();
  }
  EXPECT_EQ(pool::take(45), runs[0]);
  EXPECT_EQ(last, runs[0] + 45);
}

TEST(Pool, TheEndOfTheAddresses) {
  const memory m(1, std::uint64_t{16} << 20);
  const std::uint64_t all = here.all->count;
  EXPECT_EQ(pool::take(all + 1), nullptr);
  std::vector<span*> taken;
  while (span* const s = pool::take(7)) taken.push_back(s);
  EXPECT_EQ(taken.size(), all / 7);
  for (span* const s : taken) pool::give(s);
  pool::check_invariants();
  EXPECT_NE(pool::take(all / 7 * 7), nullptr);
}

TEST(Pool, GrowsIntoWhatIsFree) {
  const memory m(1);
  span* const a = pool::take(4);
  span* const b = pool::take(4);
  span* const c = pool::take(1);
  EXPECT_FALSE(pool::extend(a, 5));
  pool::give(b);
  EXPECT_TRUE(pool::extend(a, 6));
  pool::check_invariants();
  EXPECT_FALSE(pool::extend(a, 9));
  EXPECT_TRUE(pool::extend(a, 8));
  EXPECT_TRUE(pool::extend(c, 100));  // what lies behind has never been used
  pool::check_invariants();
  pool::give(a);
  pool::give(c);
  pool::check_invariants();
}

// Random runs whose bytes are written; none overlap, and what is said to be zero is.
TEST(Pool, ManyRunsAtRandom) {
  const memory m(1);
  std::mt19937 random(7);
  std::map<span*, unsigned char> live;
  const auto fill = [](span* s, int v) { std::memset(bytes_of(s), v, s->spans * span_bytes); };
  for (int turn = 0; turn < 4000; ++turn) {
    const bool large = random() % 100 == 0;
    if (live.size() < 40 && random() % 2 != 0) {
      span* const s = pool::take(1 + random() % (large ? 1500 : 12), span_bytes << random() % 4);
      ASSERT_NE(s, nullptr);
      if (s->dirty == 0) {
        const auto* const words = reinterpret_cast<const std::uint64_t*>(bytes_of(s));
        for (std::uint64_t i = 0; i < s->spans * span_bytes / 8; ++i)
          ASSERT_EQ(words[i], 0u) << "word " << i << " in turn " << turn;
      }
      const auto v = static_cast<unsigned char>(1 + turn % 255);
      fill(s, v);
      live[s] = v;
    } else if (!live.empty()) {
      auto i = std::next(live.begin(), random() % live.size());
      const auto* const bytes = reinterpret_cast<const unsigned char*>(bytes_of(i->first));
      ASSERT_EQ(bytes[0], i->second);
      ASSERT_EQ(bytes[i->first->spans * span_bytes - 1], i->second);
      pool::give(i->first);
      live.erase(i);
    }
    if (turn % 50 == 0) pool::check_invariants();
  }
  for (const auto& [s, v] : live) pool::give(s);
  pool::check_invariants();
}

}  // namespace
