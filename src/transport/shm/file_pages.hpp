// Pages of a file in place of pages of the window: what runtime/map_file.cpp does in every worker.
//
// Test: tests/global/map_file_test.cpp. Document: docs/decisions/0018-mapped-files.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::transport::shm {

/// From @p at on, a multiple of pages in the window, this process sees the first @p bytes of file @p fd, and
/// cannot write them. False: errno says why. What was there is not there any more.
bool map_read_only(std::byte* at, std::uint64_t bytes, int fd) noexcept;

/// It was called for pages that hold @p at. So what others see there, also the companion of this worker's
/// host, is not what this process sees. Cost: local, a load where there are no files.
bool is_of_file(const void* at) noexcept;

/// The window that begins at @p base is unmapped.
void forget_files(const std::byte* base, std::uint64_t bytes) noexcept;

}  // namespace godwit::transport::shm
