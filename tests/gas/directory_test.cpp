// The directory by itself: allocations are entered by hand. Who owns what, seen from the first of two hosts;
// blocks that move; what was removed. (Homes of all distributions: allocator_test.cpp. Copies of descriptors
// on other hosts: tests/global under MPI.)
#include "gas/directory.hpp"
#include "gas/one_host.hpp"

#include <godwit/global_memory.hpp>

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace {

using godwit::distribution;
using godwit::gas::descriptor;
using godwit::gas::directory;
using godwit::gas::global_address;
using godwit::gas::space;
using namespace gas_test;

/// Two hosts of two workers; worker 0's directory.
struct place : one_host {
  place() : one_host(2, 4 * GiB, GiB, 2), net(setup(0)), blocks(net, where) {}
  /// An allocation that begins at granule @p first.
  global_address enter(std::uint64_t first, std::uint64_t bytes, const distribution& how) {
    descriptor d;
    blocks.divide(d, bytes, 1, how.how());
    d.first = first;
    blocks.enter(d, false);
    return blocks.begin_of(d);
  }
  struct part {
    std::uint32_t owner;
    std::uint64_t offset, bytes;
    bool operator==(const part&) const = default;
  };
  std::vector<part> pieces(global_address begin, std::uint64_t offset, std::uint64_t bytes) {
    std::vector<part> all;
    EXPECT_TRUE(blocks.visit_pieces(begin + offset, bytes, [&](const godwit::gas::piece& p) {
      all.push_back({p.owner, p.at - begin, p.bytes});
    }));
    return all;
  }

  const godwit::gas::reach net;
  directory blocks;
};

TEST(Directory, PiecesOfARange) {
  place p;
  const global_address a = p.enter(7, 3 * MiB, distribution::cyclic(64 * KiB));
  EXPECT_EQ(
      p.pieces(a, 60 * KiB, 80 * KiB),
      (std::vector<place::part>{{0, 60 * KiB, 4 * KiB}, {1, 64 * KiB, 64 * KiB}, {2, 128 * KiB, 12 * KiB}}));
  EXPECT_EQ(p.blocks.first_piece(a + 200 * KiB, 1).owner, 3u);
  EXPECT_EQ(p.blocks.first_piece(a + 60 * KiB, 80 * KiB).bytes, 4 * KiB);
  EXPECT_TRUE(p.blocks.is_near(a, 128 * KiB));
  EXPECT_FALSE(p.blocks.is_near(a, 128 * KiB + 1)) << "worker 2 is of the other host";
  EXPECT_TRUE(p.pieces(a, 5, 0).empty());
}

TEST(Directory, WhatLiesBehindTheLastBlockIsItsOwners) {
  place p;
  const global_address a = p.enter(0, 100, distribution::at(1));
  EXPECT_EQ(p.pieces(a, 0, MiB), (std::vector<place::part>{{1, 0, MiB}}));
  EXPECT_EQ(p.blocks.home(a + 5000), 1u);
  EXPECT_FALSE(p.blocks.visit_pieces(a, MiB + 1, [](auto) {})) << "no more than its granules";
}

TEST(Directory, LocalMemoryNamesItsHome) {
  place p;
  for (std::uint32_t w = 0; w < 4; ++w) {
    const global_address a = p.where.local_begin(w) + 1000;
    EXPECT_EQ(p.blocks.find(a), nullptr);
    EXPECT_EQ(p.blocks.home(a), w);
    EXPECT_EQ(p.blocks.first_piece(a, 1).owner, w);
    EXPECT_EQ(p.blocks.is_near(a, 8), w < 2);
  }
}

TEST(Directory, FindsEveryGranuleUntilItIsRemoved) {
  place p;
  const global_address a = p.enter(3, 5 * MiB, distribution::cyclic());
  const global_address b = p.enter(8, 1, distribution::at(0));
  descriptor* d = p.blocks.find(a);
  ASSERT_NE(d, nullptr);
  EXPECT_EQ(d->bytes, 5 * MiB);
  for (std::uint64_t g = 0; g < 5; ++g) EXPECT_EQ(p.blocks.find(a + g * MiB + 5), d);
  EXPECT_NE(p.blocks.find(b), d);
  EXPECT_EQ(p.blocks.find(a - 1), nullptr);
  EXPECT_TRUE(p.blocks.is_live(*d));
  EXPECT_TRUE(p.blocks.remove(*d));
  EXPECT_FALSE(p.blocks.remove(*d)) << "the second one is told";
  EXPECT_FALSE(p.blocks.is_live(*d));
  for (std::uint64_t g = 0; g < 5; ++g) EXPECT_EQ(p.blocks.find(a + g * MiB), nullptr);
  // What is left of it names a granule where a smaller one begins now.
  p.enter(3, MiB, distribution::at(1));
  EXPECT_NE(p.blocks.find(a), nullptr);
  EXPECT_EQ(p.blocks.find(a + MiB), nullptr);
}

TEST(Directory, OwnersOfBlocksThatMove) {
  place p;
  distribution how = distribution::cyclic(4 * KiB);
  const global_address a = p.enter(1, 40 * KiB, how.movable());
  const descriptor& d = *p.blocks.find(a);
  EXPECT_EQ(p.blocks.first_piece(a, 1).owner, 0u) << "at first it is the home";
  p.blocks.words_of(d, 0).owner.store(godwit::gas::ownership{1, 3}.packed());
  EXPECT_EQ(p.blocks.first_piece(a, 1).owner, 3u);
  EXPECT_EQ(p.blocks.home(a), 0u) << "stays";
  EXPECT_FALSE(p.blocks.is_near(a, 1));
  EXPECT_EQ(p.pieces(a, 4 * KiB - 1, 2), (std::vector<place::part>{{3, 4 * KiB - 1, 1}, {1, 4 * KiB, 1}}));
}

TEST(Directory, BytesOfEachHost) {
  place p;
  auto bytes = [&](std::uint64_t n, const distribution& how) {
    descriptor d;
    p.blocks.divide(d, n, 1, how.how());
    return p.blocks.bytes_per_host(d);
  };
  using two = std::vector<std::uint64_t>;
  EXPECT_EQ(bytes(1000, distribution::at(3)), (two{0, 1000}));
  EXPECT_EQ(bytes(1000, distribution::cyclic(16)), (two{512, 488})) << "the 63rd is half there, at home 2";
  EXPECT_EQ(bytes(1000, distribution::blocked(256)), (two{512, 488}));
  EXPECT_EQ(bytes(100, distribution::cyclic(4096)), (two{100, 0}));
}

TEST(Directory, AsksForHomes) {
  place p;
  auto f = [](std::uint64_t i, std::uint64_t n, std::uint32_t homes) {
    return static_cast<std::uint32_t>((n - i) % homes);
  };
  const distribution how = distribution::user(16, f);
  descriptor d;
  p.blocks.divide(d, 90, 1, how.how());
  EXPECT_EQ(p.blocks.ask_homes(d, how.how()), (std::vector<std::uint32_t>{2, 1, 0, 3, 2, 1}));
}

}  // namespace
