// Files of shared memory without a name, and the addresses that they are mapped at: what segments and the
// window have in common. And memory that no other process shares, for heaps of simulated hosts.
//
// Not the mapping itself (segment.cpp, window.cpp).
// Tests: tests/transport/segment_test.cpp, window_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace godwit::transport::shm {

/// No file may be larger than this.
std::uint64_t largest_file() noexcept;
/// Throws std::runtime_error with the cause: @p prefix begins its text, @p remedy says how to need less.
int make_memory_file(const char* name, std::uint64_t bytes, const std::string& prefix,
                     const std::string& remedy);
/// "/proc/PID/fd/N": who is not forked from the maker opens the file by it.
std::string path_of(int fd);

/// Inaccessible memory at this very address, or null.
void* reserve(std::uintptr_t at, std::uint64_t bytes) noexcept;
/// Bit i: so many bytes could be reserved at candidate i.
std::uint32_t free_among(std::span<const std::uintptr_t> candidates, std::uint64_t bytes) noexcept;
/// A core file of this process will hold of [@p p, @p p + @p bytes) only pages that are in memory, touched
/// by this process or another, and some between them: the system would make all others. In a handler of a
/// signal; others may go on. Cost: a look at each page of addresses.
void leave_untouched_out_of_core_file(std::byte* p, std::uint64_t bytes) noexcept;

inline constexpr const char* taken_meanwhile =
    "an address range that was free is taken now: another thread of the program maps memory at fixed "
    "addresses";

/// Memory of this process alone, all zero, of which a fork has a copy; only what is touched is there. Null:
/// it cannot be had.
std::byte* map_of_process(std::uint64_t bytes) noexcept;

}  // namespace godwit::transport::shm
