// Who called: the return addresses on the stack of the calling thread, for what is looked up later
// (code_place.hpp).
//
// Called by: src/sched, where a thread waits and a trace is written. Test: tests/base/callers_test.cpp.
#pragma once

#include <array>
#include <cstdint>

namespace godwit::base {

/// The innermost first; zeros follow where there were no more.
struct callers {
  std::array<std::uintptr_t, 6> code{};
};

/// Those of the calling thread, from the function in whose frame @p variable lies outwards: so what that has
/// called is passed over. So are callers in the library, where it is a file of its own and not part of the
/// program's. Frames from address @p end on may be gone, and are not looked at. Does not allocate. Cost: some
/// 100 ns a frame.
callers callers_of(const void* variable, std::uintptr_t end) noexcept;

}  // namespace godwit::base
