// The counter's rate, measured once per run. See clock.hpp.
#include "base/clock.hpp"
#include "base/text.hpp"

namespace godwit::base {

fast_clock fast_clock_;

namespace {

struct moment {
  std::uint64_t ticks, ns;
};
/// Both at once: of some tries the one that took the least time.
moment both() noexcept {
  moment best{};
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = ticks();
    const std::uint64_t ns = now_ns();
    const std::uint64_t after = ticks();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + (after - before) / 2, ns};
  }
  return best;
}

const moment at_start_ = both();

/// The kernel uses the counter as its own clock: then it has checked that all CPUs agree.
bool trusted() noexcept {
#if defined(__x86_64__)
  return first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource").starts_with("tsc");
#elif defined(__sparc__)
  return false;
#else
  return true;  // the architecture says so
#endif
}

}  // namespace

void prepare_fast_clock() noexcept {
  constexpr std::uint64_t enough_ns = 1'000'000;
  if (!trusted()) return;
  moment now = both();
  while (now.ns - at_start_.ns < enough_ns) now = both();
  if (now.ticks <= at_start_.ticks) return;
  fast_clock_.ns_per_tick = static_cast<std::uint64_t>(
      (static_cast<unsigned __int128>(now.ns - at_start_.ns) << 32) / (now.ticks - at_start_.ticks));
  fast_clock_.from_ticks = now.ticks;
  fast_clock_.from_ns = now.ns;
}

}  // namespace godwit::base
