// A value that all workers and the test share: a MAP_SHARED page made before run.
//
// Threads change it from any worker through the pointer, which is the same everywhere. T should consist of
// atomics. GoogleTest's own state lives in the supervising process only: threads count here, the test looks
// afterwards.
#pragma once

#include <new>
#include <stdexcept>
#include <sys/mman.h>

namespace support {

template <class T>
class shared {
 public:
  shared() {
    void* p = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("cannot map a shared page");
    value_ = new (p) T();
  }
  ~shared() { munmap(value_, sizeof(T)); }
  shared(const shared&) = delete;
  shared& operator=(const shared&) = delete;
  T* get() const noexcept { return value_; }
  T* operator->() const noexcept { return value_; }
  T& operator*() const noexcept { return *value_; }

 private:
  T* value_;
};

}  // namespace support
