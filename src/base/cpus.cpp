// Affinity mask, cgroup quota and the order of CPUs. See cpus.hpp.
#include "base/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/cgroups.hpp"
#include "base/text.hpp"

#if defined(GODWIT_HAS_HWLOC)
#include <hwloc.h>
#endif

namespace godwit::base {
namespace {

/// Ascending. The kernel says EINVAL as long as the set is smaller than its own.
std::vector<int> affinity_mask() {
  std::vector<int> cpus;
  for (int size = 1024; size <= 1 << 20; size *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(size),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t bytes = CPU_ALLOC_SIZE(size);
    CPU_ZERO_S(bytes, set.get());
    if (sched_getaffinity(0, bytes, set.get()) != 0) continue;
    for (int cpu = 0; cpu < size; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set.get())) cpus.push_back(cpu);
    break;
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

#if defined(GODWIT_HAS_HWLOC)
/// (hardware thread within its core, place in the machine) of every CPU, by its number.
std::vector<std::pair<unsigned, unsigned>> hwloc_places() {
  std::vector<std::pair<unsigned, unsigned>> places;
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return places;
  // Only what gives the order: discovery of caches and devices would cost most of the time.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(topology) == 0) {
    hwloc_obj_t cpu = nullptr;
    while ((cpu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, cpu)) != nullptr) {
      if (places.size() <= cpu->os_index) places.resize(cpu->os_index + 1, {~0u, ~0u});
      const bool in_core = cpu->parent != nullptr && cpu->parent->type == HWLOC_OBJ_CORE;
      places[cpu->os_index] = {in_core ? cpu->sibling_rank : 0, cpu->logical_index};
    }
  }
  hwloc_topology_destroy(topology);
  return places;
}
#endif

/// The CPUs of a list as /sys writes it: "0-3,8". Empty if there is no such file.
std::vector<int> cpu_list(const std::string& path) {
  std::vector<int> cpus;
  std::istringstream ranges(first_line(path));
  for (std::string range; std::getline(ranges, range, ',');) {
    const auto dash = range.find('-');
    const auto low = to_number(range.substr(0, dash));
    const auto high = dash == std::string::npos ? low : to_number(range.substr(dash + 1));
    if (!low || !high) break;
    for (std::int64_t cpu = *low; cpu <= *high; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

/// Which hardware thread of its core it is; the first CPU of its package, of its cache, of its core; its
/// number.
std::array<int, 5> place_in_sys(int cpu, const std::string& root) {
  const std::string at = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
  const auto first = [&](const char* file) {
    const auto list = cpu_list(at + file);
    return list.empty() ? 0 : list.front();
  };
  const auto core = cpu_list(at + "/topology/thread_siblings_list");
  const auto rank = std::find(core.begin(), core.end(), cpu) - core.begin();
  return {static_cast<int>(rank), first("/topology/core_siblings_list"),
          first("/cache/index3/shared_cpu_list"), core.empty() ? cpu : core.front(), cpu};
}

/// CPUs granted by the files of one cgroup, rounded up; 0: no quota.
std::uint64_t quota_at(const std::string& directory, bool v2) {
  std::optional<std::int64_t> quota, period;
  if (v2) {
    const std::string line = first_line(directory + "/cpu.max");  // "max 100000" or "150000 100000"
    const auto space = line.find(' ');
    if (space == std::string::npos) return 0;
    quota = to_number(line);
    period = to_number(std::string_view(line).substr(space + 1));
  } else {
    quota = to_number(first_line(directory + "/cpu.cfs_quota_us"));  // -1: none
    period = to_number(first_line(directory + "/cpu.cfs_period_us"));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return 0;
  return (static_cast<std::uint64_t>(*quota) + static_cast<std::uint64_t>(*period) - 1) /
         static_cast<std::uint64_t>(*period);
}

}  // namespace

std::vector<int> usable_cpus() {
#if defined(GODWIT_HAS_HWLOC)
  std::vector<int> cpus = affinity_mask();
  const auto places = hwloc_places();
  const auto key = [&](int cpu) {
    const auto i = static_cast<std::size_t>(cpu);
    const auto place = i < places.size() ? places[i] : std::pair{~0u, ~0u};
    return std::tuple{place.first, place.second, cpu};
  };
  std::sort(cpus.begin(), cpus.end(), [&](int a, int b) { return key(a) < key(b); });
  return cpus;
#else
  return in_order(affinity_mask());
#endif
}

std::vector<int> in_order(std::vector<int> cpus, const std::string& root) {
  std::vector<std::array<int, 5>> places;
  for (const int cpu : cpus) places.push_back(place_in_sys(cpu, root));
  std::sort(places.begin(), places.end());
  for (std::size_t i = 0; i < cpus.size(); ++i) cpus[i] = places[i].back();
  return cpus;
}

unsigned cgroup_cpu_quota(const std::string& root) {
  std::uint64_t least = 0;
  each_cgroup("cpu", root, [&](const std::string& directory, bool v2) {
    const std::uint64_t quota = quota_at(directory, v2);
    if (quota != 0 && (least == 0 || quota < least)) least = quota;
  });
  return static_cast<unsigned>(std::min<std::uint64_t>(least, ~0u));
}

unsigned usable_cpu_count() {
  const auto cpus = static_cast<unsigned>(affinity_mask().size());
  const unsigned quota = cgroup_cpu_quota();
  return quota == 0 ? cpus : std::min(cpus, quota);
}

cpu_share own_cpu_share() {
  cpu_share mine;
  for (const int cpu : affinity_mask()) {
    const auto number = static_cast<std::size_t>(cpu);
    if (number < mine.mask.size() * 64) mine.mask[number / 64] |= std::uint64_t{1} << number % 64;
  }
  mine.quota = cgroup_cpu_quota();
  return mine;
}

unsigned usable_cpu_count(std::span<const cpu_share> of_processes) {
  cpu_share all;
  bool limited = true;
  for (const cpu_share& one : of_processes) {
    for (std::size_t i = 0; i < all.mask.size(); ++i) all.mask[i] |= one.mask[i];
    limited = limited && one.quota != 0;
    all.quota = std::max(all.quota, one.quota);
  }
  std::uint64_t cpus = 0;
  for (const std::uint64_t word : all.mask) cpus += static_cast<unsigned>(std::popcount(word));
  return static_cast<unsigned>(limited ? std::min(cpus, all.quota) : cpus);
}

}  // namespace godwit::base
