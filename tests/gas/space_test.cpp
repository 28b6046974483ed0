// The division of the address space of global memory: parts disjoint and in order, homes of addresses,
// limits. Pure arithmetic.
// test: tsan timeout=60
#include "gas/space.hpp"

#include "gas/cache.hpp"
#include "gas/words.hpp"

#include <gtest/gtest.h>

namespace {

using godwit::gas::plan_space;
using godwit::gas::space;

constexpr std::uint64_t MiB = 1 << 20, GiB = 1ull << 30, TiB = 1ull << 40;

space plan(std::uint64_t bytes, std::uint32_t homes, std::uint64_t cache_bytes = 256 * MiB) {
  return plan_space(bytes, homes, sizeof(godwit::gas::host_words) + homes * sizeof(godwit::gas::home_words),
                    godwit::gas::cache::units_of(cache_bytes) * sizeof(godwit::gas::unit),
                    sizeof(godwit::gas::descriptor));
}

void check(const space& s, std::uint64_t bytes, std::uint32_t homes) {
  ASSERT_EQ(s.homes, homes);
  EXPECT_GE(s.units_low,
            s.words_low + sizeof(godwit::gas::host_words) + homes * sizeof(godwit::gas::home_words));
  EXPECT_LE(s.units_low, s.directory_low);
  EXPECT_LE(s.directory_low, s.shadow_low);
  EXPECT_LE(s.shadow_low, s.local_low);
  EXPECT_LT(s.local_low, s.shared_low);
  EXPECT_LT(s.shared_low, s.bytes);
  EXPECT_LE(s.bytes, bytes);
  // Everything that the tables must describe is described.
  EXPECT_GE((s.shadow_low - s.directory_low) / sizeof(godwit::gas::descriptor), s.granules());
  const std::uint64_t local = std::uint64_t{homes} << s.local_bits;
  EXPECT_GE((s.local_low - s.shadow_low) * 8 * space::shadow_grain, local);
  EXPECT_LE(s.local_low + local, s.shared_low);
  EXPECT_EQ(s.shared_low % space::granule_bytes, 0u);
  EXPECT_GE(s.granules(), 1u);
  EXPECT_EQ(s.granule_of(s.shared_low), 0u);
  EXPECT_EQ(s.granule_of(s.bytes - 1), s.granules() - 1);
  // Homes of addresses, at both ends of each area.
  for (const std::uint32_t h : {0u, 1u, homes / 2, homes - 1}) {
    if (h >= homes) continue;
    EXPECT_EQ(s.local_home(s.local_begin(h)), h);
    EXPECT_EQ(s.local_home(s.local_begin(h) + s.local_bytes() - 1), h);
    EXPECT_TRUE(s.is_local(s.local_begin(h)));
    EXPECT_TRUE(s.is_local(s.local_begin(h) + s.local_bytes() - 1));
    EXPECT_FALSE(s.is_shared(s.local_begin(h)));
  }
  EXPECT_FALSE(s.is_local(0)) << "null is nowhere";
  EXPECT_FALSE(s.is_shared(0));
  EXPECT_FALSE(s.is_local(s.local_low - 1));
  EXPECT_FALSE(s.is_local(s.local_low + local));
  EXPECT_TRUE(s.is_shared(s.shared_low));
  EXPECT_TRUE(s.is_shared(s.bytes - 1));
  EXPECT_FALSE(s.is_shared(s.bytes));
  EXPECT_FALSE(s.is_local(~std::uint64_t{0}));
  EXPECT_FALSE(s.is_shared(~std::uint64_t{0}));
}

TEST(Space, SmallAndLargeRuns) {
  for (const std::uint32_t homes : {1u, 2u, 3u, 7u, 64u, 1000u, 65'536u})
    for (const std::uint64_t bytes : {4 * GiB, 64 * GiB, 8 * TiB, 64 * TiB}) {
      SCOPED_TRACE(testing::Message() << homes << " homes, " << bytes << " bytes");
      const space s = plan(bytes, homes);
      if (bytes / homes < 64 * MiB) continue;  // what is too little says the next test
      check(s, bytes, homes);
    }
}

TEST(Space, WhatDoesNotFitIsRefused) {
  EXPECT_EQ(plan(0, 1).homes, 0u);
  EXPECT_EQ(plan(MiB, 1).homes, 0u);
  EXPECT_EQ(plan(8 * TiB, 0).homes, 0u);
  EXPECT_EQ(plan(64 * GiB, 1u << 24).homes, 0u) << "less than a page for each home";
  EXPECT_EQ(plan(1ull << 62, (1u << 24) + 1).homes, 0u);
  EXPECT_EQ(plan(GiB, 1, TiB).homes, 0u) << "the table of the cache alone is larger";
  // As soon as it fits at all, it is valid.
  for (std::uint64_t bytes = 16 * MiB; bytes < 2 * GiB; bytes += 5 * MiB)
    for (const std::uint32_t homes : {1u, 2u, 5u, 100u})
      if (const space s = plan(bytes, homes); s.homes != 0) check(s, bytes, homes);
}

// 2^20 homes with blocks and areas of 4 GiB and more: further than today's processors map, the numbers go on.
TEST(Space, AMillionHomesWithAreasOfMoreThan4GiB) {
  const space s = plan(1ull << 55, 1u << 20);
  check(s, 1ull << 55, 1u << 20);
  EXPECT_GE(s.local_bytes(), 4 * GiB);
  EXPECT_GE(s.granules() << space::granule_bits, (1ull << 20) * 4 * GiB) << "a block of 4 GiB for each home";
}
TEST(Space, SixteenMillionHomes) {
  static_assert(space::most_homes == 1u << 24);
  const space s = plan(1ull << 60, 1u << 24);
  check(s, 1ull << 60, 1u << 24);
  EXPECT_GE(s.local_bytes(), 4 * GiB);
  EXPECT_EQ(s.local_home(s.local_begin((1u << 24) - 1) + 4 * GiB), (1u << 24) - 1);
}
TEST(Space, NoHomeGetsMoreThanItCanUse) {
  const space s = plan(64 * TiB, 1);
  check(s, 64 * TiB, 1);
  EXPECT_LE(s.local_bytes(), TiB);
  EXPECT_GE(s.granules() << space::granule_bits, 60 * TiB) << "the rest is for distributed allocations";
}

// Every home has the same number of addresses, none overlap: by hand over all homes of a middle-sized run.
TEST(Space, AreasFollowEachOther) {
  const space s = plan(8 * TiB, 777);
  for (std::uint32_t h = 0; h + 1 < 777; ++h) {
    ASSERT_EQ(s.local_begin(h) + s.local_bytes(), s.local_begin(h + 1));
    ASSERT_EQ(s.local_home(s.local_begin(h) + 12'345), h);
  }
}

}  // namespace
