// BTC in Lace.
#include "../common/on_lace.hpp"
#include "btc.hpp"

#if BENCH_HAS_LACE
namespace {
TASK_2(std::uint64_t, lace_node, int, depth, int, iter) {
  std::uint64_t tasks = 1;
  for (int i = 0; depth > 0 && i < iter; ++i) {
    SPAWN(lace_node, depth - 1, iter);
    SPAWN(lace_node, depth - 1, iter);
    tasks += SYNC(lace_node);
    tasks += SYNC(lace_node);
  }
  return tasks;
}
}  // namespace

std::uint64_t btc::lace(int depth, int iter, unsigned workers) {
  return bench::with_lace(workers, [=] { return RUN(lace_node, depth, iter); });
}
#endif
