// In Lace.
#include "../common/on_lace.hpp"
#include "quicksort.hpp"

#if BENCH_HAS_LACE
namespace {
VOID_TASK_2(lace_sort, std::uint32_t*, first, std::uint32_t*, last) {
  if (last - first <= quicksort::leaf) {
    std::sort(first, last);
    return;
  }
  std::uint32_t* const middle = quicksort::partition(first, last);
  SPAWN(lace_sort, first, middle);
  CALL(lace_sort, middle, last);
  SYNC(lace_sort);
}
}  // namespace

void quicksort::lace(std::uint32_t* first, std::uint32_t* last, unsigned workers) {
  bench::with_lace(workers, [=] {
    RUN(lace_sort, first, last);
    return 0;
  });
}
#endif
