// See system_time.hpp.
#include "base/system_time.hpp"

#include "base/world.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <fcntl.h>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

namespace godwit::base {

namespace {
constexpr std::uint64_t ns_of(std::int64_t seconds, std::int64_t ns) noexcept {
  return static_cast<std::uint64_t>(seconds) * 1'000'000'000 + static_cast<std::uint64_t>(ns);
}
}  // namespace

system_time system_time_of_caller() noexcept {
  if (made_world != nullptr) return {};
  timespec cpu{};
  rusage use{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) != 0 || getrusage(RUSAGE_THREAD, &use) != 0) return {};
  return {ns_of(cpu.tv_sec, cpu.tv_nsec), ns_of(use.ru_stime.tv_sec, use.ru_stime.tv_usec * 1000),
          static_cast<std::uint64_t>(use.ru_minflt + use.ru_majflt)};
}

std::uint64_t put_aside_ns() noexcept {
  if (made_world != nullptr) return 0;
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[96];
  const ssize_t size = read(file, text, sizeof text);
  close(file);
  // "ns on a CPU, ns in its queue, turns"
  const std::string_view all(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const std::size_t second = std::min(all.find(' '), all.size());
  std::uint64_t ns = 0;
  if (second < all.size()) std::from_chars(text + second + 1, text + all.size(), ns);
  return ns;
}

}  // namespace godwit::base
