// The tree of bench/reducer with TBB.
#pragma once

namespace reducer_bench {
/// Per leaf, with a view per thread; 0: not built with TBB.
double tbb_leaf_ns(int depth, int threads);
}  // namespace reducer_bench
