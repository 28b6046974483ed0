// The frames of the calling thread, from the inside outwards, by the C++ runtime's unwinder. Allocates
// nothing. Cost: some 100 ns a frame. Used by: callers.cpp, interrupted_code.cpp, src/heap/record.cpp.
#pragma once

#include <cstdint>
#include <unwind.h>

namespace godwit::base {

/// Calls @p look(code, low) for each frame, the caller's first, until it says false: where the frame goes on,
/// and the address of its lower end ("CFA" where unwinders are). No frame of its own is among them.
template <class F>
[[gnu::always_inline]] inline void walk_stack(F look) noexcept {
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* f) noexcept {
        const bool more = (*static_cast<F*>(f))(static_cast<std::uintptr_t>(_Unwind_GetIP(frame)),
                                                static_cast<std::uintptr_t>(_Unwind_GetCFA(frame)));
        return more ? _URC_NO_REASON : _URC_END_OF_STACK;
      },
      &look);
}

}  // namespace godwit::base
