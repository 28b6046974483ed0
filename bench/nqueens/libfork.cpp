// N queens in libfork: a task per safe place.
#include "../common/on_libfork.hpp"
#include "nqueens.hpp"

#if BENCH_HAS_LIBFORK
namespace {
constexpr auto count = [](auto self, nqueens::board b, int row, int n) -> lf::task<std::uint64_t> {
  if (row == n) co_return 1;
  std::uint64_t found[nqueens::most];
  int children = 0;
  for (int c = 0; c < n; ++c)
    if (nqueens::safe(b, row, c))
      co_await lf::fork(&found[children++], self)(nqueens::placed(b, row, c), row + 1, n);
  co_await lf::join;
  std::uint64_t sum = 0;
  for (int i = 0; i < children; ++i) sum += found[i];
  co_return sum;
};
}  // namespace

std::uint64_t nqueens::libfork(int n, unsigned workers) {
  return bench::with_libfork(workers, count, nqueens::board{}, 0, n);
}
#endif
