// A sum of floating-point numbers without rounding: the same bits in whatever order and grouping they come.
//
// Why: the pieces that reducers add up depend on the schedule, and rounded sums of the same numbers in other
// pieces differ. The sum is kept as one integer, in units of the smallest number of the type double, in
// digits of 32 bits that may be too large for a while (docs/reducers.md).
// Test: tests/base/exact_sum_test.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

namespace godwit {

/// The exact sum of doubles (floats are doubles, too). Plain bytes, 576 of them. Not for long double.
class exact_sum {
 public:
  exact_sum() noexcept = default;
  explicit exact_sum(double x) noexcept { *this += x; }

  /// Cost: some 3 ns.
  exact_sum& operator+=(double x) noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const std::uint64_t exponent = bits >> 52 & 0x7ff;
    std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
    if (exponent == 0x7ff) [[unlikely]] {
      special_ += x;  // infinities and NaN, as double has them
      has_special_ = 1;
      return *this;
    }
    if (exponent != 0) mantissa |= std::uint64_t{1} << 52;
    const std::uint64_t place = exponent != 0 ? exponent - 1 : 0;  // of its lowest bit
    const std::uint64_t digit = place / 32, shift = place % 32;
    const std::uint64_t low = mantissa << shift, high = shift != 0 ? mantissa >> (64 - shift) : 0;
    const std::int64_t sign = bits >> 63 != 0 ? -1 : 1;
    digits_[digit] += sign * static_cast<std::int64_t>(low & 0xffffffff);
    digits_[digit + 1] += sign * static_cast<std::int64_t>(low >> 32);
    digits_[digit + 2] += sign * static_cast<std::int64_t>(high);
    if (++added_ == most_added) carry();
    return *this;
  }
  exact_sum& operator-=(double x) noexcept { return *this += -x; }
  exact_sum& operator+=(const exact_sum& other) noexcept {
    exact_sum theirs = other;
    theirs.carry();
    carry();
    for (std::size_t i = 0; i < digits; ++i) digits_[i] += theirs.digits_[i];
    ++added_;
    special_ += theirs.special_;
    has_special_ |= theirs.has_special_;
    return *this;
  }

  /// As a double or a float: rounded once, to nearest; infinity where it is too large.
  template <std::floating_point T = double>
  requires(std::same_as<T, double> || std::same_as<T, float>) T value()
  const noexcept {
    if (has_special_ != 0) return static_cast<T>(special_);
    exact_sum n = *this;
    n.carry();
    const bool negative = n.digits_[digits - 1] < 0;
    if (negative) {
      for (std::int64_t& d : n.digits_) d = -d;
      n.carry();
    }
    const T size = n.rounded<T>();
    return negative ? -size : size;
  }

 private:
  static constexpr std::size_t digits = 69;  // of 32 bits: 2046 + 53 for a number, the rest for 2^64 of them
  static constexpr std::uint64_t most_added = std::uint64_t{1} << 30;

  /// All digits but the highest are from 0 to 2^32 - 1 afterwards.
  void carry() noexcept {
    for (std::size_t i = 0; i + 1 < digits; ++i) {
      digits_[i + 1] += digits_[i] >> 32;  // rounds down
      digits_[i] &= 0xffffffff;
    }
    added_ = 0;
  }

  /// Of a sum that is not negative, and carried.
  template <class T>
  T rounded() const noexcept {
    using limits = std::numeric_limits<T>;
    std::size_t top = digits - 1;
    while (top != 0 && digits_[top] == 0) --top;
    // The highest 64 bits or more that are not zero, and whether there are others below them.
    const std::size_t lowest = top >= 2 ? top - 2 : 0;
    unsigned __int128 bits = 0;
    for (std::size_t i = top + 1; i-- > lowest;) bits = bits << 32 | static_cast<std::uint64_t>(digits_[i]);
    bool rest = false;
    for (std::size_t i = 0; i < lowest; ++i) rest = rest || digits_[i] != 0;
    const int place = static_cast<int>(lowest) * 32 - 1074;
    const auto high = static_cast<std::uint64_t>(bits >> 64);
    const int width =
        high != 0 ? 128 - std::countl_zero(high) : 64 - std::countl_zero(static_cast<std::uint64_t>(bits));
    // The lowest bit that T has there.
    const int cut = std::max(width - limits::digits, limits::min_exponent - limits::digits - place);
    if (cut > width) return 0;  // less than half of the smallest
    if (cut <= 0) return std::ldexp(static_cast<T>(static_cast<std::uint64_t>(bits)), place);
    auto mantissa = static_cast<std::uint64_t>(bits >> cut);
    const auto below = bits & ((static_cast<unsigned __int128>(1) << cut) - 1);
    const auto half = static_cast<unsigned __int128>(1) << (cut - 1);
    if (below > half || (below == half && (rest || (mantissa & 1) != 0))) ++mantissa;
    return std::ldexp(static_cast<T>(mantissa), place + cut);
  }

  std::array<std::int64_t, digits> digits_{};
  std::uint64_t added_ = 0;  ///< since the last carry
  double special_ = 0;
  std::uint64_t has_special_ = 0;
};

}  // namespace godwit
