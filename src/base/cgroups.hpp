// This process's control groups: where their limits stand, in cgroup v2 and v1.
//
// Called by: cpus.cpp, available_memory.cpp. Tests: tests/base/cpus_test.cpp, available_memory_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace godwit::base {

/// Calls @p f with the directory of this process's group and of each one above it, in every hierarchy that
/// can have @p controller ("cpu", "memory"), and whether it is one of v2. @p root stands before /proc and
/// /sys in every path, also in the mount points that /proc/self/mountinfo names (tests).
void each_cgroup(const std::string& controller, const std::string& root,
                 const std::function<void(const std::string& directory, bool v2)>& f);

/// The number that @p text begins with.
std::optional<std::int64_t> to_number(std::string_view text) noexcept;

}  // namespace godwit::base
