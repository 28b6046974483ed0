// What machine this is, and how fast its counter runs. Neither host names nor paths: results are published.

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "godwit_run.hpp"

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

namespace {

/// CPU seconds that all programs of the machine used since it was started; 0 if the kernel does not say.
double busy_seconds() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0;
  if (!(stat >> cpu >> user >> nice >> system >> idle >> wait >> irq >> soft)) return 0;
  return (user + nice + system + irq + soft) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double own_seconds() { return static_cast<double>(cpu_ns()) * 1e-9 + children_cpu_seconds(); }

}  // namespace

foreign_load::foreign_load()
    : wall_(static_cast<double>(now_ns()) * 1e-9), busy_(busy_seconds()), own_(own_seconds()) {}

double foreign_load::cpus() const {
  const double wall = static_cast<double>(now_ns()) * 1e-9 - wall_;
  return wall <= 0 ? 0 : std::max(0.0, ((busy_seconds() - busy_) - (own_seconds() - own_)) / wall);
}

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
  if (*BENCH_PEER_VERSIONS != 0) m["peers"] = BENCH_PEER_VERSIONS;
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
