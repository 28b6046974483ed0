// Shared memory without a name or a fixed address, inherited by forked processes: the rings of the trace.
//
// Zero at first; pages cost memory only when touched. Not the segments of workers (segment.hpp).
// Called by: src/runtime/trace_output.cpp, before the fork. Test: tests/transport/pages_test.cpp.
#pragma once

#include <cstddef>
#include <memory>

namespace godwit::transport::shm {

class shared_pages {
 public:
  shared_pages() = default;
  /// Throws std::runtime_error with the cause; @p remedy ends its text. One system call.
  shared_pages(std::size_t bytes, const char* remedy);
  std::byte* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return data_.get_deleter().bytes; }

 private:
  struct unmap {
    std::size_t bytes;
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte, unmap> data_;
};

}  // namespace godwit::transport::shm
