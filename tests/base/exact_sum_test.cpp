// Tests of exact sums: rounded once, whatever the order.
// test: once
#include <godwit/exact_sum.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace {

using godwit::exact_sum;
using limits = std::numeric_limits<double>;

double sum(const std::vector<double>& numbers) {
  exact_sum s;
  for (const double x : numbers) s += x;
  return s.value();
}

TEST(exact_sum, one_number_is_itself) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const double x = std::bit_cast<double>(random());
    if (!std::isfinite(x)) continue;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(sum({x})), std::bit_cast<std::uint64_t>(x == 0 ? 0.0 : x));
  }
  for (const double x : {0.0, limits::min(), limits::denorm_min(), limits::max(), limits::lowest()})
    EXPECT_EQ(sum({x}), x);
}

TEST(exact_sum, two_numbers_are_rounded_as_the_machine_rounds) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200'000; ++i) {
    const double x = std::bit_cast<double>(random());
    const double y = std::ldexp(x, static_cast<int>(random() % 120) - 60) * (random() % 2 != 0 ? 1 : -1) / 3;
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    EXPECT_EQ(sum({x, y}), x + y) << x << " " << y;
  }
  EXPECT_EQ(sum({limits::max(), limits::max()}), limits::infinity());
}

TEST(exact_sum, what_the_machine_loses_is_there) {
  EXPECT_EQ(sum({1e300, 1, -1e300}), 1);
  EXPECT_EQ(sum({limits::max(), limits::max(), limits::lowest()}), limits::max());
  EXPECT_EQ(sum({1, 0x1p-53}), 1) << "a tie goes to the even one";
  EXPECT_EQ(sum({1, 0x1p-53, limits::denorm_min()}), 1 + 0x1p-52) << "and what is more than that goes up";
  EXPECT_EQ(sum({-1, -0x1p-53, -limits::denorm_min()}), -1 - 0x1p-52);
}

TEST(exact_sum, floats_are_rounded_once_as_well) {
  const auto as_float = [](const std::vector<double>& numbers) {
    exact_sum s;
    for (const double x : numbers) s += x;
    return s.value<float>();
  };
  EXPECT_EQ(as_float({1, 0x1p-24}), 1) << "a tie goes to the even one";
  EXPECT_EQ(as_float({1, 0x1p-24, 0x1p-60}), 1 + 0x1p-23f) << "to a double first: that would be a tie";
  EXPECT_EQ(as_float({-1, -0x1p-24, -limits::denorm_min()}), -1 - 0x1p-23f);
  EXPECT_EQ(as_float({0x1p-150}), 0);
  EXPECT_EQ(as_float({0x1p-150, 0x1p-203}), 0x1p-149f);
  EXPECT_EQ(as_float({0x1p-151, limits::denorm_min()}), 0);
  EXPECT_EQ(as_float({0x1p128}), std::numeric_limits<float>::infinity());
  std::mt19937_64 random(4);
  for (int i = 0; i < 200'000; ++i) {
    const double x =
        std::ldexp(static_cast<double>(random()) - 0x1p63, static_cast<int>(random() % 300) - 240);
    EXPECT_EQ(as_float({x}), static_cast<float>(x)) << x;
  }
}

TEST(exact_sum, neither_order_nor_grouping_matter) {
  std::mt19937_64 random(3);
  std::vector<double> numbers(5000);
  for (double& x : numbers)
    x = std::ldexp(static_cast<double>(random()) - 0x1p63, static_cast<int>(random() % 200) - 100);
  const double whole = sum(numbers);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(numbers.begin(), numbers.end(), random);
    exact_sum left, right;
    const std::size_t cut = random() % numbers.size();
    for (std::size_t k = 0; k < numbers.size(); ++k) (k < cut ? left : right) += numbers[k];
    left += right;
    EXPECT_EQ(left.value(), whole);
  }
}

TEST(exact_sum, infinities_and_what_is_no_number) {
  EXPECT_EQ(sum({limits::infinity(), 1}), limits::infinity());
  EXPECT_TRUE(std::isnan(sum({limits::infinity(), -limits::infinity()})));
  EXPECT_TRUE(std::isnan(sum({limits::quiet_NaN(), 1})));
  exact_sum all(1);
  all += exact_sum(-limits::infinity());
  EXPECT_EQ(all.value(), -limits::infinity());
}

}  // namespace
