// In OS threads. "One worker": all of them on one CPU.
#include <sched.h>

#include <atomic>
#include <semaphore>
#include <thread>

#include "threads.hpp"

namespace threads {

namespace {

/// This OS thread, and those that it creates, stay on the CPU where it is.
class on_one_cpu {
 public:
  explicit on_one_cpu(bool wanted = true)
      : wanted_(wanted && sched_getaffinity(0, sizeof before_, &before_) == 0) {
    const int here = sched_getcpu();
    if (!wanted_ || here < 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(here), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  on_one_cpu(const on_one_cpu&) = delete;
  on_one_cpu& operator=(const on_one_cpu&) = delete;
  ~on_one_cpu() {
    if (wanted_) sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_;
  bool wanted_;
};

double create_join(unsigned workers, std::size_t live, std::size_t total) {
  const on_one_cpu here(workers == 1);
  std::atomic<std::size_t> ran{0};
  std::vector<std::thread> all;
  all.reserve(live);
  return create_join_ns(
      live, total,
      [&](std::size_t n) {
        for (std::size_t i = 0; i < n; ++i)
          all.emplace_back([&ran] { ran.store(1, std::memory_order_relaxed); });
      },
      [&] {
        for (std::thread& t : all) t.join();
        all.clear();
      });
}

double yield(std::size_t threads, std::size_t yields) {
  const on_one_cpu here;
  const std::size_t each = yields / threads;
  std::atomic<bool> go{false};
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i)
    all.emplace_back([each, &go] {
      go.wait(false);
      for (std::size_t k = 0; k < each; ++k) std::this_thread::yield();
    });
  const std::uint64_t start = bench::now_ns();
  go.store(true);
  go.notify_all();
  for (std::thread& t : all) t.join();
  return per(start, each * threads);
}

double hand_over(std::size_t turns) {
  const on_one_cpu here;
  return hand_over_ns<std::thread, std::binary_semaphore>(turns);
}

}  // namespace

library std_thread() {
  return {.name = "std::thread",
          .create_join = create_join,
          .yield = yield,
          .hand_over = hand_over,
          .most_live = 1000,
          .slower = 50};
}

}  // namespace threads
