// Shared memory without a name or a fixed address, inherited by forked processes: the rings of the trace.
//
// Zero at first; pages cost memory only when touched. Not the segments of workers (segment.hpp).
// Called by: src/runtime/trace_output.cpp, before the fork. Test: tests/transport/pages_test.cpp.
#pragma once

#include <cstddef>

namespace godwit::transport::shm {

class shared_pages {
 public:
  shared_pages() = default;
  /// Throws std::runtime_error with the cause; @p remedy ends its text. One system call.
  shared_pages(std::size_t bytes, const char* remedy);
  ~shared_pages();
  shared_pages(const shared_pages&) = delete;
  shared_pages& operator=(const shared_pages&) = delete;
  shared_pages(shared_pages&& other) noexcept;
  shared_pages& operator=(shared_pages&& other) noexcept;

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace godwit::transport::shm
