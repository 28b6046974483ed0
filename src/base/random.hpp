// Random numbers: for choosing victims and, in tests, for disturbing schedules.
#pragma once

#include <cstdint>

namespace godwit::base {

/// xorshift64*: victim selection, forced steals, delays. Not for anything that needs quality.
class small_random {
 public:
  explicit small_random(std::uint64_t seed = 1) noexcept : x_(seed * 0x9E3779B97F4A7C15ull | 1) {}
  std::uint64_t next() noexcept {
    x_ ^= x_ >> 12;
    x_ ^= x_ << 25;
    x_ ^= x_ >> 27;
    return x_ * 0x2545F4914F6CDD1Dull;
  }
  /// Uniform enough in [0, n).
  std::uint32_t below(std::uint32_t n) noexcept {
    return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32);
  }

 private:
  std::uint64_t x_;
};

/// A seed that differs from run to run.
std::uint64_t fresh_seed() noexcept;

}  // namespace godwit::base
