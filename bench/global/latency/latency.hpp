// What global_latency and its counterpart by MPI alone have in common: sizes, how often, contents. See
// main.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

namespace latency {

inline constexpr std::uint64_t least_bytes = 8, most_bytes = 1 << 20;
inline constexpr std::size_t sizes = 18;  ///< each twice the one before
static_assert(least_bytes << (sizes - 1) == most_bytes);
inline constexpr int window = 16;  ///< operations under way at a time, where the rate is measured
inline constexpr std::uint64_t asynchronous_bytes = 2048;  ///< most bytes of these

struct row {
  std::uint64_t bytes = 0;
  double put_us = 0, get_us = 0;      ///< one at a time, medians
  double put_rate = 0, get_rate = 0;  ///< a second
};

/// Of @p times for small transfers, how many of this size.
inline int times_of(std::uint64_t bytes, int times) {
  return std::max(
      3, static_cast<int>(static_cast<double>(times) / std::max(1.0, static_cast<double>(bytes) / 4096)));
}

inline std::uint64_t content(std::uint64_t i, std::uint64_t round) { return i * 0x9e3779b97f4a7c15u + round; }

}  // namespace latency
