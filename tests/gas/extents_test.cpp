// Addresses of distributed allocations: what is taken, given back, joined.
#include "gas/extents.hpp"
#include "gas/one_host.hpp"

#include <gtest/gtest.h>

namespace {

using godwit::gas::directory;
using godwit::gas::extents;
using namespace gas_test;

struct place : one_host {
  place() : one_host(1, GiB), net(setup(0)), blocks(net, where), addresses(net, where, blocks) {}
  ~place() { addresses.check_invariants(); }

  const godwit::gas::reach net;
  directory blocks;
  extents addresses;
};

TEST(Extents, FreshOnesFirst) {
  place p;
  for (std::uint64_t i = 0; i < 5; ++i) {
    const extents::taken t = p.addresses.take(3, 1);
    EXPECT_TRUE(t.found);
    EXPECT_FALSE(t.reused);
    EXPECT_EQ(t.first, i * 3);
    p.addresses.give(t.first, 3);
  }
}

TEST(Extents, FreedOnesAreJoinedWhenNothingIsFresh) {
  place p;
  const std::uint64_t all = p.where.granules();
  for (std::uint64_t g = 0; g < all; ++g) ASSERT_EQ(p.addresses.take(1, 1).first, g);
  EXPECT_FALSE(p.addresses.take(1, 1).found);
  for (const std::uint64_t g : {10, 12, 11, 20, 21}) p.addresses.give(g, 1);
  EXPECT_FALSE(p.addresses.take(4, 1).found);
  const extents::taken t = p.addresses.take(3, 1);
  EXPECT_TRUE(t.found && t.reused);
  EXPECT_EQ(t.first, 10u);
  EXPECT_EQ(p.addresses.take(1, 1).first, 20u) << "the search goes on where it ended";
  p.addresses.give(10, 3);
  EXPECT_EQ(p.addresses.take(1, 1).first, 21u);
  EXPECT_EQ(p.addresses.take(2, 1).first, 10u);
  EXPECT_EQ(p.addresses.take(1, 1).first, 12u);
}

TEST(Extents, Alignment) {
  place p;
  for (int i = 0; i < 8; ++i) {
    const extents::taken t = p.addresses.take(1, 16 * MiB);
    ASSERT_TRUE(t.found);
    EXPECT_EQ((p.where.shared_low + t.first * MiB) % (16 * MiB), 0u);
  }
  EXPECT_FALSE(p.addresses.take(p.where.granules() + 1, 1).found);
}

}  // namespace
