// The arena of one home: alignment, no overlaps, reuse, joining of free ranges, limits, millions of small
// objects.
// test: timeout=120 skip-qemu
#include "gas/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <sys/mman.h>
#include <vector>

namespace {

using godwit::gas::arena;
using godwit::gas::budget;
using godwit::gas::object_header;

constexpr std::uint64_t KiB = 1 << 10, MiB = 1 << 20, GiB = 1ull << 30;

/// An area, and the account of what the arena took of it.
struct area {
  explicit area(std::uint64_t bytes, std::uint64_t limit = ~std::uint64_t{0}) : bytes_(bytes), limit_(limit) {
    void* p =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) std::abort();
    begin = static_cast<std::byte*>(p);
    h.init(begin, bytes,
           {[this](std::uint64_t n) {
              if (taken + n > limit_) return false;
              taken += n;
              most = std::max(most, taken);
              return true;
            },
            [this](std::uint64_t n) { taken -= n; },
            [](std::byte* at, std::uint64_t n) { madvise(at, n, MADV_DONTNEED); },
            [this](std::byte* at, std::uint64_t n) { EXPECT_TRUE(holds(at, n)); }});
    at_start = taken;
  }
  ~area() {
    own_.reset();  // the pools look at what they have when they go
    munmap(begin, bytes_);
  }
  area(const area&) = delete;
  bool holds(const void* p, std::uint64_t n) const {
    const auto* b = static_cast<const std::byte*>(p);
    return b >= begin && b + n <= begin + bytes_;
  }
  std::unique_ptr<arena> own_ = std::make_unique<arena>();
  arena& h = *own_;
  std::byte* begin = nullptr;
  std::uint64_t taken = 0, most = 0, at_start = 0;  // the pools take something before the first object
  std::uint64_t bytes_, limit_;
};

TEST(Heap, AlignmentsUpToAGiB) {
  area a(16 * GiB);
  for (std::uint64_t alignment = 1; alignment <= GiB; alignment *= 2)
    for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{40}, 5 * KiB, 100 * KiB, 3 * MiB}) {
      SCOPED_TRACE(testing::Message() << alignment << " " << bytes);
      void* p = a.h.allocate(bytes, alignment);
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % alignment, 0u);
      EXPECT_TRUE(a.holds(p, bytes));
      std::memset(p, 1, bytes);
      EXPECT_EQ(arena::bytes_of(p), bytes);
      a.h.free(p);
    }
  EXPECT_EQ(a.h.live_objects(), 0u);
}

// A large alignment must not cost as much memory as addresses.
TEST(Heap, AlignmentIsNotPaidFor) {
  area a(16 * GiB, 64 * MiB);
  void* p = a.h.allocate(1, GiB);
  ASSERT_NE(p, nullptr) << "1 byte at 1 GiB within a limit of 64 MiB";
  void* q = a.h.allocate(MiB, 4 * GiB);
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(q) % (4 * GiB), 0u);
  EXPECT_LT(a.taken, 2 * MiB);
  a.h.free(p);
  a.h.free(q);
  EXPECT_EQ(a.taken, a.at_start);
}

TEST(Heap, NothingOverlaps) {
  area a(4 * GiB);
  std::mt19937_64 random(7);
  std::map<std::byte*, std::uint64_t> live;  // filled with a byte of its address
  auto mark = [](std::byte* p) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) >> 4 & 0xff); };
  for (int i = 0; i < 60'000; ++i) {
    if (random() % 3 != 0 || live.empty()) {
      const std::uint64_t bytes = 1 + (random() % 20 == 0 ? random() % (200 * KiB) : random() % 300);
      const std::uint64_t alignment = std::uint64_t{1} << random() % (i % 50 == 0 ? 17 : 8);
      auto* p = static_cast<std::byte*>(a.h.allocate(bytes, alignment));
      ASSERT_NE(p, nullptr);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % alignment, 0u);
      ASSERT_TRUE(a.holds(p, bytes));
      auto next = live.lower_bound(p);
      ASSERT_TRUE(next == live.end() || p + bytes <= next->first - sizeof(object_header));
      ASSERT_TRUE(next == live.begin() ||
                  std::prev(next)->first + std::prev(next)->second <= p - sizeof(object_header));
      std::memset(p, mark(p), bytes);
      live.emplace(p, bytes);
    } else {
      auto i2 = live.lower_bound(a.begin + random() % a.bytes_);
      if (i2 == live.end()) i2 = live.begin();
      for (std::uint64_t b = 0; b < i2->second; b += 97)
        ASSERT_EQ(std::to_integer<int>(i2->first[b]), mark(i2->first)) << "somebody else wrote there";
      a.h.free(i2->first);
      live.erase(i2);
    }
    if (i % 10'000 == 0) a.h.check_invariants();
  }
  EXPECT_EQ(a.h.live_objects(), live.size());
  for (const auto& [p, n] : live) a.h.free(p);
  EXPECT_EQ(a.h.live_objects(), 0u);
}

TEST(Heap, FreeRangesJoinAgain) {
  area a(GiB);
  std::vector<void*> parts;
  while (void* p = a.h.allocate(20 * MiB, 16)) parts.push_back(p);
  ASSERT_GT(parts.size(), 45u);
  EXPECT_EQ(a.h.allocate(20 * MiB, 16), nullptr);
  std::shuffle(parts.begin(), parts.end(), std::mt19937_64(3));
  for (void* p : parts) a.h.free(p);
  a.h.check_invariants();
  EXPECT_EQ(a.taken, a.at_start);
  void* all = a.h.allocate(GiB - 2 * MiB, 16);
  EXPECT_NE(all, nullptr) << "what was freed in pieces is one range again";
  a.h.free(all);
}

TEST(Heap, AddressesAreUsedAgain) {
  area a(64 * MiB);
  for (int round = 0; round < 3'000; ++round) {
    void* p = a.h.allocate(10 * MiB, 4096);
    void* q = a.h.allocate(30 * KiB, 16);
    void* r = a.h.allocate(100, 16);
    ASSERT_TRUE(p != nullptr && q != nullptr && r != nullptr) << round;
    a.h.free(q);
    a.h.free(p);
    a.h.free(r);
  }
}

TEST(Heap, LargeOnesAreZeroAgain) {
  area a(GiB);
  auto* p = static_cast<std::byte*>(a.h.allocate(8 * MiB, 4096));
  std::memset(p, 0xff, 8 * MiB);
  a.h.free(p);
  auto* q = static_cast<std::byte*>(a.h.allocate(8 * MiB, 4096));
  EXPECT_TRUE(std::all_of(q, q + 8 * MiB, [](std::byte b) { return b == std::byte{0}; }))
      << "their pages were given back";
  a.h.free(q);
}

TEST(Heap, TheLimitHolds) {
  area a(GiB, 4 * MiB);
  EXPECT_EQ(a.h.allocate(5 * MiB, 16), nullptr);
  std::vector<void*> all;
  std::uint64_t bytes = 0;
  while (void* p = a.h.allocate(1000, 16)) {
    all.push_back(p);
    bytes += 1000;
    ASSERT_LT(all.size(), 10'000u);
  }
  EXPECT_LE(a.most, 4 * MiB);
  EXPECT_GT(bytes, 3 * MiB / 2) << "chunks that double must not leave half of it unused";
  EXPECT_EQ(a.h.allocate(1 * MiB, 16), nullptr);
  for (void* p : all) a.h.free(p);
  EXPECT_NE(a.h.allocate(1000, 16), nullptr);
}

// The pools keep their chunks until the end; what they keep is bounded by what was in use at once.
TEST(Heap, AMillionSmallObjectsInAndOut) {
  area a(4 * GiB);
  constexpr int n = 1'000'000;
  std::vector<std::uint64_t*> p(n);
  std::uint64_t most = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < n; ++i) {
      p[static_cast<std::size_t>(i)] =
          static_cast<std::uint64_t*>(a.h.allocate(8 + static_cast<std::uint64_t>(i) % 5 * 8, 8));
      ASSERT_NE(p[static_cast<std::size_t>(i)], nullptr);
      *p[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>(i);
    }
    for (int i = 0; i < n; ++i) ASSERT_EQ(*p[static_cast<std::size_t>(i)], static_cast<std::uint64_t>(i));
    if (round == 0) std::shuffle(p.begin(), p.end(), std::mt19937_64(9));
    for (auto* q : p) a.h.free(q);
    EXPECT_EQ(a.h.live_objects(), 0u);
    if (round == 0) most = a.most;
  }
  EXPECT_EQ(a.most, most) << "the second round lives in the memory of the first";
  EXPECT_LT(most, 160 * MiB);
}

// 100,000 ranges of equal size: neither taking nor giving back one may look at all of them.
TEST(Heap, ManyEqualRanges) {
  area a(8 * GiB);
  std::vector<void*> p;
  for (int i = 0; i < 100'000; ++i) p.push_back(a.h.allocate(60 * KiB, 16));
  for (std::size_t i = 0; i < p.size(); i += 2) a.h.free(p[i]);  // none of them has a free neighbour
  for (std::size_t i = 1; i < p.size(); i += 2) a.h.free(p[i]);
  EXPECT_EQ(a.taken, a.at_start);
  EXPECT_NE(a.h.allocate(7 * GiB, 16), nullptr);
}

TEST(Heap, WhatIsFreedIsMarkedDead) {
  area a(GiB);
  void* p = a.h.allocate(100, 16);
  void* q = a.h.allocate(100, 16);
  EXPECT_EQ(arena::header_of(p)->is.magic, object_header::live);
  a.h.free(p);
  EXPECT_EQ(arena::header_of(p)->is.magic, object_header::dead) << "a second free of it is noticed";
  EXPECT_EQ(arena::header_of(q)->is.magic, object_header::live);
  a.h.free(q);
}

TEST(Heap, SizesBeyondAnyMemoryGiveNull) {
  area a(GiB);
  EXPECT_EQ(a.h.allocate(~std::uint64_t{0}, 16), nullptr);
  EXPECT_EQ(a.h.allocate(~std::uint64_t{0} - 40, 1 << 20), nullptr);
  EXPECT_EQ(a.h.allocate(2 * GiB, 16), nullptr);
  EXPECT_EQ(a.h.allocate(1, std::uint64_t{1} << 45), nullptr);
}

}  // namespace
