// In Lace: tasks, spawned and then synchronised, the last one first.
#include "../../common/on_lace.hpp"

#include "threads.hpp"

#if BENCH_HAS_LACE
#include <atomic>

namespace {
std::atomic<std::size_t> ran{0};
VOID_TASK_0(lace_touch) { ran.store(1, std::memory_order_relaxed); }

VOID_TASK_1(lace_create_all, std::size_t, n) {
  for (std::size_t i = 0; i < n; ++i) SPAWN(lace_touch);
  for (std::size_t i = 0; i < n; ++i) SYNC(lace_touch);
}

TASK_2(double, lace_rounds, std::size_t, live, std::size_t, total) {
  return threads::create_join_ns(
      live, total, [&](std::size_t n) { CALL(lace_create_all, n); }, [] {});
}
}  // namespace

threads::library threads::lace() {
  return {.name = "lace",
          .create_join =
              [](unsigned workers, std::size_t live, std::size_t total) {
                return bench::with_lace(workers, [=] { return RUN(lace_rounds, live, total); });
              },
          .most_live = 50'000};  // its deque holds 100,000
}
#endif
