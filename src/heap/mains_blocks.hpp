// What main had allocated before the run, and threads have changed. Each worker has a copy of it, so neither
// main nor another worker sees the change.
//
// With GODWIT_CHECK_HEAP in the environment, main's allocations are recorded from the program's begin on. A
// worker that begins remembers what lies in these blocks, and when it ends, which of them have changed. Left
// out are: what other libraries than C++'s have allocated for themselves; buffers of streams; counts of what
// main owns by std::shared_ptr (kept.hpp); blocks that the worker has freed.
// Called by src/runtime and changes.cpp. Document: docs/heap.md. Test: tests/heap/mains_blocks_test.cpp.
#pragma once

#include "heap/site_lines.hpp"

#include <map>
#include <string>

namespace godwit::heap {

/// While it lives, what this OS thread of main allocates is the library's own.
class unrecorded {
 public:
  unrecorded() noexcept;
  ~unrecorded();
  unrecorded(const unrecorded&) = delete;
  unrecorded& operator=(const unrecorded&) = delete;

 private:
  bool before_;
};

/// GODWIT_CHECK_HEAP asked for it.
bool records_main() noexcept;
/// In a worker that has been forked: nothing is recorded from now on. @p checks: changed_blocks will want to
/// know what lies in main's blocks now. Reads all of them.
void remember_mains_blocks(bool checks);
/// Those that have changed since, by the line that had allocated them and its callers. Reads all that
/// remember_mains_blocks has read; finding lines takes up to some seconds.
std::map<std::string, sum> changed_blocks();

}  // namespace godwit::heap
