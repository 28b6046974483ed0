// Which workers are traced when not all are: so many, evenly spread, and each rank knows its own. See
// src/runtime/trace_output.hpp.
#include "runtime/trace_output.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using godwit::runtime::trace_sample;

trace_sample sample(std::uint32_t traced, std::uint32_t workers) {
  godwit::options o;
  o.trace_workers = traced;
  return {o, workers};
}

TEST(trace_sample, has_as_many_as_asked_evenly_spread) {
  for (const std::uint32_t workers : {1u, 2u, 5u, 48u, 100u, 110'592u})
    for (const std::uint32_t asked : {0u, 1u, 2u, 3u, 7u, 48u, 1000u, 110'592u, 200'000u}) {
      const trace_sample s = sample(asked, workers);
      std::vector<std::uint32_t> held;
      for (std::uint32_t w = 0; w < workers; ++w) {
        EXPECT_EQ(s.before(w), held.size());
        if (s.holds(w)) held.push_back(w);
      }
      ASSERT_EQ(held.size(), asked == 0 ? workers : std::min(asked, workers));
      EXPECT_EQ(s.count(), held.size());
      EXPECT_EQ(held.front(), 0u);
      const auto each = workers / s.count();
      for (std::size_t i = 0; i < held.size(); ++i) {
        const std::uint32_t gap = (i + 1 < held.size() ? held[i + 1] : workers) - held[i];
        ASSERT_TRUE(gap == each || gap == each + 1) << asked << " of " << workers << ", from " << held[i];
      }
    }
}

TEST(trace_sample, of_a_range) {
  const trace_sample s = sample(3, 12);  // 0, 4, 8
  EXPECT_TRUE(s.any({0, 12}));
  EXPECT_TRUE(s.any({4, 1}));
  EXPECT_FALSE(s.any({1, 3}));
  EXPECT_FALSE(s.any({5, 3}));
  EXPECT_TRUE(s.any({5, 4}));
  EXPECT_FALSE(s.any({9, 3}));
  EXPECT_FALSE(s.any({8, 0}));
}

}  // namespace
