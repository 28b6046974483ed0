// Allocation without a scheduler: the allocators of many workers of one host, in one process, on one window.
// Homes of all blocks of all distributions, reuse of addresses, limits.
// test: timeout=120 skip-qemu
#include "gas/allocator.hpp"
#include "gas/one_host.hpp"

#include <godwit/global_memory.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace {

using godwit::distribution;
using godwit::gas::global_address;
using godwit::gas::space;
using namespace gas_test;

/// A worker's allocator and what it stands on.
struct worker {
  worker(const one_host& h, std::uint32_t number, bool checks)
      : net(h.setup(number)),
        blocks(net, h.where),
        check(net, h.where, blocks, checks),
        objects(net, h.where, blocks, check) {}
  global_address allocate(std::uint64_t bytes, std::uint64_t alignment, const godwit::detail::spread& how,
                          godwit::detail::place where) {
    return objects.allocate(bytes, alignment, how, where);
  }
  global_address allocate_local(std::uint64_t bytes, std::uint64_t alignment, godwit::detail::place where) {
    return objects.allocate_local(bytes, alignment, where);
  }
  void free(global_address at, std::uint64_t bytes, godwit::detail::place where) {
    objects.free(at, bytes, where);
  }
  std::uint32_t home(global_address at) { return blocks.home(at); }

  const godwit::gas::reach net;
  godwit::gas::directory blocks;
  godwit::gas::checks check;
  godwit::gas::allocator objects;
};

/// A host of @p workers.
struct host : one_host {
  explicit host(std::uint32_t workers, std::uint64_t bytes = 64 * GiB, std::uint64_t limit = 32 * GiB,
                bool checks = false)
      : one_host(workers, bytes, limit) {
    for (std::uint32_t w = 0; w < workers; ++w) all.push_back(std::make_unique<worker>(*this, w, checks));
    at_start = used();
  }
  ~host() {
    for (auto& w : all) w->objects.check_invariants();
  }
  worker& operator[](std::uint32_t w) { return *all[w]; }
  /// Beyond what the pools take at the start.
  std::uint64_t used() const {
    std::uint64_t used = 0, limit = 0;
    all[0]->objects.usage(used, limit);
    return used - at_start;
  }

  std::vector<std::unique_ptr<worker>> all;
  std::uint64_t at_start = 0;
};

TEST(Allocator, HomesOfAllBlocks) {
  for (const std::uint32_t workers : {1u, 2u, 3u, 7u, 100u}) {
    SCOPED_TRACE(workers);
    host h(workers);
    worker& m = h[workers / 2];
    // Also sizes smaller than the number of homes, and not divisible by anything.
    for (const std::uint64_t bytes :
         {1ul, 5ul, 16ul, 99ul, 1000ul, 64 * KiB, 64 * KiB + 1, 3 * MiB + 77, 20 * MiB - 1}) {
      SCOPED_TRACE(bytes);
      for (const std::uint32_t home : {0u, workers - 1}) {
        const global_address a = m.allocate(bytes, 1, distribution::at(home).how(), here);
        EXPECT_EQ(m.home(a), home);
        EXPECT_EQ(h[0].home(a + bytes - 1), home);
        m.free(a, bytes, here);
      }
      for (const std::uint64_t block :
           {std::uint64_t{16}, std::uint64_t{48}, std::uint64_t{4096}, std::uint64_t{0}}) {
        if (bytes / (block + 1) > 100'000) continue;
        const std::uint64_t b = block != 0 ? block : 64 * KiB;
        const global_address a = m.allocate(bytes, 1, distribution::cyclic(block).how(), here);
        for (std::uint64_t i = 0; i < bytes; i += b / 2) ASSERT_EQ(h[0].home(a + i), i / b % workers);
        EXPECT_EQ(m.home(a + bytes - 1), (bytes - 1) / b % workers);
        m.free(a, bytes, here);
      }
      {
        const global_address a = m.allocate(bytes, 1, distribution::blocked().how(), here);
        std::uint32_t last = 0;
        for (std::uint64_t i = 0; i < bytes; i += std::max<std::uint64_t>(bytes / 1000, 1)) {
          const std::uint32_t home = h[0].home(a + i);
          ASSERT_LT(home, workers);
          ASSERT_GE(home, last) << "in order";
          last = home;
        }
        EXPECT_EQ(m.home(a), 0u);
        if (bytes >= workers * 4096u) {
          EXPECT_EQ(m.home(a + bytes - 1), workers - 1) << "everybody has a part";
        }
        m.free(a, bytes, here);
      }
      {
        auto f = [](std::uint64_t i, std::uint64_t n, std::uint32_t homes) {
          return static_cast<std::uint32_t>((n - i) * 7 % homes);
        };
        const global_address a = m.allocate(bytes, 1, distribution::user(4096, f).how(), here);
        const std::uint64_t n = (bytes + 4095) / 4096;
        for (std::uint64_t i = 0; i < n; ++i) ASSERT_EQ(h[0].home(a + i * 4096), f(i, n, workers));
        m.free(a, bytes, here);
      }
    }
  }
}

TEST(Allocator, ManyHomes) {
  host h(20'000, std::uint64_t{1} << 40);
  const std::uint64_t bytes = 20'000 * KiB;
  const global_address a = h[19'999].allocate(bytes, 1, distribution::cyclic(KiB).how(), here);
  for (std::uint32_t i = 0; i < 20'000; ++i) ASSERT_EQ(h[3].home(a + i * KiB), i);
  h[17].free(a, bytes, here);
  const global_address p = h[19'999].allocate_local(8, 8, here);
  EXPECT_EQ(h[0].home(p), 19'999u);
  h[0].free(p, 8, here);
}

TEST(Allocator, BlocksOfMoreThan4GiB) {
  host h(4);
  // nothing is touched
  const global_address a = h[1].allocate(18 * GiB, 1, distribution::cyclic(5 * GiB).how(), here);
  EXPECT_EQ(h[0].home(a), 0u);
  EXPECT_EQ(h[0].home(a + 5 * GiB - 1), 0u);
  EXPECT_EQ(h[0].home(a + 5 * GiB), 1u);
  EXPECT_EQ(h[0].home(a + 15 * GiB), 3u);
  EXPECT_EQ(h[0].home(a + 18 * GiB - 1), 3u);
  *h.at(a + 18 * GiB - 1) = std::byte{9};
  h[2].free(a, 18 * GiB, here);
  EXPECT_EQ(h.used(), 0u);
}

TEST(Allocator, Alignments) {
  host h(3);
  for (std::uint64_t alignment = 1; alignment <= GiB; alignment *= 2)
    for (const auto& d :
         {distribution::local(), distribution::at(1), distribution::blocked(), distribution::cyclic()}) {
      const global_address a = h[0].allocate(1000, alignment, d.how(), here);
      EXPECT_EQ(a % alignment, 0u);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(h.at(a)) % std::min<std::uint64_t>(alignment, 4096), 0u);
      h[0].free(a, 1000, here);
    }
}

// The range of addresses is used up many times over, by sizes that do not fit each other's gaps.
TEST(Allocator, AddressesAreUsedAgain) {
  host h(2, 512 * MiB);
  std::mt19937_64 random(5);
  struct one {
    global_address at;
    std::uint64_t bytes;
  };
  std::vector<one> live;
  const std::uint64_t room = h.where.granules() << space::granule_bits;
  ASSERT_LT(room, 400 * MiB);
  std::uint64_t in_use = 0, total = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bytes = 1 + random() % (random() % 10 == 0 ? 30 * MiB : 3 * MiB);
    while (in_use + bytes > room / 3) {
      std::swap(live[random() % live.size()], live.back());
      h[static_cast<std::uint32_t>(random() % 2)].free(live.back().at, live.back().bytes, here);
      in_use -= (live.back().bytes + MiB) / MiB * MiB;
      live.pop_back();
    }
    worker& m = h[static_cast<std::uint32_t>(random() % 2)];
    const global_address a = m.allocate(bytes, 1, distribution::blocked().how(), here);
    for (const one& o : live) ASSERT_TRUE(a + bytes <= o.at || o.at + o.bytes <= a) << "overlap";
    ASSERT_LE(a + bytes, h.where.bytes);
    for (const global_address end : {a, a + bytes - 1}) {
      ASSERT_EQ(*h.at(end), std::byte{0}) << "memory that is used again is zero";
      *h.at(end) = std::byte{1};
    }
    live.push_back({a, bytes});
    in_use += (bytes + MiB) / MiB * MiB;
    total += bytes;
  }
  EXPECT_GT(total, 20 * room);
  for (const one& o : live) h[0].free(o.at, o.bytes, here);
  EXPECT_EQ(h.used(), 0u);
  // All of it is one range again.
  const global_address all = h[0].allocate(room, 1, distribution::cyclic().how(), here);
  h[1].free(all, room, here);
}

TEST(Allocator, AlignedOnesAfterTheAddressesAreUsedUp) {
  host h(2, 4 * GiB);
  const std::uint64_t room = h.where.granules() << space::granule_bits;
  std::vector<global_address> all;
  for (std::uint64_t n = 0; n + 8 * MiB <= room; n += 8 * MiB)
    all.push_back(h[0].allocate(8 * MiB, 1, distribution::blocked().how(), here));
  EXPECT_THROW(h[0].allocate(64 * MiB, 64 * MiB, distribution::blocked().how(), here),
               godwit::global_bad_alloc);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i < 20 || i > 40) h[1].free(all[i], 8 * MiB, here);
  for (int round = 0; round < 100; ++round) {
    const global_address a = h[0].allocate(64 * MiB, 64 * MiB, distribution::blocked().how(), here);
    EXPECT_EQ(a % (64 * MiB), 0u);
    const global_address b = h[1].allocate(MiB, 2 * MiB, distribution::cyclic().how(), here);
    EXPECT_EQ(b % (2 * MiB), 0u);
    h[1].free(a, 64 * MiB, here);
    h[0].free(b, MiB, here);
  }
}

TEST(Allocator, OutOfMemorySaysHowMuch) {
  host h(2, 4 * GiB, 100 * MiB);
  for (const auto& d :
       {distribution::local(), distribution::at(1), distribution::blocked(), distribution::cyclic()}) {
    try {
      h[0].allocate(200 * MiB, 1, d.how(), here);
      ADD_FAILURE() << "200 MiB of 100";
    } catch (const godwit::global_bad_alloc& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("200.0 MiB"), std::string::npos) << text;
      EXPECT_NE(text.find("100.0 MiB"), std::string::npos) << text;
      EXPECT_NE(text.find("GODWIT_GLOBAL_LIMIT"), std::string::npos) << text;
    }
  }
  EXPECT_EQ(h.used(), 0u) << "what failed costs nothing";
  auto f = [](std::uint64_t, std::uint64_t, std::uint32_t) { return 0u; };
  EXPECT_THROW(h[0].allocate(3 * GiB, 1, distribution::user(4096, f).how(), here), godwit::global_bad_alloc);
  const std::uint64_t before = h.used();
  for (int i = 0; i < 1000; ++i)
    EXPECT_THROW(h[0].allocate(200 * MiB, 1, distribution::user(64 * KiB, f).how(), here),
                 godwit::global_bad_alloc);
  EXPECT_LE(h.used(), before + MiB) << "the table of homes is freed again";
  try {
    h[1].allocate(std::uint64_t{1} << 60, 1, distribution::cyclic().how(), here);
    ADD_FAILURE();
  } catch (const godwit::global_bad_alloc&) {
  }
}

TEST(Allocator, NotEnoughAddresses) {
  host h(2, 512 * MiB, 64 * GiB);
  for (const auto& d : {distribution::local(), distribution::cyclic()}) {
    try {
      h[0].allocate(2 * GiB, 1, d.how(), here);
      ADD_FAILURE();
    } catch (const godwit::global_bad_alloc& e) {
      EXPECT_NE(std::string(e.what()).find("GODWIT_GLOBAL_BYTES"), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(h.used(), 0u);
}

TEST(Allocator, BadArgumentsAreNamed) {
  host h(3);
  auto expect = [&](const distribution& d, std::uint64_t alignment, const char* word) {
    try {
      h[0].allocate(1000, alignment, d.how(), here);
      ADD_FAILURE() << word;
    } catch (const std::invalid_argument& e) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  };
  expect(distribution::local(), 0, "alignment");
  expect(distribution::local(), 3, "alignment");
  expect(distribution::cyclic(), std::uint64_t{1} << 41, "alignment");
  expect(distribution::at(3), 8, "no worker 3");
  expect(distribution::cyclic(100), 8, "multiple of 16");
  expect(distribution::cyclic(~std::uint64_t{15}), 8, "block size");
  expect(distribution::blocked(16), 8, "more than one for each");
  auto f = [](std::uint64_t i, std::uint64_t, std::uint32_t homes) { return i == 2 ? homes : 0; };
  expect(distribution::user(16, f), 8, "block 2");
  expect(distribution::user(0, f), 8, "block size");
  EXPECT_EQ(h.used(), 0u);
}

// What one worker allocates, another frees; the owner finds it when it allocates again.
TEST(Allocator, FreedByOthersComesBack) {
  host h(4);
  for (int round = 0; round < 20; ++round) {
    std::vector<global_address> all;
    for (int i = 0; i < 5'000; ++i) all.push_back(h[1].allocate_local(40, 8, here));
    for (std::size_t i = 0; i < all.size(); ++i) h[static_cast<std::uint32_t>(i % 4)].free(all[i], 40, here);
  }
  EXPECT_LT(h.used(), 3 * MiB) << "100,000 objects, never more than 5,000 at once";
}

// check_global: what is freed stays away for a while, unless it is needed.
TEST(Allocator, QuarantineKeepsWhatWasFreed) {
  host h(2, 64 * GiB, 32 * GiB, true);
  const global_address a = h[0].allocate_local(64, 8, here);
  h[0].free(a, 64, here);
  for (int i = 0; i < 1'000; ++i) {
    const global_address b = h[0].allocate_local(64, 8, here);
    ASSERT_NE(b, a) << "used again after " << i;
    h[i % 2 == 0 ? 0 : 1].free(b, 64, here);
  }
  for (int i = 0; i < 200'000; ++i) h[0].free(h[0].allocate_local(64, 8, here), 64, here);
  EXPECT_LT(h.used(), 32 * MiB) << "for a while only";
}
TEST(Allocator, QuarantineGivesWayWhenMemoryIsShort) {
  host h(1, 64 * GiB, 8 * MiB, true);
  for (int i = 0; i < 50; ++i) {
    const global_address a = h[0].allocate_local(3 * MiB, 8, here);
    h[0].free(a, 3 * MiB, here);
  }
}

}  // namespace
