// How benchmarks start Lace, where it is found (peers.cmake): a library for fork and join by C macros, child
// stealing. Its tasks are macros and can be no templates, so each benchmark has a file lace.cpp. Libraries of
// threads: thread_libraries.hpp.
#pragma once

#if BENCH_HAS_LACE
#include <lace.h>

#include <cstddef>

namespace bench {

/// Runs f() with Lace's workers, outside of them: f says RUN(task, ...).
template <class F>
auto with_lace(unsigned workers, F&& f) {
  lace_set_stacksize(std::size_t{64} << 20);  // searches are deep, and a child is a call
  lace_start(workers, 0);
  auto result = f();
  lace_stop();
  return result;
}

}  // namespace bench
#endif
