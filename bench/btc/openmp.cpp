// BTC in OpenMP tasks.

#include "btc.hpp"

#if BENCH_HAS_OPENMP
namespace {
std::uint64_t node(int depth, int iter) {
  if (depth == 0) return 1;
  std::uint64_t tasks = 1;
  for (int i = 0; i < iter; ++i) {
    std::uint64_t a, b;
#pragma omp task shared(a) firstprivate(depth, iter)
    a = node(depth - 1, iter);
#pragma omp task shared(b) firstprivate(depth, iter)
    b = node(depth - 1, iter);
#pragma omp taskwait
    tasks += a + b;
  }
  return tasks;
}
}  // namespace

std::uint64_t btc::openmp(int depth, int iter, unsigned workers) {
  std::uint64_t result = 0;
#pragma omp parallel num_threads(static_cast <int>(workers))
#pragma omp single
  result = node(depth, iter);
  return result;
}
#else
std::uint64_t btc::openmp(int, int, unsigned) { return 0; }
#endif
