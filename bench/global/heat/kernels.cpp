// The loops. Compiled with -O3 for everybody.

#include "heat.hpp"

namespace heat {

namespace {

void one(const double* __restrict above, const double* __restrict here, const double* __restrict below,
         double* __restrict to, std::size_t side) noexcept {
  to[0] = here[0];
  for (std::size_t k = 1; k + 1 < side; ++k)
    to[k] = 0.25 * ((above[k] + below[k]) + (here[k - 1] + here[k + 1]));
  to[side - 1] = here[side - 1];
}

}  // namespace

void relax(const double* from, double* to, std::size_t side, std::size_t count) noexcept {
  for (std::size_t r = 0; r < count; ++r)
    one(from + r * side, from + (r + 1) * side, from + (r + 2) * side, to + r * side, side);
}

void begin(double* row, std::size_t side, std::size_t i) noexcept {
  for (std::size_t k = 0; k < side; ++k)
    row[k] = i == 0 || k == 0 ? 100.0 : i + 1 == side ? -50.0 : static_cast<double>((i * 31 + k * 17) & 15);
}

}  // namespace heat
