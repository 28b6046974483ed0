// Blocks of all sizes from one part, and from parts of several processes that free each other's.
// test: timeout=120 skip-qemu
#include "heap/part.hpp"

#include "heap/memory.hpp"
#include "heap/pool.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using godwit::heap::part;
using heap_test::memory;
namespace heap = godwit::heap;

constexpr std::uint64_t sizes[] = {0,    1,    15,   16,    17,    100,   128,   129,    1000,   1024,
                                   1025, 4000, 8192, 10000, 65536, 65537, 70000, 300000, 1 << 20};

struct owned {
  unsigned char* at;
  std::uint64_t bytes;
  unsigned char value;
};

/// Blocks say at both ends what was written into them.
owned make(part& p, std::uint64_t bytes, unsigned char value) {
  auto* const at = static_cast<unsigned char*>(heap::allocate(p, bytes));
  if (at == nullptr) std::abort();
  if (bytes != 0) at[0] = at[bytes - 1] = value;
  return {at, bytes, value};
}
bool is_whole(const owned& o) { return o.bytes == 0 || (o.at[0] == o.value && o.at[o.bytes - 1] == o.value); }

std::uint64_t some_bytes(std::mt19937& random) {
  const unsigned how = random() % 100;
  return random() % (how < 80 ? 300 : how < 97 ? 9000 : how < 99 ? 70'000 : 400'000);
}

TEST(Part, EverySizeIsAlignedAndHasItsBytes) {
  const memory m(1);
  part& p = memory::part(0);
  std::vector<owned> all;
  for (int round = 0; round < 50; ++round)
    for (const std::uint64_t bytes : sizes) {
      all.push_back(make(p, bytes, static_cast<unsigned char>(round + 1)));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back().at) % 16, 0u);
      EXPECT_GE(heap::usable_bytes(all.back().at), bytes);
    }
  heap::check_invariants(p);
  for (const owned& o : all) {
    EXPECT_TRUE(is_whole(o));
    heap::free(&p, o.at);
  }
  EXPECT_EQ(heap::live_bytes(), 0u);
  heap::check_invariants();
}

TEST(Part, Alignments) {
  const memory m(1);
  part& p = memory::part(0);
  for (std::uint64_t alignment = 1; alignment <= std::uint64_t{1} << 24; alignment *= 2)
    for (const std::uint64_t bytes : sizes) {
      void* const at = heap::allocate_aligned(p, bytes, alignment);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % alignment, 0u);
      EXPECT_GE(heap::usable_bytes(at), bytes);
      heap::free(&p, at);
    }
  EXPECT_EQ(heap::live_bytes(), 0u);
}

TEST(Part, ManyBlocksAtRandom) {
  const memory m(1);
  part& p = memory::part(0);
  std::mt19937 random(5);
  std::vector<owned> live;
  for (int turn = 0; turn < 300'000; ++turn) {
    const unsigned what = random() % 8;
    if (what < 4 && live.size() < 3000) {
      live.push_back(make(p, some_bytes(random), static_cast<unsigned char>(turn)));
    } else if (!live.empty()) {
      owned& o = live[random() % live.size()];
      ASSERT_TRUE(is_whole(o));
      if (what == 4) {
        const std::uint64_t bytes = some_bytes(random);
        o.at = static_cast<unsigned char*>(heap::reallocate(p, o.at, bytes));
        ASSERT_TRUE(o.bytes == 0 || bytes == 0 || o.at[0] == o.value);
        o.bytes = bytes;
        if (bytes != 0) o.at[0] = o.at[bytes - 1] = o.value;
      } else {
        heap::free(&p, o.at);
        o = live.back();
        live.pop_back();
      }
    }
    if (turn % 10'000 == 0) heap::check_invariants();
  }
  for (const owned& o : live) heap::free(&p, o.at);
  EXPECT_EQ(heap::live_bytes(), 0u);
  heap::tidy(p);
  heap::check_invariants();
}

TEST(Part, ZeroIsZeroAlsoWhenItWasUsed) {
  const memory m(1);
  part& p = memory::part(0);
  for (int round = 0; round < 3; ++round)
    for (const std::uint64_t bytes : sizes) {
      auto* const at = static_cast<unsigned char*>(heap::allocate_zero(p, bytes));
      EXPECT_TRUE(std::all_of(at, at + bytes, [](unsigned char c) { return c == 0; }));
      std::memset(at, 1, bytes);
      heap::free(&p, at);
    }
}

/// True is sure, and false where somebody has the block, also in the middle of it.
TEST(Part, WhatIsFreeIsKnownToWhoFreedIt) {
  const memory m(2);
  part &p = memory::part(0), &other = memory::part(1);
  for (const std::uint64_t bytes : sizes) {
    auto* const at = static_cast<std::byte*>(heap::allocate(p, bytes));
    auto* const next = static_cast<std::byte*>(heap::allocate(p, bytes));
    const std::uint64_t middle = bytes / 2;
    for (part* const who : {&p, &other})
      EXPECT_FALSE(heap::is_free(*who, at) || heap::is_free(*who, at + middle)) << bytes;
    heap::free(&p, at);
    EXPECT_TRUE(heap::is_free(p, at) && heap::is_free(p, at + middle)) << bytes;
    EXPECT_FALSE(heap::is_free(p, next) || heap::is_free(p, next + middle)) << bytes;
    heap::free(&other, next);
    EXPECT_TRUE(heap::is_free(other, next) && heap::is_free(other, next + middle)) << bytes;
    heap::tidy(other);  // home by `returned`
    EXPECT_TRUE(heap::is_free(p, next)) << bytes;
    heap::tidy(p);
    EXPECT_TRUE(heap::is_free(p, next)) << bytes;
    auto* const again = static_cast<std::byte*>(heap::allocate(p, bytes));
    EXPECT_FALSE(heap::is_free(p, again) || heap::is_free(other, again)) << bytes;
    heap::free(&p, again);
  }
  EXPECT_TRUE(heap::is_free(p, heap::bytes_of(heap::here.all->table + heap::here.all->fresh)));
}

/// Large blocks and small ones where others were: the table's entries are old in the middle of a large block.
TEST(Part, WhatIsInUseIsNeverCalledFree) {
  const memory m(2);
  part &p = memory::part(0), &other = memory::part(1);
  std::mt19937 random(7);
  std::vector<owned> live;
  for (int turn = 0; turn < 60'000; ++turn) {
    const std::uint64_t bytes = random() % 4 == 0 ? random() % 400'000 : some_bytes(random);
    if (turn % 50 == 0)
      for (part* const each : {&p, &other}) heap::tidy(*each);  // runs go back, some of them half used
    if (live.size() < 300 && random() % 2 == 0) {
      live.push_back(make(random() % 2 == 0 ? p : other, bytes, 1));
    } else if (!live.empty()) {
      owned& o = live[random() % live.size()];
      part& who = random() % 2 == 0 ? p : other;
      heap::free(&who, o.at);
      ASSERT_TRUE(heap::is_free(who, o.at) && heap::is_free(who, o.at + o.bytes / 2)) << o.bytes;
      o = live.back();
      live.pop_back();
    }
    for (int look = 0; look < 4 && !live.empty(); ++look) {
      const owned& o = live[random() % live.size()];
      const std::uint64_t inside = o.bytes == 0 ? 0 : random() % o.bytes;
      ASSERT_FALSE(heap::is_free(p, o.at + inside) || heap::is_free(other, o.at + inside)) << o.bytes;
    }
  }
}

TEST(Part, SpansThatAreFreeGoBack) {
  const memory m(1);
  part& p = memory::part(0);
  std::vector<void*> all;
  for (int i = 0; i < 100'000; ++i) all.push_back(heap::allocate(p, 64));
  const std::uint64_t used = heap::here.all->fresh;
  for (void* const at : all) heap::free(&p, at);
  heap::tidy(p);
  heap::check_invariants();
  EXPECT_NE(heap::pool::take(used), nullptr) << "all of it is one run again";
  EXPECT_EQ(heap::here.all->fresh, used);
}

/// And handed out again before the owner has to see any of them.
TEST(Part, WhatOthersFreeIsKeptUpToALimit) {
  const memory m(2);
  part &p = memory::part(0), &other = memory::part(1);
  for (const std::uint64_t bytes : {16, 64, 100, 1000, 40'000}) {
    const unsigned c = heap::class_of(bytes);
    const std::uint64_t whole = heap::bytes_of_class(c),
                        most = std::clamp<std::uint64_t>(65536 / whole, 4, 1024);
    std::vector<void*> all;
    for (std::uint64_t i = 0; i < 3 * most; ++i) all.push_back(heap::allocate(p, bytes));
    for (std::uint64_t i = 0; i < most; ++i) heap::free(&other, all[i]);
    EXPECT_EQ(other.found[c].count, most) << bytes;
    EXPECT_EQ(p.returned.load(), nullptr) << bytes << ": nothing had to go home yet";
    for (std::uint64_t i = 0; i < most; ++i) all[i] = heap::allocate(other, bytes);
    EXPECT_EQ(other.found[c].count, 0u) << bytes;
    for (void* const at : all) {
      EXPECT_EQ(heap::run_at(at)->owner, &p) << bytes;
      heap::free(&other, at);
      EXPECT_LE(other.found[c].count, most) << bytes;
    }
    heap::check_invariants();
    heap::tidy(other);
    heap::tidy(p);
    EXPECT_EQ(heap::live_bytes(), 0u);
  }
}

// Processes hand each other blocks through a few places, and free what they find there.
TEST(Part, ProcessesFreeEachOthersBlocks) {
  constexpr std::uint32_t workers = 4;
  const memory m(workers);
  struct places {
    std::atomic<unsigned char*> at[64];
  };
  void* const shared =
      mmap(nullptr, sizeof(places), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& box = *new (shared) places;
  pid_t pids[workers];
  for (std::uint32_t me = 0; me < workers; ++me) {
    pids[me] = fork();
    if (pids[me] != 0) continue;
    heap::enter(me);
    part& p = memory::part(me);
    std::mt19937 random(me + 1);
    for (int turn = 0; turn < 200'000; ++turn) {
      const std::uint64_t bytes = 24 + some_bytes(random);
      auto* const at = static_cast<unsigned char*>(heap::allocate(p, bytes));
      if (at == nullptr) _exit(2);
      std::memcpy(at, &bytes, sizeof bytes);
      at[bytes - 1] = 77;
      unsigned char* const got = box.at[random() % 64].exchange(at, std::memory_order_acq_rel);
      if (got == nullptr) continue;
      std::uint64_t its = 0;
      std::memcpy(&its, got, sizeof its);
      if (got[its - 1] != 77) _exit(3);
      got[its - 1] = 0;
      heap::free(&p, got);
    }
    _exit(0);
  }
  for (const pid_t pid : pids) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  for (auto& at : box.at)
    if (at.load() != nullptr) heap::free(&memory::part(0), at.load());
  EXPECT_EQ(heap::live_bytes(), 0u);
  for (std::uint32_t w = 0; w < workers; ++w) heap::tidy(memory::part(w));
  heap::check_invariants();
  munmap(shared, sizeof(places));
}

}  // namespace
