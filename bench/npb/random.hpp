// NPB's random numbers: x(i + 1) = 5^13 x(i) mod 2^46, as integers.
//
// 2^46 divides 2^64: the wrapped product of 64-bit integers, masked, is exact. (NPB's reference multiplies
// halves of doubles, because it is older than such integers.) Used by the programs in this folder.
#pragma once

#include <cstdint>

namespace npb {

constexpr std::uint64_t multiplier = 1220703125, modulus_mask = (std::uint64_t{1} << 46) - 1;
/// A number as NPB's double between 0 and 1.
constexpr double unit = 1.0 / static_cast<double>(std::uint64_t{1} << 46);

/// multiplier^n
constexpr std::uint64_t power(std::uint64_t n) noexcept {
  std::uint64_t result = 1;
  for (std::uint64_t square = multiplier; n != 0; n >>= 1, square = square * square & modulus_mask)
    if ((n & 1) != 0) result = result * square & modulus_mask;
  return result;
}

/// The sequence after a seed, from any place on.
class random_numbers {
 public:
  /// The first number drawn is number @p skip of the sequence, counted from 0.
  constexpr explicit random_numbers(std::uint64_t seed, std::uint64_t skip = 0) noexcept
      : x_(seed * power(skip) & modulus_mask) {}
  constexpr std::uint64_t operator()() noexcept { return x_ = x_ * multiplier & modulus_mask; }
  constexpr double real() noexcept {
    return static_cast<double>(static_cast<std::int64_t>((*this)())) * unit;
  }

 private:
  std::uint64_t x_;
};

}  // namespace npb
