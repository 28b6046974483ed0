// The members in a task_group of oneTBB.

#include "task_group.hpp"

#if BENCH_HAS_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <vector>

namespace task_group {

std::uint64_t tbb(problem p, unsigned workers) {
  using ::tbb::global_control;
  const global_control limit(global_control::max_allowed_parallelism, workers);
  ::tbb::task_arena arena(static_cast<int>(workers));
  return arena.execute([p] {
    std::vector<std::uint64_t> results(p.members);
    std::uint64_t* const to = results.data();
    ::tbb::task_group g;
    for (std::uint64_t i = 0; i < p.members; ++i) g.run([to, i, p] { to[i] = member(i, p.steps); });
    g.wait();
    std::uint64_t sum = 0;
    for (const std::uint64_t r : results) sum += r;
    return sum;
  });
}

}  // namespace task_group
#else
std::uint64_t task_group::tbb(problem, unsigned) { return 0; }
#endif
