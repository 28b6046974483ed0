// N queens in oneTBB.

#include "nqueens.hpp"

#if BENCH_HAS_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace nqueens {

namespace {
std::uint64_t count(const board& b, int row, int n) {
  if (row == n) return 1;
  std::uint64_t found[most];
  int children = 0;
  ::tbb::task_group group;
  for (int c = 0; c < n; ++c) {
    if (!safe(b, row, c)) continue;
    const board next = placed(b, row, c);
    group.run([next, row, n, to = &found[children++]] { *to = count(next, row + 1, n); });
  }
  group.wait();
  std::uint64_t sum = 0;
  for (int i = 0; i < children; ++i) sum += found[i];
  return sum;
}
}  // namespace

std::uint64_t tbb(int n, unsigned workers) {
  using ::tbb::global_control;
  global_control limit(global_control::max_allowed_parallelism, workers);
  ::tbb::task_arena arena(static_cast<int>(workers));
  return arena.execute([n] { return count(board{}, 0, n); });
}

}  // namespace nqueens
#else
std::uint64_t nqueens::tbb(int, unsigned) { return 0; }
#endif
