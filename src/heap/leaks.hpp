// What threads allocated and nobody freed, found at the end of a run as leak checkers find it.
//
// Every worker, when it ends, follows what its own memory points to: its globals, what the C library's malloc
// gave it, and from there blocks of the heap, also by pointers into their middle. A pointer may be any
// aligned word that looks like one. What no worker reaches has leaked. Stacks are not looked at, as all
// threads have ended, and neither is global memory.
// Called by src/runtime at the end of a worker. Document: docs/heap.md. Test: tests/heap/leaks_test.cpp.
#pragma once

#include "stack/stack.hpp"

namespace godwit::heap {

/// In a worker whose allocations are recorded, at its end, on the stack @p own: the last one of the heap's
/// workers prints what has leaked, and what threads have changed of main's (mains_blocks.hpp). Else nothing.
/// Reads all private memory of the process that it has touched; finding lines takes up to some seconds.
void report_leaks(const stack::range& own);

}  // namespace godwit::heap
