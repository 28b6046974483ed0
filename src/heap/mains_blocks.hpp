// What main had allocated before the run, and threads have changed. Each worker has a copy of it, so neither
// main nor another worker sees the change.
//
// With GODWIT_CHECK_HEAP in the environment, main's allocations are recorded from the program's begin on. A
// worker that begins remembers what lies in these blocks, and when it ends, which of them have changed. Left
// out are: what other libraries than C++'s have allocated for themselves; buffers of streams; counts of what
// main owns by std::shared_ptr (kept.hpp); blocks that the worker has freed.
// Called by src/runtime and leaks.cpp. Document: docs/heap.md. Test: tests/heap/mains_blocks_test.cpp.
#pragma once

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

/// In a worker that has been forked: nothing is recorded from now on. @p checks: find_changes will want to
/// know what lies in main's blocks now. Reads all of them.
void remember_mains_blocks(bool checks);

struct allocations;
/// In a worker, at its end: add what it has changed. Reads all that remember_mains_blocks has read; finding
/// lines takes up to some seconds.
void add_changes(allocations& all);
/// After all workers have done that.
void print_changes(const allocations& all);

}  // namespace godwit::heap
