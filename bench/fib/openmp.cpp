// fib in OpenMP tasks.

#include "fib.hpp"

#if BENCH_HAS_OPENMP
namespace {
std::uint64_t node(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  std::uint64_t first;
#pragma omp task shared(first) firstprivate(n)
  first = node(n - 1);
  const std::uint64_t second = node(n - 2);
#pragma omp taskwait
  return first + second;
}
}  // namespace

std::uint64_t fib::openmp(int n, unsigned workers) {
  std::uint64_t result = 0;
#pragma omp parallel num_threads(static_cast <int>(workers))
#pragma omp single
  result = node(n);
  return result;
}
#else
std::uint64_t fib::openmp(int, unsigned) { return 0; }
#endif
