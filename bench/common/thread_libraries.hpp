// Other libraries of lightweight threads, where they are found (bench/CMakeLists.txt): Argobots,
// MassiveThreads, Qthreads. One shape for all, so that benchmarks write their loops once: run(workers, root),
// create<f>(handle, argument), join(handle), yield(). Not TBB and OpenMP: those have tasks, and files of
// their own. Used by the files called libraries.cpp.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#if BENCH_HAS_ARGOBOTS
#include <abt.h>
#endif
#if BENCH_HAS_MASSIVETHREADS
#include <myth/myth.h>
#endif
#if BENCH_HAS_QTHREADS
#include <qthread/qthread.h>
#endif

namespace bench {

/// Who runs first after a create, where a library lets one choose: for recursion the child, for many threads
/// at a time the parent.
enum class first { child, parent };

inline void must(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s failed: is there enough memory?\n", what);
  std::exit(1);
}

#if BENCH_HAS_ARGOBOTS
/// A pool per worker, own threads last in first out (else a recursion unfolds in breadth), others' taken at
/// random.
struct argobots {
  static constexpr const char* name = "argobots";
  using handle = ABT_thread;
  template <class F>
  static void run(unsigned workers, first, F&& root) {
    must(ABT_init(0, nullptr) == ABT_SUCCESS, "ABT_init");
    std::vector<ABT_pool> pools(workers);
    for (ABT_pool& p : pools)
      must(ABT_pool_create_basic(ABT_POOL_RANDWS, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &p) == ABT_SUCCESS,
           "ABT_pool_create_basic");
    std::vector<ABT_xstream> streams(workers);
    const auto its = [&](unsigned i) {  // its own pool first
      std::vector<ABT_pool> order(pools.begin() + i, pools.end());
      order.insert(order.end(), pools.begin(), pools.begin() + i);
      return order;
    };
    const int n = static_cast<int>(workers);
    for (unsigned i = 1; i < workers; ++i)
      must(ABT_xstream_create_basic(ABT_SCHED_RANDWS, n, its(i).data(), ABT_SCHED_CONFIG_NULL, &streams[i]) ==
               ABT_SUCCESS,
           "ABT_xstream_create");
    ABT_xstream_self(&streams[0]);
    must(ABT_xstream_set_main_sched_basic(streams[0], ABT_SCHED_RANDWS, n, its(0).data()) == ABT_SUCCESS,
         "ABT_xstream_set_main_sched");
    root();
    for (unsigned i = 1; i < workers; ++i) {
      ABT_xstream_join(streams[i]);
      ABT_xstream_free(&streams[i]);
    }
    ABT_finalize();
  }
  template <void (*f)(void*)>
  static void create(handle& h, void* argument) {
    ABT_pool mine;
    ABT_self_get_last_pool(&mine);
    must(ABT_thread_create(mine, f, argument, ABT_THREAD_ATTR_NULL, &h) == ABT_SUCCESS, "ABT_thread_create");
  }
  static void join(handle& h) { ABT_thread_free(&h); }
  static void yield() { ABT_self_yield(); }
};
#endif

#if BENCH_HAS_MASSIVETHREADS
struct massivethreads {
  static constexpr const char* name = "massivethreads";
  using handle = myth_thread_t;
  template <class F>
  static void run(unsigned workers, first order, F&& root) {
    myth_globalattr_t attributes;
    myth_globalattr_init(&attributes);
    myth_globalattr_set_n_workers(&attributes, workers);
    attributes.child_first = order == first::child;
    myth_init_ex(&attributes);
    root();
    myth_fini();
  }
  template <void (*f)(void*)>
  static void create(handle& h, void* argument) {
    h = myth_create([](void* a) -> void* { return f(a), nullptr; }, argument);
  }
  static void join(handle& h) { myth_join(h, nullptr); }
  static void yield() { myth_yield(); }
};
#endif

#if BENCH_HAS_QTHREADS
struct qthreads {
  static constexpr const char* name = "qthreads";
  using handle = aligned_t;
  template <class F>
  static void run(unsigned workers, first, F&& root) {
    setenv("QT_NUM_SHEPHERDS", std::to_string(workers).c_str(), 1);
    setenv("QT_NUM_WORKERS_PER_SHEPHERD", "1", 1);
    setenv("QT_HWPAR", std::to_string(workers).c_str(), 1);
    must(qthread_initialize() == QTHREAD_SUCCESS, "qthread_initialize");
    root();
    qthread_finalize();
  }
  template <void (*f)(void*)>
  static void create(handle& h, void* argument) {
    must(qthread_fork([](void* a) -> aligned_t { return f(a), 0; }, argument, &h) == QTHREAD_SUCCESS,
         "qthread_fork");
  }
  static void join(handle& h) { qthread_readFF(nullptr, &h); }
  static void yield() { qthread_yield(); }
};
#endif

/// Calls f<library>() for each that is there.
template <class F>
void for_each_thread_library([[maybe_unused]] F&& f) {
#if BENCH_HAS_ARGOBOTS
  f.template operator()<argobots>();
#endif
#if BENCH_HAS_MASSIVETHREADS
  f.template operator()<massivethreads>();
#endif
#if BENCH_HAS_QTHREADS
  f.template operator()<qthreads>();
#endif
}

}  // namespace bench
