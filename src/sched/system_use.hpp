// How much of the time in which a worker had threads the operating system kept: waits in system calls, other
// programs on its CPU, work of the kernel. Only for traced runs. Test: tests/sched/account_test.cpp.
#pragma once

#include "base/system_time.hpp"
#include "trace/events.hpp"

#include <algorithm>
#include <array>

namespace godwit::sched {

class system_use {
 public:
  /// Shorter intervals are not looked at: they are put together with the next.
  static constexpr std::uint64_t least_ns = 50'000;

  struct interval {
    std::uint64_t ns = 0;  ///< its length; 0: it has not been looked at
    std::uint64_t faults = 0;
    std::array<std::uint64_t, trace::system_kinds> of_it{};  ///< by trace::system_kind
  };

  /// A thread begins, behind @p idle_ns without one. Short pauses count as part of the interval.
  void begin(std::uint64_t now, std::uint64_t idle_ns) noexcept {
    if (since_ns_ != 0 && idle_ns < least_ns) return;
    since_ns_ = now;
    then_ = base::system_time_of_caller();
    aside_then_ = base::put_aside_ns();
  }

  /// It ends here, and another begins, if it is long enough to be looked at.
  interval end(std::uint64_t now) noexcept {
    if (since_ns_ == 0 || now < since_ns_ + least_ns) return {};
    const base::system_time is = base::system_time_of_caller();
    interval all{.ns = now - since_ns_, .faults = is.faults - then_.faults};
    if (is.cpu_ns == 0) return {};
    const std::uint64_t ran = std::min(is.cpu_ns - then_.cpu_ns, all.ns), off = all.ns - ran;
    std::uint64_t aside = 0;
    if (off >= worth_a_look_ns) {
      const std::uint64_t aside_now = base::put_aside_ns();
      aside = std::min(aside_now - aside_then_, off);
      aside_then_ = aside_now;
    }
    all.of_it = {off - aside, aside, std::min(is.kernel_ns - then_.kernel_ns, ran)};
    since_ns_ = now;
    then_ = is;
    return all;
  }

 private:
  static constexpr std::uint64_t worth_a_look_ns = 20'000;

  std::uint64_t since_ns_ = 0;
  base::system_time then_;
  std::uint64_t aside_then_ = 0;
};

}  // namespace godwit::sched
