// What a signal has interrupted, and who called it: of the program, not of the C and C++ libraries.
// For handlers of signals: allocates nothing. Where the frames of a stack are destroyed it ends, or the
// process does, by the signal that it handles. Called by: blocking_calls.cpp, src/runtime/faults.cpp.
// Tests: tests/api/death_test.cpp, tests/sim/blocking_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace godwit::base {

// Of a handler's third argument: the instruction, the stack pointer, and where the function returns to that
// has just been called. 0: not known.
std::uintptr_t program_counter(const void* context) noexcept;
std::uintptr_t stack_pointer(const void* context) noexcept;
std::uintptr_t return_address(const void* context) noexcept;

/// @p interrupted, where the handler's frames end, and return addresses of its callers, the innermost first,
/// into @p to, as far as they are no library's. @p end: of the stack, above which frames may have left it.
/// How many.
std::size_t find_callers(std::uintptr_t interrupted, std::uintptr_t end,
                         std::span<std::uintptr_t> to) noexcept;

}  // namespace godwit::base
