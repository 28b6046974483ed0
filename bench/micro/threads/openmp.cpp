// In OpenMP tasks. (libgomp runs a task at once when many are queued.)
#include "threads.hpp"

#if BENCH_HAS_OPENMP
#include <atomic>

threads::library threads::openmp() {
  return {.name = "openmp", .create_join = [](unsigned workers, std::size_t live, std::size_t total) {
            double ns = 0;
#pragma omp parallel num_threads(static_cast <int>(workers))
#pragma omp single
            {
              std::atomic<std::size_t> ran{0};
              std::atomic<std::size_t>* const to = &ran;
              ns = create_join_ns(
                  live, total,
                  [to](std::size_t n) {
                    for (std::size_t i = 0; i < n; ++i) {
#pragma omp task firstprivate(to)
                      to->store(1, std::memory_order_relaxed);
                    }
                  },
                  [] {
#pragma omp taskwait
                  });
            }
            return ns;
          }};
}
#else
threads::library threads::openmp() { return {.name = "openmp", .installed = false}; }
#endif
