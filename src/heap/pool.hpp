// Runs of spans, of all workers of a host: taken and given back under one lock.
//
// Free runs that touch are joined. Which ones touch is told by the entries at both ends of a free run;
// free runs of similar length are in one list. Freed ones keep their pages, up to a limit; beyond it
// their pages go back to the system at once.
// Called by part.cpp. Protocol: docs/protocols/heap.md, HP2. Test: tests/heap/pool_test.cpp.
#pragma once

#include "heap/layout.hpp"

namespace godwit::heap::pool {

/// @p count spans; their first byte at a multiple of @p alignment, a power of two. Its kind is `large`
/// until the caller says otherwise. Null: there are no addresses left.
span* take(std::uint64_t count, std::uint64_t alignment = span_bytes) noexcept;
/// Back, the whole run.
void give(span* first) noexcept;
/// Make a large block's run longer, to @p count spans, where it is. False: it cannot be.
bool extend(span* first, std::uint64_t count) noexcept;

/// @p s is in no run that anybody has. A bounded search: false may mean that it was not found.
bool is_free(const span* s) noexcept;

/// When nobody allocates. Ends the run if the lists are broken.
void check_invariants() noexcept;

}  // namespace godwit::heap::pool
