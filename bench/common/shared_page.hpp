// shared_page<T>: one T that all workers of a run and their supervisor see.
//
// Made before godwit::run, so that the forked workers inherit the mapping. What lies in it is what
// benchmarks may write and expect others to read; everything else is private to a worker.
#pragma once

#include <sys/mman.h>

#include <new>
#include <system_error>

namespace bench {

template <class T>
class shared_page {
 public:
  shared_page() {
    void* at = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap of a shared page");
    value_ = new (at) T();
  }
  shared_page(const shared_page&) = delete;
  shared_page& operator=(const shared_page&) = delete;
  ~shared_page() { munmap(value_, sizeof(T)); }

  T* get() const noexcept { return value_; }
  T* operator->() const noexcept { return value_; }
  T& operator*() const noexcept { return *value_; }

 private:
  T* value_;
};

}  // namespace bench
