// this_thread::sleep_for and sleep_until. See thread.hpp, timer.hpp.
#include <godwit/detail/timer.hpp>
#include <godwit/thread.hpp>

#include <cerrno>
#include <ctime>

namespace godwit::detail {

void sleep_until_time(std::uint64_t deadline_ns, const place& where) noexcept {
  if (sleep_until_ns(deadline_ns, where)) return;
  const timespec until{static_cast<time_t>(deadline_ns / 1'000'000'000),
                       static_cast<long>(deadline_ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace godwit::detail
