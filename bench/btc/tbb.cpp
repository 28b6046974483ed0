// BTC in oneTBB.

#include "btc.hpp"

#if BENCH_HAS_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace {
std::uint64_t node(int depth, int iter) {
  if (depth == 0) return 1;
  std::uint64_t tasks = 1;
  for (int i = 0; i < iter; ++i) {
    std::uint64_t a, b;
    tbb::task_group group;
    group.run([&a, depth, iter] { a = node(depth - 1, iter); });
    group.run([&b, depth, iter] { b = node(depth - 1, iter); });
    group.wait();
    tasks += a + b;
  }
  return tasks;
}
}  // namespace

std::uint64_t btc::tbb(int depth, int iter, unsigned workers) {
  using ::tbb::global_control;
  global_control most(global_control::max_allowed_parallelism, workers);
  ::tbb::task_arena arena(static_cast<int>(workers));
  return arena.execute([depth, iter] { return node(depth, iter); });
}
#else
std::uint64_t btc::tbb(int, int, unsigned) { return 0; }
#endif
