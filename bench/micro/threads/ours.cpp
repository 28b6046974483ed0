// In godwit: gw::thread on substrate threads.
#include "ours.hpp"

#include <godwit/godwit.hpp>

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <mutex>

namespace threads {

namespace {

namespace gw = godwit;

/// Bytes of memory that this process has resident.
double resident_bytes() {
  std::ifstream in("/proc/self/statm");
  double all = 0, resident = 0;
  in >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Run root() on substrate threads; it gives back what is measured.
template <class F>
double on_threads(unsigned workers, F&& root) {
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.workers = workers;
  return gw::run<double>([&] { return root(); }, o);
}

double create_join(unsigned workers, std::size_t live, std::size_t total) {
  return on_threads(workers, [=] {
    std::atomic<std::size_t> ran{0};
    std::vector<gw::thread> all;
    all.reserve(live);
    return create_join_ns(
        live, total,
        [&](std::size_t n) {
          for (std::size_t i = 0; i < n; ++i)
            all.emplace_back([&ran] { ran.store(1, std::memory_order_relaxed); });
        },
        [&] {
          for (gw::thread& t : all) t.join();
          all.clear();
        });
  });
}

double yield(std::size_t threads, std::size_t yields) {
  return on_threads(1, [=] {
    const std::size_t each = yields / threads;
    std::vector<gw::thread> all;
    gw::latch go(1);
    for (std::size_t i = 0; i < threads; ++i)
      all.emplace_back([each, &go] {
        go.wait();
        for (std::size_t k = 0; k < each; ++k) gw::this_thread::yield();
      });
    gw::this_thread::yield();
    const std::uint64_t start = bench::now_ns();
    go.count_down();
    for (gw::thread& t : all) t.join();
    return per(start, each * threads);
  });
}

double hand_over(std::size_t turns) {
  return on_threads(1, [=] { return hand_over_ns<gw::thread, gw::binary_semaphore>(turns); });
}

}  // namespace

library ours() {
  return {.name = "godwit", .create_join = create_join, .yield = yield, .hand_over = hand_over};
}

double created_bytes(std::size_t live) {
  return on_threads(1, [=] {
    std::vector<gw::thread> all(live);
    for (gw::thread& t : all) t = gw::thread();  // touched
    const double before = resident_bytes();
    for (gw::thread& t : all) t = gw::thread([] {});
    const double bytes = resident_bytes() - before;
    for (gw::thread& t : all) t.join();
    return bytes / static_cast<double>(live);
  });
}

double blocked_bytes(std::size_t threads) {
  return on_threads(1, [=] {
    std::vector<gw::thread> all(threads);
    gw::latch here(static_cast<std::ptrdiff_t>(threads)), go(1);
    const double before = resident_bytes();
    for (gw::thread& t : all)
      t = gw::thread([&] {
        here.count_down();
        go.wait();
      });
    here.wait();
    const double bytes = resident_bytes() - before;
    go.count_down();
    for (gw::thread& t : all) t.join();
    return bytes / static_cast<double>(threads);
  });
}

double mutex_ns(std::size_t times) {
  return on_threads(1, [=] {
    gw::mutex m;
    volatile long count = 0;
    const std::uint64_t start = bench::now_ns();
    for (std::size_t i = 0; i < times; ++i) {
      std::lock_guard guard(m);
      count = count + 1;
    }
    return per(start, times);
  });
}

}  // namespace threads
