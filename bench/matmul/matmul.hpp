// Cache-oblivious matrix multiplication c += a b of doubles: halve the longest side until a block is small;
// halves of c are tasks, halves of the inner side come one after the other. M7 of the capabilities (1000 x
// 1000).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace matmul {

inline constexpr std::size_t leaf = 64;  ///< sides of a block at most

/// Part of a product: c[0..m)[0..n) += a[0..m)[0..k) b[0..k)[0..n), all with rows of @p row elements.
struct part {
  const double* a;
  const double* b;
  double* c;
  std::size_t m, n, k, row;
  bool is_leaf() const { return m <= leaf && n <= leaf && k <= leaf; }
  bool halves_m() const { return m >= n && m >= k; }
  bool halves_n() const { return !halves_m() && n >= k; }
  part low() const {
    part p = *this;
    (halves_m() ? p.m : halves_n() ? p.n : p.k) /= 2;
    return p;
  }
  part high() const {
    part p = *this;
    if (halves_m()) {
      p.a += m / 2 * row, p.c += m / 2 * row, p.m -= m / 2;
    } else if (halves_n()) {
      p.b += n / 2, p.c += n / 2, p.n -= n / 2;
    } else {
      p.a += k / 2, p.b += k / 2 * row, p.k -= k / 2;
    }
    return p;
  }
};

/// One block, in place.
void block(const part& p);

struct matrices {
  explicit matrices(std::size_t n);
  void clear();
  part whole();
  /// c = a b, tried on random vectors.
  bool is_right() const;
  std::size_t n;
  std::vector<double> a, b, c;
};

void calls(const part& p);
void godwit(const part& p);
void tbb(const part& p, unsigned workers);
void openmp(const part& p, unsigned workers);
void std_threads(const part& p, unsigned workers);
void lace(const part& p, unsigned workers);  ///< where it was found, as the next one
void libfork(const part& p, unsigned workers);

struct library {
  std::string name;
  void (*multiply)(const part& p, unsigned workers);
};
/// Other libraries that were found: of threads, Lace, libfork.
std::vector<library> libraries();

}  // namespace matmul
