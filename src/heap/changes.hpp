// Lines about what threads have changed of main's memory (mains_blocks.hpp, mains_variables.hpp): each worker
// adds its own when it ends, and the last one prints them.
// Called by leaks.cpp. Document: docs/heap.md. Test: tests/heap/mains_blocks_test.cpp.
#pragma once

#include <atomic>
#include <cstdint>

namespace godwit::heap {

/// In memory that workers share. All bytes are zero while it is empty.
class change_list {
 public:
  /// In a worker: what it has changed.
  void add_own();
  /// After all workers have done that.
  void print() const;

 private:
  struct line {
    std::atomic<std::uint64_t> hash{0};              ///< of `text`; 0: not used. W who comes first, once
    std::atomic<std::uint32_t> workers{0};           ///< that have changed it. W all
    std::atomic<std::uint64_t> blocks{0}, bytes{0};  ///< of the worker that has changed most. W all
    char text[512];                                  ///< W who wrote the hash
  };
  void add(const char* text, std::uint64_t blocks, std::uint64_t bytes) noexcept;

  static constexpr unsigned most = 64;
  line lines_[most];
  std::atomic<std::uint32_t> others_{0};  ///< that found no room. W all
};

}  // namespace godwit::heap
