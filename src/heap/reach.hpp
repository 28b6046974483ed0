// What is left when a run ends, in a heap that main keeps: blocks that main can still reach stay, all other
// blocks of threads are freed.
//
// As leak checkers do it: any word that could be a pointer to a block or into it leads to the block, and from
// there on. It is looked for in what main made in the heap, and, if blocks are missing then, in the memory of
// the process (roots.hpp). What main made is its own to free.
// Called by src/runtime, after a run. Document: docs/heap.md. Test: tests/heap/reach_test.cpp.
#pragma once

#include "transport/shm/window.hpp"

namespace godwit::heap {

/// When nobody allocates, in a process of one OS thread. @p memory: what the heap lies in. If there is no
/// memory to find out, nothing is freed. Cost: nothing if no block of a thread is in use; else a pass over
/// the blocks that are kept, and over the memory of the process if main's do not lead to all of them.
void free_unreachable(const transport::shm::window& memory) noexcept;

}  // namespace godwit::heap
