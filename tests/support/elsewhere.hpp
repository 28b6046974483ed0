// Threads that shall move: for tests of what a thread may take along.
#pragma once

#include <godwit/godwit.hpp>

namespace support {

[[gnu::noinline]] inline int leaf(int n) {
  return godwit::spawn([n] { return n + 1; }).join();
}

/// Give the scheduler many reasons to move the calling thread, @p times at most. False: it is where it
/// was (on a busy machine nobody may come).
[[gnu::noinline]] inline bool elsewhere(int times = 200) {
  const std::uint32_t before = godwit::worker_id();
  for (int i = 0; i < times && godwit::worker_id() == before; ++i) {
    leaf(i);
    godwit::yield();
  }
  return godwit::worker_id() != before;
}

}  // namespace support
