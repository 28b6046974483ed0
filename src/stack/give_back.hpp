// Pages of private memory whose content nobody needs any more go back to the system. For the simulator, which
// has the memory of many workers in one process. Test: tests/stack/give_back_test.cpp.
#pragma once

#include <cstddef>

namespace godwit::stack {

/// The whole pages in [@p low, @p low + @p bytes) read as zero from now on, and take no memory until somebody
/// writes there. Cost: a system call, also in a simulated run (blocking_calls.hpp).
void give_back(std::byte* low, std::size_t bytes) noexcept;

}  // namespace godwit::stack
