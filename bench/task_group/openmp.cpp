// The members as OpenMP tasks of one taskgroup.

#include "task_group.hpp"

#if BENCH_HAS_OPENMP
#include <vector>

namespace task_group {

std::uint64_t openmp(problem p, unsigned workers) {
  std::vector<std::uint64_t> results(p.members);
  std::uint64_t* const to = results.data();
#pragma omp parallel num_threads(static_cast <int>(workers))
#pragma omp single
#pragma omp taskgroup
  for (std::uint64_t i = 0; i < p.members; ++i)
#pragma omp task firstprivate(to, i, p)
    to[i] = member(i, p.steps);
  std::uint64_t sum = 0;
  for (const std::uint64_t r : results) sum += r;
  return sum;
}

}  // namespace task_group
#else
std::uint64_t task_group::openmp(problem, unsigned) { return 0; }
#endif
