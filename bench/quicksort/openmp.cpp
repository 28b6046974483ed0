// In OpenMP tasks.
#include "quicksort.hpp"

#if BENCH_HAS_OPENMP
namespace quicksort {

namespace {
void sort(std::uint32_t* first, std::uint32_t* last) {
  if (last - first <= leaf) {
    std::sort(first, last);
    return;
  }
  std::uint32_t* middle = partition(first, last);
#pragma omp task firstprivate(first, middle)
  sort(first, middle);
  sort(middle, last);
#pragma omp taskwait
}
}  // namespace

void openmp(std::uint32_t* first, std::uint32_t* last, unsigned workers) {
#pragma omp parallel num_threads(static_cast <int>(workers))
#pragma omp single
  sort(first, last);
}

}  // namespace quicksort
#else
void quicksort::openmp(std::uint32_t*, std::uint32_t*, unsigned) {}
#endif
