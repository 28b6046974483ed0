// In other libraries of lightweight threads, where they are found.
#include "../../common/thread_libraries.hpp"

#include <atomic>

#include "threads.hpp"

namespace threads {

namespace {

std::atomic<std::size_t> ran{0};
void touch(void*) { ran.store(1, std::memory_order_relaxed); }

template <class L>
double create_join(unsigned workers, std::size_t live, std::size_t total) {
  double ns = 0;
  L::run(workers, bench::first::parent, [&] {
    std::vector<typename L::handle> all(live);
    ns = create_join_ns(
        live, total,
        [&](std::size_t n) {
          for (std::size_t i = 0; i < n; ++i) L::template create<touch>(all[i], nullptr);
        },
        [&] {
          for (auto& h : all) L::join(h);
        });
  });
  return ns;
}

struct turns {
  std::atomic<bool> go{false};
  std::size_t each = 0;
};
template <class L>
void take(void* of) {
  const turns& t = *static_cast<turns*>(of);
  while (!t.go.load(std::memory_order_relaxed)) L::yield();
  for (std::size_t i = 0; i < t.each; ++i) L::yield();
}

template <class L>
double yield(std::size_t threads, std::size_t yields) {
  double ns = 0;
  L::run(1, bench::first::parent, [&] {
    turns t;
    t.each = yields / threads;
    std::vector<typename L::handle> all(threads);
    for (auto& h : all) L::template create<take<L>>(h, &t);
    const std::uint64_t start = bench::now_ns();
    t.go.store(true, std::memory_order_relaxed);
    for (auto& h : all) L::join(h);
    ns = per(start, t.each * threads);
  });
  return ns;
}

}  // namespace

std::vector<library> others() {
  std::vector<library> all;
  bench::for_each_thread_library([&]<class L>() {
    all.push_back({.name = L::name,
                   .create_join = create_join<L>,
                   .yield = yield<L>,
                   .most_live = 100'000,  // a million took 12 GB, and Qthreads more than ten minutes
                   .slower = 4});
  });
#if BENCH_HAS_LACE
  all.push_back(lace());
#endif
#if BENCH_HAS_LIBFORK
  all.push_back(libfork());
#endif
  return all;
}

}  // namespace threads
