// Tests of what the NAS Parallel Benchmarks (bench/npb) call verified: the official values are, and what
// differs by more than the official tolerance is not; of the random numbers, against NPB's recurrence step
// by step.
// test: timeout=60 once
#include "bench/npb/verify.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <string>

#include "bench/npb/random.hpp"

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
const std::string classes = "SWA";

TEST(NpbVerify, EpTakesBothSums) {
  for (const char c : classes) {
    const npb::ep_problem p(c);
    EXPECT_TRUE(p.verified(p.sx * (1 + 9e-9), p.sy * (1 - 9e-9)));
    EXPECT_FALSE(p.verified(p.sx * (1 + 2e-8), p.sy));
    EXPECT_FALSE(p.verified(p.sx, p.sy * (1 - 2e-8)));
    EXPECT_FALSE(p.verified(p.sy, p.sx));
    EXPECT_FALSE(p.verified(not_a_number, p.sy));
  }
}

TEST(NpbVerify, IsKnowsTheRanksOfAllIterations) {
  // Class, then the ranks of its five test keys in iteration 3, from the rules of NPB's reference code.
  const struct {
    char size_class;
    std::int64_t third[npb::is_problem::tests];
  } known[] = {{'S', {0 + 3, 18 + 3, 346 + 3, 64917 - 3, 65463 - 3}},
               {'W', {1249 + 1, 11698 + 1, 1039987 - 3, 1043896 - 3, 1048018 - 3}},
               {'A', {104 + 2, 17523 + 2, 123928 + 2, 8288932 - 2, 8388264 - 2}}};
  for (const auto& k : known) {
    const npb::is_problem p(k.size_class);
    for (int t = 0; t < npb::is_problem::tests; ++t) {
      EXPECT_TRUE(p.verified(t, 3, k.third[t])) << k.size_class << t;
      EXPECT_FALSE(p.verified(t, 3, k.third[t] + 1)) << k.size_class << t;
      EXPECT_FALSE(p.verified(t, 4, k.third[t])) << k.size_class << t;
    }
  }
}

TEST(NpbVerify, CgAndMgTakeOneNumber) {
  for (const char c : classes) {
    const npb::cg_problem cg(c);
    EXPECT_TRUE(cg.verified(cg.zeta * (1 + 9e-11)));
    EXPECT_FALSE(cg.verified(cg.zeta * (1 + 2e-10)));
    EXPECT_FALSE(cg.verified(-cg.zeta));
    EXPECT_FALSE(cg.verified(not_a_number));
    const npb::mg_problem mg(c);
    EXPECT_TRUE(mg.verified(mg.norm * (1 - 9e-9)));
    EXPECT_FALSE(mg.verified(mg.norm * (1 - 2e-8)));
    EXPECT_FALSE(mg.verified(0));
    EXPECT_FALSE(mg.verified(not_a_number));
  }
}

TEST(NpbVerify, FtTakesSixChecksums) {
  for (const char c : classes) {
    const npb::ft_problem p(c);
    EXPECT_TRUE(p.verified(p.checksums));
    for (std::size_t i = 0; i < p.checksums.size(); ++i) {
      npb::ft_problem::sums wrong = p.checksums;
      wrong[i] *= 1 + 2e-12;
      EXPECT_FALSE(p.verified(wrong)) << i;
      wrong[i] = {not_a_number, 0};
      EXPECT_FALSE(p.verified(wrong)) << i;
    }
  }
}

TEST(NpbVerify, ThereAreThreeClasses) {
  EXPECT_THROW(npb::ep_problem('B'), std::invalid_argument);
  EXPECT_THROW(npb::ft_problem('s'), std::invalid_argument);
}

TEST(NpbRandom, SkippingIsDrawing) {
  const auto next = [](std::uint64_t x) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(npb::multiplier) * x %
                                      (std::uint64_t{1} << 46));
  };
  npb::random_numbers drawn(314159265);
  std::uint64_t x = 314159265;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    x = next(x);
    ASSERT_EQ(drawn(), x) << i;
    npb::random_numbers skipped(314159265, i);
    ASSERT_EQ(skipped(), x) << i;
  }
  EXPECT_EQ(npb::power(std::uint64_t{1} << 44), 1u);  // the period of the multiplier
}

}  // namespace
