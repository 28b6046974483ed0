// In oneTBB: tasks of a group, which is waited for as a whole.
#include "threads.hpp"

#if BENCH_HAS_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>

threads::library threads::tbb() {
  return {.name = "tbb", .create_join = [](unsigned workers, std::size_t live, std::size_t total) {
            ::tbb::global_control limit(::tbb::global_control::max_allowed_parallelism, workers);
            ::tbb::task_arena arena(static_cast<int>(workers));
            return arena.execute([&] {
              std::atomic<std::size_t> ran{0};
              ::tbb::task_group group;
              return create_join_ns(
                  live, total,
                  [&](std::size_t n) {
                    for (std::size_t i = 0; i < n; ++i)
                      group.run([&ran] { ran.store(1, std::memory_order_relaxed); });
                  },
                  [&] { group.wait(); });
            });
          }};
}
#else
threads::library threads::tbb() { return {.name = "tbb", .installed = false}; }
#endif
