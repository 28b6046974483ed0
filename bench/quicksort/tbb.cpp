// In oneTBB.
#include "quicksort.hpp"

#if BENCH_HAS_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace quicksort {

namespace {
void sort(std::uint32_t* first, std::uint32_t* last) {
  if (last - first <= leaf) {
    std::sort(first, last);
    return;
  }
  std::uint32_t* middle = partition(first, last);
  ::tbb::task_group group;
  group.run([=] { sort(first, middle); });
  sort(middle, last);
  group.wait();
}
}  // namespace

void tbb(std::uint32_t* first, std::uint32_t* last, unsigned workers) {
  ::tbb::global_control limit(::tbb::global_control::max_allowed_parallelism, workers);
  ::tbb::task_arena arena(static_cast<int>(workers));
  arena.execute([=] { sort(first, last); });
}

}  // namespace quicksort
#else
void quicksort::tbb(std::uint32_t*, std::uint32_t*, unsigned) {}
#endif
