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

TEST(queue, like_a_sorted_list) {
  constexpr std::uint32_t seats = 50;
  godwit::sim::queue q(seats);
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> right;  // time, order
  std::uint64_t order = 0;
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint32_t seat = random() % seats;
    if (!q.holds(seat)) {
      const std::uint64_t time = random() % 100;
      q.push(seat, time);
      right[{time, order++}] = seat;
    } else if (random() % 2 == 0) {
      q.remove(seat);
      for (auto it = right.begin(); it != right.end(); ++it)
        if (it->second == seat) {
          right.erase(it);
          break;
        }
    } else {
      ASSERT_EQ(q.first_time(), right.begin()->first.first);
      ASSERT_EQ(q.pop(), right.begin()->second);
      right.erase(right.begin());
    }
    ASSERT_EQ(q.empty(), right.empty());
  }
}

}  // namespace
