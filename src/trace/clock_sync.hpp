// Clocks of several hosts: the difference of another host's clock to ours, from round trips, and in between.
//
// A round trip bounds the difference from both sides: the other clock was read after we sent and before we
// got the answer. All round trips of a burst together bound it best, each side by its own fastest message, so
// that slow messages in one direction do no harm (half the fastest round trip is what one gets from the
// middle of one). Clocks also drift, by up to some 50 us per second: so a burst before the run and one after
// it, and a straight line.
// Not here: the messages (src/runtime/trace_gather.cpp). Document: docs/tracing.md. Test:
// tests/trace/clock_test.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

namespace godwit::trace {

struct round_trip {
  std::uint64_t sent_ns;   ///< our clock
  std::uint64_t there_ns;  ///< the other's, between the two
  std::uint64_t back_ns;   ///< our clock
};

/// Add offset_ns to the other's clock to get ours.
struct clock_offset {
  std::int64_t offset_ns = 0;
  std::uint64_t error_ns = 0;  ///< at most, as far as the round trips show
  std::uint64_t at_ns = 0;     ///< when, by the other's clock
};

inline clock_offset estimate_offset(std::span<const round_trip> trips) noexcept {
  if (trips.empty()) return {};
  const auto minus = [](std::uint64_t a, std::uint64_t b) { return static_cast<std::int64_t>(a - b); };
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
  const round_trip* fastest = &trips.front();
  for (const round_trip& t : trips) {
    low = std::max(low, minus(t.sent_ns, t.there_ns));
    high = std::min(high, minus(t.back_ns, t.there_ns));
    if (t.back_ns - t.sent_ns < fastest->back_ns - fastest->sent_ns) fastest = &t;
  }
  if (low > high) {  // a clock was set, or drifted within the burst by more than the bounds allow
    low = minus(fastest->sent_ns, fastest->there_ns);
    high = minus(fastest->back_ns, fastest->there_ns);
  }
  return {low + (high - low) / 2, static_cast<std::uint64_t>(high - low + 1) / 2,
          trips.front().there_ns + (trips.back().there_ns - trips.front().there_ns) / 2};
}

/// From the other's clock to ours, at any time of the run.
class clock_map {
 public:
  clock_map() = default;  ///< the clocks are the same
  clock_map(const clock_offset& first, const clock_offset& last) noexcept : first_(first) {
    // Less than a second apart, the errors of the two would make a slope that is not there.
    constexpr std::uint64_t apart_ns = 1'000'000'000;
    if (last.at_ns > first.at_ns + apart_ns) {
      slope_ = static_cast<double>(last.offset_ns - first.offset_ns) /
               static_cast<double>(last.at_ns - first.at_ns);
    } else if (last.at_ns != 0 && last.error_ns < first.error_ns) {
      first_ = last;
    }
  }
  std::uint64_t operator()(std::uint64_t there_ns) const noexcept {
    const auto since = static_cast<double>(static_cast<std::int64_t>(there_ns - first_.at_ns));
    return there_ns +
           static_cast<std::uint64_t>(first_.offset_ns + static_cast<std::int64_t>(slope_ * since));
  }

 private:
  clock_offset first_{};
  double slope_ = 0;
};

}  // namespace godwit::trace
