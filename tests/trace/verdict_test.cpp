// The sentence that statistics and reports have in common.
// test: once
#include "trace/verdict.hpp"

#include <gtest/gtest.h>

namespace {

using namespace godwit::trace;

TEST(Verdict, SpeedUp) {
  EXPECT_EQ(speed_up_text(1.034, 4), "speed-up 1.03 on 4 workers");
  EXPECT_EQ(speed_up_text(0.98, 1), "speed-up 0.98 on 1 worker");
  EXPECT_EQ(speed_up_text(123.4, 128), "speed-up 123 on 128 workers");
}

TEST(Verdict, WhatTheOperatingSystemKeptIsWhatNothingElseExplains) {
  EXPECT_EQ(blocked_ns(1000, 300, 100, 200, 50), 350);
  EXPECT_EQ(blocked_ns(1000, 900, 0, 200, 0), 0) << "an idle worker looks for work";
  EXPECT_EQ(blocked_ns(1000, 0, 0, 0, 0), 0) << "not known";
}

TEST(Verdict, TheLargestCauseComesFirstAndSmallOnesAreLeftOut) {
  EXPECT_EQ(lost_text({.no_work = 0.2, .join = 0.3, .getting = 0.04}),
            "late joins for 30 % of the time, nothing to steal for 20 %");
  EXPECT_EQ(lost_text({.no_work = 0.05, .join = 0.04}), "nothing stands out");
  EXPECT_EQ(lost_text({}), "nothing stands out");
}

}  // namespace
