// N queens in OpenMP tasks.

#include "nqueens.hpp"

#if BENCH_HAS_OPENMP
namespace nqueens {

namespace {
std::uint64_t count(const board& b, int row, int n) {
  if (row == n) return 1;
  std::uint64_t found[most];
  int children = 0;
  for (int c = 0; c < n; ++c) {
    if (!safe(b, row, c)) continue;
    const board next = placed(b, row, c);
    std::uint64_t* const to = &found[children++];
#pragma omp task firstprivate(next, row, n, to)
    *to = count(next, row + 1, n);
  }
#pragma omp taskwait
  std::uint64_t sum = 0;
  for (int i = 0; i < children; ++i) sum += found[i];
  return sum;
}
}  // namespace

std::uint64_t openmp(int n, unsigned workers) {
  std::uint64_t result = 0;
#pragma omp parallel num_threads(static_cast <int>(workers))
#pragma omp single
  result = count(board{}, 0, n);
  return result;
}

}  // namespace nqueens
#else
std::uint64_t nqueens::openmp(int, unsigned) { return 0; }
#endif
