// threads: what do threads of one process cost? Substrate threads: create + join of one thread at a time, of 1,000 and of a million that
// live at once; a yield between 2 and between 1,000 threads; a mutex that nobody else wants; the memory of a thread that waits.
//
// Every figure is the median over repetitions of (time of all) / (number of operations), in one root thread's time.

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../../common/clock.hpp"
#include "../../common/godwit_run.hpp"
#include "../../common/harness.hpp"

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
  o.substrate = "threads";
  o.workers = workers;
  return gw::run<double>([&] { return root(); }, o);
}

/// ns per create + join: @p live threads are created, then joined in order, until @p total have been.
double create_join_ns(unsigned workers, std::size_t live, std::size_t total) {
  return on_threads(workers, [=] {
    std::atomic<std::size_t> ran{0};
    std::vector<gw::thread> all;
    all.reserve(live);
    const auto round = [&] {
      for (std::size_t i = 0; i < live; ++i) all.emplace_back([&ran] { ran.store(1, std::memory_order_relaxed); });
      for (gw::thread& t : all) t.join();
      all.clear();
    };
    if (live < total) round();  // warm
    const std::uint64_t start = bench::now_ns();
    for (std::size_t done = 0; done < total; done += live) round();
    return static_cast<double>(bench::now_ns() - start) / static_cast<double>((total + live - 1) / live * live);
  });
}

/// Bytes per live thread that has not begun.
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

double yield_ns(unsigned workers, std::size_t threads, std::size_t yields) {
  return on_threads(workers, [=] {
    const std::size_t each = yields / threads;
    std::vector<gw::thread> all;
    gw::latch go(1);
    for (std::size_t i = 0; i < threads; ++i) all.emplace_back([each, &go] {
      go.wait();
      for (std::size_t k = 0; k < each; ++k) gw::this_thread::yield();
    });
    gw::this_thread::yield();
    const std::uint64_t start = bench::now_ns();
    go.count_down();
    for (gw::thread& t : all) t.join();
    return static_cast<double>(bench::now_ns() - start) / static_cast<double>(each * threads);
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
    return static_cast<double>(bench::now_ns() - start) / static_cast<double>(times);
  });
}

/// Bytes per thread that waits at a latch.
double blocked_bytes(std::size_t threads) {
  return on_threads(1, [=] {
    std::vector<gw::thread> all(threads);
    gw::latch here(static_cast<std::ptrdiff_t>(threads)), go(1);
    const double before = resident_bytes();
    for (gw::thread& t : all) t = gw::thread([&] {
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

}  // namespace

int main(int argc, char** argv) {
  bench::program program("threads", "Cost of threads in one process: create and join, yield, mutex, memory.", argc, argv);
  program.parse();
  const bool quick = program.options().quick;
  const std::size_t many = quick ? 100'000 : 1'000'000;
  struct figure {
    std::string key, what, unit, definition;
    std::vector<double> values;
  };
  std::vector<figure> all;
  const auto measure = [&](const char* key, const std::string& what, const char* unit, const char* definition, auto&& f) {
    all.push_back({key, what, unit, definition, {}});
    for (int i = 0; i < program.options().reps; ++i) all.back().values.push_back(f());
  };
  const char* const time = "time of all / number, one root thread creates and joins";
  try {
    measure("create_join_1", "create + join, one at a time", "ns", time, [&] { return create_join_ns(1, 1, many / 2); });
    measure("create_join_1000", "create + join, 1,000 live", "ns", time, [&] { return create_join_ns(1, 1000, many); });
    measure("create_join_1m", "create + join, " + std::to_string(many) + " live", "ns", time, [&] { return create_join_ns(1, many, many); });
    if (program.most_workers() >= 2) {
      measure("create_join_1000_w2", "create + join, 1,000 live, 2 workers", "ns", time, [&] { return create_join_ns(2, 1000, many); });
      measure("create_join_1m_w2", "create + join, " + std::to_string(many) + " live, 2 workers", "ns", time,
              [&] { return create_join_ns(2, many, many); });
    }
    measure("created_bytes", "a thread that has not begun", "B", "resident memory", [&] { return created_bytes(many); });
    measure("yield_2", "yield, 2 threads", "ns", "time / yields", [&] { return yield_ns(1, 2, many * 4); });
    measure("yield_1000", "yield, 1,000 threads", "ns", "time / yields", [&] { return yield_ns(1, 1000, many * 4); });
    measure("mutex", "mutex, lock + unlock, alone", "ns", "time / pairs", [&] { return mutex_ns(many * 10); });
    measure("blocked_bytes", "a thread that waits", "B", "resident memory, stack included", [&] { return blocked_bytes(many / 10); });
    for (const figure& f : all) program.figure(f.key, f.what, bench::median(f.values), f.unit.c_str(), f.definition);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "threads: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
