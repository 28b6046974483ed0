// See available_memory.hpp.
#include "base/available_memory.hpp"

#include <algorithm>

#include "base/cgroups.hpp"
#include "base/text.hpp"

namespace godwit::base {

namespace {

std::uint64_t number_in(const std::string& path, std::uint64_t otherwise) {
  const auto n = to_number(first_line(path));  // not "max"
  return n && *n >= 0 ? static_cast<std::uint64_t>(*n) : otherwise;
}

/// The number behind @p key in a file of lines "key number"; 0: there is none.
std::uint64_t value_of(const std::string& key, const std::string& path) {
  for (const std::string& line : lines_of(path))
    if (line.starts_with(key)) {
      const auto digit = line.find_first_of("0123456789", key.size());
      if (digit != std::string::npos)
        return static_cast<std::uint64_t>(to_number(line.substr(digit)).value_or(0));
    }
  return 0;
}

}  // namespace

std::uint64_t available_memory(const std::string& root) {
  constexpr std::uint64_t unknown = ~std::uint64_t{0};
  const std::uint64_t kib = value_of("MemAvailable:", root + "/proc/meminfo");
  std::uint64_t least = kib != 0 ? kib << 10 : unknown;
  each_cgroup("memory", root, [&](const std::string& directory, bool v2) {
    const std::uint64_t limit =
        number_in(directory + (v2 ? "/memory.max" : "/memory.limit_in_bytes"), unknown);
    if (limit == unknown) return;
    const std::uint64_t used = number_in(directory + (v2 ? "/memory.current" : "/memory.usage_in_bytes"), 0);
    std::uint64_t kept = 0;  // of files, which the system gives up when it needs memory
    for (const char* key : {"inactive_file ", "active_file "})
      kept += value_of(v2 ? key : std::string("total_") + key, directory + "/memory.stat");
    const std::uint64_t held = used - std::min(used, kept);
    least = std::min(least, limit - std::min(limit, held));
  });
  return least;
}

}  // namespace godwit::base
