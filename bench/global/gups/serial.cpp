// The generator, and the updates over private memory.

#include <vector>

#include "gups.hpp"

namespace gups {

namespace {

std::uint64_t product(std::uint64_t x, std::uint64_t y) noexcept {
  std::uint64_t p = 0;
  for (; y != 0; y >>= 1) {
    if ((y & 1) != 0) p ^= x;
    x = next(x);
  }
  return p;
}

}  // namespace

std::uint64_t at(std::uint64_t i) noexcept {
  std::uint64_t power = 2, r = 1;  // x to the 2^k
  for (; i != 0; i >>= 1) {
    if ((i & 1) != 0) r = product(r, power);
    power = product(power, power);
  }
  return r;
}

outcome serial(const settings& s) {
  std::vector<std::uint64_t> table(s.words);
  for (std::uint64_t i = 0; i < s.words; ++i) table[i] = i;
  const std::uint64_t mask = s.words - 1;
  const auto all = [&] {
    std::uint64_t* const t = table.data();
    std::uint64_t r = at(1);
    for (std::uint64_t i = 0; i < s.updates; ++i, r = next(r)) t[r & mask] ^= r;
  };
  outcome out;
  out.updates = parts::measured_plain(all);
  all();
  for (std::uint64_t i = 0; i < s.words; ++i) out.wrong += table[i] != i;
  return out;
}

}  // namespace gups
