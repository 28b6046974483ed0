// Objects that main owns by counting (std::shared_ptr, boost::shared_ptr) when a run begins: no worker
// destroys them.
//
// Each worker has its own copy of main's memory, counts and all, so what is copied in one worker and dropped
// in another sets the other's count to zero, though others own the object. Main finds these objects before it
// forks. In a worker, when a count of one of them becomes zero, it is raised by so much that this does not
// happen often, and the object stays. Counts of objects that are made in the run are as ever.
// Memory is read only; main's is not changed.
// Called by src/runtime. Document: docs/kept.md. Test: tests/heap/kept_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace godwit::heap {

/// The objects to keep are those that this process has now. Other OS threads may allocate and free meanwhile.
/// Gives back why they cannot be found; empty: they were. Throws std::bad_alloc. Local; reads all memory that
/// main has written.
std::string find_kept();
/// In a process that was forked since: they stay from now on.
void keep();
/// Their blocks of counts that begin at [begin, end): addresses, rising. Each is | table | counts |, a word
/// each.
std::span<const std::uintptr_t> kept_in(std::uintptr_t begin, std::uintptr_t end) noexcept;
/// This process needs to know of them no more.
void forget_kept() noexcept;

}  // namespace godwit::heap
