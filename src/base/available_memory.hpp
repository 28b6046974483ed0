// How much memory this process and its children can still have.
//
// Called by src/runtime before a run. Test: tests/base/available_memory_test.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace godwit::base {

/// Bytes: what the system can give without swapping, or less where a control group of this process has a
/// limit (memory.max, memory.limit_in_bytes). ~0: the system does not tell. @p root stands before /proc and
/// /sys (tests). Reads some small files.
std::uint64_t available_memory(const std::string& root = {});

}  // namespace godwit::base
