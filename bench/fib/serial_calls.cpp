// Plain calls. Compiled with -fno-inline -fno-optimize-sibling-calls, see fib.hpp and bench/CMakeLists.txt.

#include "fib.hpp"

#if defined(__clang__)
#define BENCH_OPAQUE [[gnu::noinline]]
#else
#define BENCH_OPAQUE [[gnu::noinline, gnu::noipa]]
#endif

BENCH_OPAQUE std::uint64_t fib::calls(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  return calls(n - 1) + calls(n - 2);
}
