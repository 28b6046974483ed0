// The loops. Compiled with -O3 for everybody.

#include "stream.hpp"

namespace stream {

double sum(const double* __restrict a, std::size_t n) noexcept {
  // One accumulator would measure the latency of additions, not memory.
  double s[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) s[k] += a[i + static_cast<std::size_t>(k)];
  for (; i < n; ++i) s[0] += a[i];
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

void copy(const double* __restrict a, double* __restrict c, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) c[i] = a[i];
}
void scale(const double* __restrict c, double* __restrict b, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) b[i] = factor * c[i];
}
void add(const double* __restrict a, const double* __restrict b, double* __restrict c,
         std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
void triad(const double* __restrict b, const double* __restrict c, double* __restrict a,
           std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + factor * c[i];
}

double right_total(std::uint64_t size) {
  const std::uint64_t rest = size & 1023;
  return static_cast<double>(size >> 10) * (1023 * 512) +
         static_cast<double>(rest == 0 ? 0 : rest * (rest - 1) / 2);
}

triple right_values(int times) {
  triple v;
  for (int i = 0; i < times; ++i) {
    v.c = v.a;
    v.b = factor * v.c;
    v.c = v.a + v.b;
    v.a = v.b + factor * v.c;
  }
  return v;
}

}  // namespace stream
