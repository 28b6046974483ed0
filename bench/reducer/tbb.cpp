#include "tbb.hpp"

#if BENCH_HAS_TBB
#include <chrono>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_invoke.h>

namespace {
using views = tbb::enumerable_thread_specific<long>;
void leaves(views& v, int depth) {
  if (depth == 0) return static_cast<void>(++v.local());
  tbb::parallel_invoke([&] { leaves(v, depth - 1); }, [&] { leaves(v, depth - 1); });
}
}  // namespace

double reducer_bench::tbb_leaf_ns(int depth, int threads) {
  using clock = std::chrono::steady_clock;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(threads));
  views v(0L);
  const auto before = clock::now();
  leaves(v, depth);
  const double ns = std::chrono::duration<double, std::nano>(clock::now() - before).count();
  const long all = v.combine([](long a, long b) { return a + b; });
  return all == 1L << depth ? ns / static_cast<double>(all) : 0;
}
#else
double reducer_bench::tbb_leaf_ns(int, int) { return 0; }
#endif
