// The block at the leaves, the input, and what needs no runtime.
#include "matmul.hpp"

#include <cmath>
#include <thread>

namespace matmul {

void block(const part& p) {
  for (std::size_t i = 0; i < p.m; ++i)
    for (std::size_t l = 0; l < p.k; ++l) {
      const double x = p.a[i * p.row + l];
      const double* from = p.b + l * p.row;
      double* to = p.c + i * p.row;
      for (std::size_t j = 0; j < p.n; ++j) to[j] += x * from[j];
    }
}

matrices::matrices(std::size_t size) : n(size), a(n * n), b(n * n), c(n * n) {
  for (std::size_t i = 0; i < n * n; ++i) {
    a[i] = static_cast<double>(i * 7 % 13) - 6;
    b[i] = static_cast<double>(i * 11 % 17) - 8;
  }
}
void matrices::clear() { c.assign(n * n, 0); }
part matrices::whole() { return {a.data(), b.data(), c.data(), n, n, n, n}; }

bool matrices::is_right() const {  // c x = a (b x): all values are integers, so exactly
  std::vector<double> x(n), bx(n), abx(n), cx(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<double>(i * 5 % 7) - 3;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) bx[i] += b[i * n + j] * x[j], cx[i] += c[i * n + j] * x[j];
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) abx[i] += a[i * n + j] * bx[j];
  return abx == cx;
}

void calls(const part& p) {
  if (p.is_leaf()) return block(p);
  calls(p.low());
  calls(p.high());
}

void std_threads(const part& p, unsigned workers) {
  if (workers <= 1 || p.is_leaf()) return calls(p);
  if (!p.halves_m() && !p.halves_n()) {
    std_threads(p.low(), workers);
    return std_threads(p.high(), workers);
  }
  std::thread other([=] { std_threads(p.low(), workers / 2); });
  std_threads(p.high(), workers - workers / 2);
  other.join();
}

}  // namespace matmul
