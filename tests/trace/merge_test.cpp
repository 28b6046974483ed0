// Tests of the merge by time: order, ties, empty sources, buffers of one event, a source whose times go
// backwards.
// test: timeout=30 tsan
#include "trace/merge.hpp"

#include "base/random.hpp"

#include <gtest/gtest.h>

#include <map>

namespace {

using namespace godwit::trace;

event_source listed(const std::vector<std::uint64_t>& times) {
  return [&times, next = std::size_t{0}](event* to, std::size_t most) mutable {
    std::size_t n = 0;
    for (; n < most && next < times.size(); ++n, ++next) {
      to[n] = {};
      to[n].time_ns = times[next];
      to[n].a = next;
    }
    return n;
  };
}

std::vector<std::pair<std::uint32_t, event>> merged(const std::vector<std::vector<std::uint64_t>>& times,
                                                    std::size_t buffer) {
  std::vector<event_source> sources;
  for (const auto& t : times) sources.push_back(listed(t));
  merger m(std::move(sources), buffer);
  std::vector<std::pair<std::uint32_t, event>> out;
  std::uint32_t worker = 0;
  for (event e; m.next(worker, e);) out.emplace_back(worker, e);
  return out;
}

TEST(merge, by_time_and_in_order_within_a_worker) {
  godwit::base::small_random random(5);
  std::vector<std::vector<std::uint64_t>> times(7);
  std::size_t total = 0;
  for (std::size_t w = 0; w < times.size(); ++w) {
    if (w == 3) continue;  // wrote nothing
    std::uint64_t t = 0;
    for (int i = 0; i < 1000; ++i) times[w].push_back(t += random.below(4));
    total += 1000;
  }
  for (const std::size_t buffer : {1u, 3u, 1000u, 5000u}) {
    const auto all = merged(times, buffer);
    ASSERT_EQ(all.size(), total);
    std::map<std::uint32_t, std::uint64_t> next;
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].second.a, next[all[i].first]++);
      if (i == 0) continue;
      EXPECT_GE(all[i].second.time_ns, all[i - 1].second.time_ns);
      if (all[i].second.time_ns == all[i - 1].second.time_ns) {
        EXPECT_GE(all[i].first, all[i - 1].first);
      }
    }
  }
}

TEST(merge, an_event_with_an_earlier_time_than_its_predecessor_stays_behind_it) {
  const auto all = merged({{10, 50, 20, 60}, {30}}, 2);
  std::vector<std::uint64_t> times;
  for (const auto& [w, e] : all) times.push_back(e.time_ns);
  EXPECT_EQ(times, (std::vector<std::uint64_t>{10, 30, 50, 20, 60}));
}

TEST(merge, nothing) { EXPECT_TRUE(merged({{}, {}}, 4).empty()); }

}  // namespace
