// In Lace.
#include "../common/on_lace.hpp"
#include "matmul.hpp"

#if BENCH_HAS_LACE
namespace {
VOID_TASK_1(lace_multiply, const matmul::part*, p) {
  if (p->is_leaf()) {
    block(*p);
    return;
  }
  const matmul::part low = p->low(), high = p->high();
  if (!p->halves_m() && !p->halves_n()) {
    CALL(lace_multiply, &low);
    CALL(lace_multiply, &high);
    return;
  }
  SPAWN(lace_multiply, &low);
  CALL(lace_multiply, &high);
  SYNC(lace_multiply);
}
}  // namespace

void matmul::lace(const part& p, unsigned workers) {
  bench::with_lace(workers, [&p] {
    RUN(lace_multiply, &p);
    return 0;
  });
}
#endif
