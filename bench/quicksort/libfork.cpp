// In libfork.
#include "../common/on_libfork.hpp"
#include "quicksort.hpp"

#if BENCH_HAS_LIBFORK
namespace {
constexpr auto sort = [](auto self, std::uint32_t* first, std::uint32_t* last) -> lf::task<void> {
  if (last - first <= quicksort::leaf) {
    std::sort(first, last);
    co_return;
  }
  std::uint32_t* const middle = quicksort::partition(first, last);
  co_await lf::fork(self)(first, middle);
  co_await lf::call(self)(middle, last);
  co_await lf::join;
};
}  // namespace

void quicksort::libfork(std::uint32_t* first, std::uint32_t* last, unsigned workers) {
  bench::with_libfork(workers, sort, first, last);
}
#endif
