// The memory of this process that pointers into the heap may lie in: its private pages (private_pages.hpp),
// and registers.
// Called by reach.cpp. Test: tests/heap/reach_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace godwit::heap {

/// Call f with the words of all that memory, piece by piece, until it gives back false. The pieces are
/// copies. Pages that were never touched are left out, and what lies on the calling OS thread's stack below
/// its frames. False: the system does not show it (/proc), and f has not seen all. Throws
/// std::runtime_error: no memory. Cost: 8 bytes read for each page of addresses, and all pages in use.
bool each_root(const std::function<bool(std::span<const std::uintptr_t>)>& f);

}  // namespace godwit::heap
