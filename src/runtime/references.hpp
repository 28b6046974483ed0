// Closures that are copied to other workers, whose stacks move: the frames of the caller stay. Test:
// tests/api/fault_test.cpp.
#pragma once

#include <cstddef>
#include <string>

namespace godwit::runtime {

/// One of the @p bytes bytes at @p in, taken as words, is an address of this worker's stack. False where
/// every address means the same everywhere.
bool refers_to_stack(const void* in, std::size_t bytes) noexcept;
/// The end of the run, for that reason. @p what was called at @p where.
[[noreturn]] void end_for_reference(const char* what, const std::string& where) noexcept;

}  // namespace godwit::runtime
