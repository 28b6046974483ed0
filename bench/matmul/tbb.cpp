// In oneTBB.
#include "matmul.hpp"

#if BENCH_HAS_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace matmul {

namespace {
void multiply(const part& p) {
  if (p.is_leaf()) return block(p);
  if (!p.halves_m() && !p.halves_n()) {
    multiply(p.low());
    return multiply(p.high());
  }
  ::tbb::task_group group;
  group.run([q = p.low()] { multiply(q); });
  multiply(p.high());
  group.wait();
}
}  // namespace

void tbb(const part& p, unsigned workers) {
  ::tbb::global_control limit(::tbb::global_control::max_allowed_parallelism, workers);
  ::tbb::task_arena arena(static_cast<int>(workers));
  arena.execute([&] { multiply(p); });
}

}  // namespace matmul
#else
void matmul::tbb(const part&, unsigned) {}
#endif
