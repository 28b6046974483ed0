// Variables of the program that threads have changed: globals, and static ones of functions. Each worker has
// a copy of them, so neither main nor another worker sees the change.
//
// With GODWIT_CHECK_HEAP in the environment a worker that begins copies the writable memory of the program's
// file, and when it ends, it compares. Left out are variables of this library, of C's and of C++'s, by their
// names, and all where the program has no table of symbols.
// Called by src/runtime and changes.cpp. Document: docs/heap.md. Test: tests/heap/mains_blocks_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace godwit::heap {

/// In a worker that has been forked. Reads all of the program's variables.
void remember_mains_variables();
/// Names and bytes of those that have changed since. Reads all that remember_mains_variables has read, and
/// the program's table of symbols.
std::map<std::string, std::uint64_t> changed_variables();

}  // namespace godwit::heap
