// Tests of clock synchronisation: fake clocks with an offset and a drift, messages with noise that differs by
// direction.
// test: timeout=60 tsan
#include "trace/clock_sync.hpp"

#include "base/random.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace {

using namespace godwit::trace;
using godwit::base::small_random;

/// The other host's clock: true time t reads as offset + t * (1 + drift).
struct fake_clock {
  double offset_ns;
  double drift;
  std::uint64_t at(double t) const { return static_cast<std::uint64_t>(offset_ns + t * (1 + drift)); }
};

struct fake_network {
  double there_ns, back_ns;              // the fastest message, by direction
  double there_noise_ns, back_noise_ns;  // at most, on top
};

std::vector<round_trip> burst(const fake_clock& c, const fake_network& net, double start_ns, int n,
                              small_random& r) {
  std::vector<round_trip> trips;
  const auto noise = [&](double most) { return most * static_cast<double>(r.below(1000)) / 1000; };
  for (double t = start_ns; n-- > 0;) {
    const double arrives = t + net.there_ns + noise(net.there_noise_ns);
    const double back = arrives + net.back_ns + noise(net.back_noise_ns);
    trips.push_back({static_cast<std::uint64_t>(t), c.at(arrives), static_cast<std::uint64_t>(back)});
    t = back + 1000;
  }
  return trips;
}

constexpr double day_ns = 86'400e9;

TEST(clock_sync, offset_is_within_the_error_it_states) {
  small_random random(7);
  for (const double offset : {0.0, 5e6, 3 * day_ns}) {
    for (const double noise : {0.0, 1e5, 5e6}) {
      const fake_clock c{offset, 2e-5};
      const auto trips = burst(c, {12'000, 17'000, noise, noise / 50}, 10 * day_ns, 64, random);
      const clock_offset o = estimate_offset(trips);
      const double true_offset = 10 * day_ns - static_cast<double>(c.at(10 * day_ns));
      const double tolerance =
          static_cast<double>(o.error_ns) + 64 * 5.2e6 * 2e-5;  // and the drift within the burst
      EXPECT_NEAR(static_cast<double>(o.offset_ns), true_offset, tolerance);
      EXPECT_GE(o.at_ns, trips.front().there_ns);
      EXPECT_LE(o.at_ns, trips.back().there_ns);
    }
  }
}

TEST(clock_sync, many_trips_beat_the_fastest_one_when_noise_is_one_sided) {
  small_random random(3);
  const fake_clock c{-4e9, 0};
  // Never fast both ways: one direction is slow whenever the other is fast.
  std::vector<round_trip> trips;
  for (int i = 0; i < 50; ++i) {
    const double t = 1e12 + i * 1e6;
    const double there = i % 2 == 0 ? 5'000 : 400'000 + random.below(1000);
    const double back = i % 2 == 0 ? 400'000 + random.below(1000) : 5'000;
    trips.push_back(
        {static_cast<std::uint64_t>(t), c.at(t + there), static_cast<std::uint64_t>(t + there + back)});
  }
  const clock_offset o = estimate_offset(trips);
  EXPECT_LE(std::llabs(o.offset_ns - 4'000'000'000), 5'001);
  EXPECT_LE(o.error_ns, 5'001u);
}

TEST(clock_sync, a_clock_that_was_set_meanwhile_leaves_the_fastest_trip) {
  std::vector<round_trip> trips = {{1000, 500'000, 21'000}, {50'000, 9'000'000, 60'000}};
  const clock_offset o = estimate_offset(trips);
  EXPECT_EQ(o.offset_ns, 55'000 - 9'000'000);
  EXPECT_EQ(o.error_ns, 5'000u);
}

TEST(clock_sync, drift_is_followed_between_the_bursts) {
  small_random random(11);
  const fake_clock c{7e12, 4e-5};  // 40 us per second
  const fake_network net{10'000, 10'000, 50'000, 200'000};
  const double start = 1e13;
  const double end = start + 60e9;
  const clock_map map(estimate_offset(burst(c, net, start, 64, random)),
                      estimate_offset(burst(c, net, end, 64, random)));
  for (double t = start; t <= end; t += 1e9) {
    const double mapped = static_cast<double>(map(c.at(t)));
    EXPECT_NEAR(mapped, t, 20'000) << "without the slope it would be up to 2.4 ms off";
  }
}

TEST(clock_sync, short_runs_take_the_better_burst_and_no_slope) {
  const clock_offset bad{1'000'000, 90'000, 5'000'000'000};
  const clock_offset good{1'040'000, 2'000, 5'100'000'000};
  const clock_map map(bad, good);
  EXPECT_EQ(map(5'050'000'000), 5'050'000'000u + 1'040'000u);
  EXPECT_EQ(map(9'000'000'000), 9'000'000'000u + 1'040'000u);
  EXPECT_EQ(clock_map(good, bad)(100), 100u + 1'040'000u);
  EXPECT_EQ(clock_map()(123), 123u);
}

TEST(clock_sync, offsets_may_be_negative_and_order_is_kept) {
  const clock_map map({-5'000'000'000, 100, 100'000'000'000}, {-5'000'200'000, 100, 110'000'000'000});
  std::uint64_t last = 0;
  for (std::uint64_t t = 100'000'000'000; t < 110'000'000'000; t += 9'999'991) {
    EXPECT_GT(map(t), last);
    last = map(t);
  }
  EXPECT_EQ(map(100'000'000'000), 95'000'000'000u);
  EXPECT_EQ(map(110'000'000'000), 104'999'800'000u);
}

}  // namespace
