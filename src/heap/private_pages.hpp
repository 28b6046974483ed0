// The memory of this process that is its own and has been written: variables, stacks, the C library's heap,
// other private mappings. Not what it shares with others: files, and the run's own memory. Nor the stack that
// the calling OS thread's signal handlers run on: they have left registers of what they interrupted there.
//
// What counts owners (kept.hpp) and points to blocks (roots.hpp, leaks.hpp) is looked for there.
// Test: tests/heap/private_pages_test.cpp.
#pragma once

#include "stack/stack.hpp"

#include <functional>

namespace godwit::heap {

/// Call f(stretch, known) for each stretch of such pages outside of @p without, by their addresses, until it
/// gives back false. Not @p known: the system does not tell which pages of the stretch have been written.
/// False: f did, or the system does not tell what is mapped. Other OS threads may map and unmap meanwhile.
/// Cost: 8 bytes read for each page of addresses; the pages themselves are not touched.
bool each_private_stretch(const stack::range& without,
                          const std::function<bool(const stack::range&, bool known)>& f);

}  // namespace godwit::heap
