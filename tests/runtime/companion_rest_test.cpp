// How long a companion rests between messages, with times made up. See src/runtime/companion_rest.hpp.
// test: once
#include "runtime/companion_rest.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using godwit::runtime::companion_rest;
using mood = godwit::transport::mpi::companion::mood;

constexpr std::uint64_t now = 1'000'000'000;

std::uint32_t last_of(companion_rest& rest, bool expecting, std::uint64_t at, int times = 20) {
  std::uint32_t us = 0;
  for (int i = 0; i < times; ++i) us = rest.next_us(expecting, at);
  return us;
}

TEST(companion_rest, sleeps_twice_as_long_each_time_up_to_a_limit) {
  companion_rest rest(false);
  EXPECT_EQ(rest.next_us(false, now), companion_rest::shortest_us);
  EXPECT_EQ(rest.next_us(false, now), companion_rest::shortest_us * 2);
  EXPECT_EQ(rest.next_us(false, now), companion_rest::shortest_us * 4);
  EXPECT_EQ(last_of(rest, false, now), 1000u);
  companion_rest alone(true);
  EXPECT_EQ(last_of(alone, false, now), 20'000u);
}

TEST(companion_rest, sleeps_shortly_while_something_is_under_way) {
  companion_rest rest(false);
  EXPECT_EQ(last_of(rest, true, now), companion_rest::shortest_us);
  EXPECT_EQ(last_of(rest, false, now), 1000u);
  rest.after_work(mood::quiet, false, now);
  EXPECT_EQ(rest.next_us(false, now), companion_rest::shortest_us);
}

TEST(companion_rest, spins_for_a_moment_after_a_request_and_longer_before_an_answer) {
  companion_rest rest(false);
  rest.after_work(mood::served, false, now);
  EXPECT_EQ(rest.next_us(false, now + 4'000), 0u);
  EXPECT_NE(rest.next_us(false, now + 6'000), 0u);
  rest.after_work(mood::quiet, true, now);
  EXPECT_EQ(rest.next_us(true, now + 39'000), 0u);
  EXPECT_NE(rest.next_us(true, now + 41'000), 0u);
}

TEST(companion_rest, stays_eager_after_an_answer_that_brings_another_request) {
  companion_rest rest(false);
  rest.after_work(mood::expects, false, now);
  EXPECT_EQ(last_of(rest, false, now + 400'000), companion_rest::shortest_us);
  EXPECT_GT(last_of(rest, false, now + 600'000), companion_rest::shortest_us);
}

}  // namespace
