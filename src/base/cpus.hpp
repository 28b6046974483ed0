// Which CPUs, and how many, this process may use.
//
// Containers and batch systems limit a process in two ways: an affinity mask (cpuset, taskset) names CPUs, a
// cgroup quota only limits CPU time. Workers beyond either would be throttled in the middle of a steal.
// Called by src/runtime at launch (number of workers, binding). Tests: tests/base/cpus_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace godwit::base {

/// The CPUs of this thread's affinity mask, never empty: neighbours stand together, and the second hardware
/// threads of all cores come after all first ones. Reads three small files per CPU; with hwloc, some
/// milliseconds.
std::vector<int> usable_cpus();

/// @p cpus in that order, as /sys tells it (without hwloc): by package, by third-level cache, by core. What
/// /sys does not know stands together as it is. @p root stands before /sys (tests).
std::vector<int> in_order(std::vector<int> cpus, const std::string& root = {});

/// How many workers can run at once: CPUs in the affinity mask, or the cgroup quota rounded up if that is
/// less. At least 1. Reads a few files under /proc and /sys, does not ask hwloc.
unsigned usable_cpu_count();

/// What one process may use: plain bytes, so that processes can tell each other.
struct cpu_share {
  std::array<std::uint64_t, 64> mask{};  ///< bit i of word w: CPU 64 w + i. CPUs from 4096 on are left out
  std::uint64_t quota = 0;               ///< 0: none
};
cpu_share own_cpu_share();

/// How many workers of processes on one machine can run at once: CPUs in any of the masks, or the largest
/// quota if all have one and that is less.
unsigned usable_cpu_count(std::span<const cpu_share> of_processes);

/// The smallest CPU quota, rounded up, on the way from this process's cgroup to the root of the hierarchy,
/// over cgroup v2 (cpu.max) and v1 (cpu.cfs_quota_us); 0: no quota. @p root stands before /proc and /sys in
/// every path, also in the mount points that /proc/self/mountinfo names (tests).
unsigned cgroup_cpu_quota(const std::string& root = {});

}  // namespace godwit::base
