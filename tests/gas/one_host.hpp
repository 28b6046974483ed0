// The window of one host without a scheduler, for tests of single parts of src/gas. The run may have more
// hosts, but only what lies on this one, the first, can be reached.
#pragma once

#include "gas/cache.hpp"

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace gas_test {

inline constexpr std::uint64_t KiB = 1 << 10, MiB = 1 << 20, GiB = 1ull << 30;
inline constexpr std::uint64_t cache_units = 64;
inline constexpr godwit::detail::place here{"a test", "test", 1};

struct one_host {
  /// @p workers of each of @p hosts.
  explicit one_host(std::uint32_t workers, std::uint64_t bytes = 64 * GiB, std::uint64_t limit = 32 * GiB,
                    std::uint32_t hosts = 1) {
    window.create(bytes);
    const std::uint32_t all = workers * hosts;
    where = godwit::gas::plan_space(
        bytes, all, sizeof(godwit::gas::host_words) + all * sizeof(godwit::gas::home_words),
        godwit::gas::cache::table_bytes(cache_units), sizeof(godwit::gas::descriptor));
    if (where.homes == 0) throw std::runtime_error("too small for a test");
    for (std::uint32_t h = 0; h < hosts; ++h) ranges.push_back({h * workers, workers});
    auto& words = godwit::gas::reach(setup(0)).host();
    words.limit_bytes.store(limit);
    words.epoch.store(1);
  }
  godwit::gas::reach_setup setup(std::uint32_t worker) const {
    return {
        nullptr, window.base(), worker, where.homes, ranges.data(), static_cast<std::uint32_t>(ranges.size()),
        0};
  }
  std::byte* at(godwit::gas::global_address a) const { return window.base() + a; }

  godwit::transport::shm::window window;
  godwit::gas::space where;
  std::vector<godwit::transport::shm::near_range> ranges;
};

}  // namespace gas_test
