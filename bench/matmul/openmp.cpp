// In OpenMP tasks.
#include "matmul.hpp"

#if BENCH_HAS_OPENMP
namespace matmul {

namespace {
void multiply(const part& p) {
  if (p.is_leaf()) return block(p);
  if (!p.halves_m() && !p.halves_n()) {
    multiply(p.low());
    return multiply(p.high());
  }
  const part low = p.low();
#pragma omp task firstprivate(low)
  multiply(low);
  multiply(p.high());
#pragma omp taskwait
}
}  // namespace

void openmp(const part& p, unsigned workers) {
#pragma omp parallel num_threads(static_cast <int>(workers))
#pragma omp single
  multiply(p);
}

}  // namespace matmul
#else
void matmul::openmp(const part&, unsigned) {}
#endif
