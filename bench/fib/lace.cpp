// fib in Lace.
#include "../common/on_lace.hpp"
#include "fib.hpp"

#if BENCH_HAS_LACE
namespace {
TASK_1(std::uint64_t, lace_node, int, n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  SPAWN(lace_node, n - 1);
  const std::uint64_t second = CALL(lace_node, n - 2);
  return SYNC(lace_node) + second;
}
}  // namespace

std::uint64_t fib::lace(int n, unsigned workers) {
  return bench::with_lace(workers, [n] { return RUN(lace_node, n); });
}
#endif
