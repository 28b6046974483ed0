// N queens in Lace: a task per safe place, its board beside its parent's.
#include "../common/on_lace.hpp"
#include "nqueens.hpp"

#if BENCH_HAS_LACE
namespace {
struct place {
  nqueens::board b;
  int row, n;
};

TASK_1(std::uint64_t, lace_count, const place*, p) {
  if (p->row == p->n) return 1;
  place next[nqueens::most];
  int children = 0;
  for (int c = 0; c < p->n; ++c) {
    if (!nqueens::safe(p->b, p->row, c)) continue;
    next[children] = {nqueens::placed(p->b, p->row, c), p->row + 1, p->n};
    SPAWN(lace_count, &next[children]);
    ++children;
  }
  std::uint64_t found = 0;
  for (int i = 0; i < children; ++i) found += SYNC(lace_count);
  return found;
}
}  // namespace

std::uint64_t nqueens::lace(int n, unsigned workers) {
  const place root{{}, 0, n};
  return bench::with_lace(workers, [&root] { return RUN(lace_count, &root); });
}
#endif
