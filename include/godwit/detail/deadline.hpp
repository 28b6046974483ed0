// Points in time of any clock, as nanoseconds of CLOCK_MONOTONIC. Not an interface for users; called by the
// timed waits and sleeps.
#pragma once

#include <chrono>
#include <cstdint>

namespace godwit::detail {

inline constexpr std::uint64_t no_deadline = ~std::uint64_t{0} >> 2;  ///< centuries away

inline std::uint64_t steady_now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

/// The time that is @p d from now; rounded up.
template <class Rep, class Period>
std::uint64_t deadline_after(const std::chrono::duration<Rep, Period>& d) {
  using seconds = std::chrono::duration<double>;
  const std::uint64_t now = steady_now_ns();
  if (d <= d.zero()) return now;
  if (std::chrono::duration_cast<seconds>(d).count() > 1e9) return no_deadline;
  return now + static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::nanoseconds>(d).count());
}

/// Call wait(deadline in ns), which gives back true or, at the deadline, false, until it gives back true or
/// @p until is over: clocks other than the steady one may have been set meanwhile.
template <class Clock, class Duration, class Wait>
bool wait_until_time(const std::chrono::time_point<Clock, Duration>& until, Wait&& wait) {
  for (;;) {
    if (wait(deadline_after(until - Clock::now()))) return true;
    if (Clock::now() >= until) return false;
  }
}

}  // namespace godwit::detail
