// Plain calls. Compiled with -fno-inline -fno-optimize-sibling-calls, see bench/CMakeLists.txt.

#include "btc.hpp"

#if defined(__clang__)
#define BENCH_OPAQUE [[gnu::noinline]]
#else
#define BENCH_OPAQUE [[gnu::noinline, gnu::noipa]]
#endif

BENCH_OPAQUE std::uint64_t btc::calls(int depth, int iter) {
  if (depth == 0) return 1;
  std::uint64_t tasks = 1;
  for (int i = 0; i < iter; ++i) tasks += calls(depth - 1, iter) + calls(depth - 1, iter);
  return tasks;
}
