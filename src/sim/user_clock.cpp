// See user_clock.hpp.
#include "sim/user_clock.hpp"

#include "base/blocking_calls.hpp"
#include "base/check.hpp"

#include <cerrno>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

namespace godwit::sim {

perf_counter::perf_counter(std::uint32_t type, std::uint64_t what) {
  perf_event_attr about{};
  about.size = sizeof about;
  about.type = type;
  about.config = what;
  about.pinned = 1;  // all the time, or not at all
  about.exclude_kernel = about.exclude_hv = 1;
  constexpr int calling_thread = 0, any_cpu = -1, no_group = -1;
  fd_ = static_cast<int>(
      syscall(SYS_perf_event_open, &about, calling_thread, any_cpu, no_group, PERF_FLAG_FD_CLOEXEC));
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "perf_event_open");
}

perf_counter::~perf_counter() { close(fd_); }

std::uint64_t perf_counter::read() const noexcept {
  const base::no_blocking_calls::let_through this_one;
  std::uint64_t n = 0;
  if (::read(fd_, &n, sizeof n) != static_cast<ssize_t>(sizeof n))
    base::fatal("sim: other programs use the counter of instructions: use --godwit-sim-clock=measured");
  return n;
}

std::unique_ptr<perf_counter> instructions() {
  return std::make_unique<perf_counter>(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
}

}  // namespace godwit::sim
