// Sleeping and giving way.
#include <ctime>
#include <sched.h>
#include <threads.h>
#include <unistd.h>

#include <godwit/detail/slow_path.hpp>

#include "real.hpp"
#include "thread.hpp"
#include "wait.hpp"

GODWIT_REAL(sched_yield);
GODWIT_REAL(clock_nanosleep);

namespace godwit::pthread {
void give_way() noexcept {
  if (is_light()) on_own_stack([] { detail::yield_thread(); });
  // Where no other thread is ready the caller goes on: then somebody on another worker, or in another
  // process, may need the CPU.
  REAL(sched_yield)();
}
}  // namespace godwit::pthread

using namespace godwit;
using namespace godwit::pthread;

GODWIT_EXPORT int sched_yield() noexcept {
  if (!is_light()) return REAL(sched_yield)();
  on_own_stack([] { detail::yield_thread(); });
  handle_signals();
  return 0;
}
// (The header makes the one a name of the other.)
extern "C" [[gnu::visibility("default")]] int yield_of_pthread() noexcept __asm__("pthread_yield");
int yield_of_pthread() noexcept { return sched_yield(); }
GODWIT_EXPORT void thrd_yield() { sched_yield(); }

GODWIT_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* t, timespec* left) {
  // Clocks of CPU time do not run while we sleep: leave them to the kernel.
  if (!is_light() ||
      (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME && clock != CLOCK_TAI))
    return REAL(clock_nanosleep)(clock, flags, t, left);
  test_cancel();
  if (t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec >= 1'000'000'000) return EINVAL;
  std::uint64_t deadline_ns;
  if ((flags & TIMER_ABSTIME) != 0) {
    deadline_ns = deadline_of(clock, t).deadline_ns;
  } else {
    constexpr std::uint64_t most_seconds = 1u << 30;
    const auto s = static_cast<std::uint64_t>(t->tv_sec);
    deadline_ns = now_ns() + (s < most_seconds ? s : most_seconds) * 1'000'000'000 +
                  static_cast<std::uint64_t>(t->tv_nsec);
  }
  if (now_ns() >= deadline_ns) {
    on_own_stack([] { detail::yield_thread(); });
    return 0;
  }
  const char here = 0;
  waited w = waited::woken;
  while (w == waited::woken)  // by one who means what lay at this address before
    w = wait_under(&here,
                   {.deadline_ns = deadline_ns, .cancellable = true, .interruptible = true, .what = "sleep"});
  if (w == waited::cancelled) end_by_cancel();
  if (w != waited::interrupted) return 0;
  handle_signals();
  if (left != nullptr && (flags & TIMER_ABSTIME) == 0) {
    const std::uint64_t now = now_ns(), ns = now < deadline_ns ? deadline_ns - now : 0;
    *left = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  }
  return EINTR;
}
GODWIT_EXPORT int nanosleep(const timespec* t, timespec* left) {
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, t, left);
  if (error == 0) return 0;
  errno = error;
  return -1;
}
GODWIT_EXPORT unsigned sleep(unsigned seconds) {
  const timespec t{static_cast<time_t>(seconds), 0};
  timespec left{};
  return clock_nanosleep(CLOCK_REALTIME, 0, &t, &left) == EINTR
             ? static_cast<unsigned>(left.tv_sec + (left.tv_nsec >= 500'000'000))
             : 0;
}
GODWIT_EXPORT int usleep(useconds_t us) {
  const timespec t{static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000) * 1000};
  return nanosleep(&t, nullptr);
}
GODWIT_EXPORT int thrd_sleep(const timespec* t, timespec* left) {
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, t, left);
  return error == 0 ? 0 : error == EINTR ? -1 : -2;
}
