// A heap for tests, without a run: in shared memory of this process and those that it forks.
#pragma once

#include "heap/heap.hpp"
#include "heap/layout.hpp"
#include "heap/malloc.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

namespace heap_test {

namespace heap = godwit::heap;

class memory {
 public:
  explicit memory(std::uint32_t workers, std::uint64_t bytes = std::uint64_t{64} << 30) : bytes_(bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) std::abort();
    base_ = static_cast<std::byte*>(p);
    heap::begin(base_, bytes, workers);
  }
  ~memory() {
    heap::end();
    munmap(base_, bytes_);
  }
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;

  static heap::part& part(std::uint32_t number) { return heap::here.all->parts[number]; }

 private:
  std::byte* base_ = nullptr;
  std::uint64_t bytes_;
};

}  // namespace heap_test
