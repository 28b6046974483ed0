// fib in oneTBB.

#include "fib.hpp"

#if BENCH_HAS_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace {
std::uint64_t node(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  std::uint64_t first;
  tbb::task_group group;
  group.run([&first, n] { first = node(n - 1); });
  const std::uint64_t second = node(n - 2);
  group.wait();
  return first + second;
}
}  // namespace

std::uint64_t fib::tbb(int n, unsigned workers) {
  using ::tbb::global_control;
  global_control most(global_control::max_allowed_parallelism, workers);
  ::tbb::task_arena arena(static_cast<int>(workers));
  return arena.execute([n] { return node(n); });
}
#else
std::uint64_t fib::tbb(int, unsigned) { return 0; }
#endif
