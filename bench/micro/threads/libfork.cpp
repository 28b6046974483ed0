// In libfork: tasks, forked and joined as a whole; a forked one runs at once.
#include "../../common/on_libfork.hpp"

#include "threads.hpp"

#if BENCH_HAS_LIBFORK
#include <atomic>

namespace {
std::atomic<std::size_t> ran{0};
constexpr auto touch = [](auto) -> lf::task<void> {
  ran.store(1, std::memory_order_relaxed);
  co_return;
};
constexpr auto rounds = [](auto, std::size_t live, std::size_t total) -> lf::task<double> {
  std::uint64_t start = 0;
  std::size_t done = 0;
  for (bool warm = live < total; warm || done < total; warm = false) {
    if (!warm && done == 0) start = bench::now_ns();
    for (std::size_t i = 0; i < live; ++i) co_await lf::fork(touch)();
    co_await lf::join;
    if (!warm) done += live;
  }
  co_return threads::per(start, done);
};
}  // namespace

threads::library threads::libfork() {
  return {.name = "libfork", .create_join = [](unsigned workers, std::size_t live, std::size_t total) {
            return bench::with_libfork(workers, rounds, live, total);
          }};
}
#endif
