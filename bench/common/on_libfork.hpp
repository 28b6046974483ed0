// How benchmarks start libfork, where it is found (peers.cmake): fork and join by coroutines, continuation
// stealing. Each benchmark has a file libfork.cpp. Libraries of threads: thread_libraries.hpp.
#pragma once

#if BENCH_HAS_LIBFORK
#include <libfork.hpp>
#include <utility>

namespace bench {

/// Runs an asynchronous function of libfork on its usual pool; gives its result, or waits for its end.
template <class F, class... Args>
auto with_libfork(unsigned workers, F&& f, Args&&... args) {
  lf::lazy_pool pool(workers);
  return lf::sync_wait(pool, std::forward<F>(f), std::forward<Args>(args)...);
}

}  // namespace bench
#endif
