// What machine this is, and how fast its counter runs. Neither host names nor paths: results are published.

#include "clock.hpp"
#include "harness.hpp"

#include <sched.h>
#include <sys/utsname.h>

#include <ctime>
#include <fstream>

namespace bench {

double ticks_per_ns() {
  static const double rate = [] {
    const std::uint64_t t0 = ticks_ordered(), n0 = now_ns();
    while (now_ns() - n0 < 20'000'000) relax();
    const std::uint64_t t1 = ticks_ordered(), n1 = now_ns();
    return static_cast<double>(t1 - t0) / static_cast<double>(n1 - n0);
  }();
  return rate;
}

namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    for (const char* key : {"model name", "Model", "cpu model", "CPU part"})
      if (line.starts_with(key))
        if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "unknown";
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

}  // namespace

ordered_json machine() {
  ordered_json m;
  m["cpu"] = cpu_model();
  cpu_set_t set;
  CPU_ZERO(&set);
  m["usable_cpus"] = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  utsname u{};
  if (uname(&u) == 0) {
    m["kernel"] = std::string(u.sysname) + " " + u.release;
    m["architecture"] = u.machine;
  }
  m["compiler"] = compiler();
  m["compile_flags"] = BENCH_COMPILE_FLAGS;
  m["counter_ticks_per_ns"] = ticks_per_ns();
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::tm tm{};
  gmtime_r(&now, &tm);
  std::strftime(date, sizeof date, "%Y-%m-%d", &tm);
  m["date"] = date;
  return m;
}

}  // namespace bench
