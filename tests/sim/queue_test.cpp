// The queue of those who are due, against a sorted list.
// test: once
#include "sim/queue.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <utility>

namespace {

TEST(queue, pops_by_time_then_by_order) {
  godwit::sim::queue q(4);
  q.push(2, 5);
  q.push(0, 5);
  q.push(1, 3);
  EXPECT_EQ(q.first_time(), 3u);
  EXPECT_EQ(q.pop(), 1u);
  EXPECT_EQ(q.pop(), 2u);
  EXPECT_EQ(q.pop(), 0u);
  EXPECT_TRUE(q.empty());
  EXPECT_EQ(q.first_time(), ~std::uint64_t{0});
}

/// Times of all sizes, none before the last one that was popped.
TEST(queue, like_a_sorted_list) {
  constexpr std::uint32_t seats = 50;
  godwit::sim::queue q(seats);
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> right;  // time, order
  std::uint64_t order = 0, now = 0;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const auto seat = static_cast<std::uint32_t>(random() % seats);
    if (!q.holds(seat)) {
      const std::uint64_t time = now + (random() % 100 << random() % 4 * 10);
      q.push(seat, time);
      right[{time, order++}] = seat;
    } else if (random() % 4 == 0) {
      q.remove(seat);
      std::erase_if(right, [=](const auto& r) { return r.second == seat; });
    } else {
      ASSERT_EQ(q.first_time(), right.begin()->first.first);
      ASSERT_EQ(q.pop(), right.begin()->second);
      now = right.begin()->first.first;
      right.erase(right.begin());
    }
    ASSERT_EQ(q.empty(), right.empty());
    // Those that are known to be next, in order.
    std::uint32_t next = q.soon();
    for (auto it = right.begin(); next != godwit::sim::queue::none; ++it, next = q.after(next))
      ASSERT_EQ(next, it->second);
  }
}

TEST(queue, first_time_after_what_comes_late) {
  godwit::sim::queue q(3);
  q.push(0, 1'000'000);
  q.push(1, 2'000'000);
  EXPECT_EQ(q.first_time(), 1'000'000u);
  q.push(2, 900'000);
  EXPECT_EQ(q.first_time(), 900'000u);
  q.remove(2);
  EXPECT_EQ(q.first_time(), 1'000'000u);
  q.remove(0);
  EXPECT_EQ(q.first_time(), 2'000'000u);
  EXPECT_EQ(q.soon(), godwit::sim::queue::none) << "who is due much later is not looked for";
  EXPECT_EQ(q.pop(), 1u);
}

}  // namespace
