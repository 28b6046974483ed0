// Containers of what a worker keeps for itself. Their memory comes from the C library, not from the heap that
// threads share (src/heap): a word of it that is left on a thread's stack does not hold the thread on its
// host (docs/heap.md, Several hosts). Test: tests/sim/heaps_test.cpp.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <deque>
#include <new>
#include <vector>

namespace godwit::base {

using malloc_function = void*(std::size_t bytes);
/// W src/heap, before main.
inline constinit malloc_function* own_malloc = std::malloc;

template <class T>
struct own_allocator {
  using value_type = T;
  own_allocator() = default;
  template <class U>
  own_allocator(const own_allocator<U>&) noexcept {}
  T* allocate(std::size_t n) {
    static_assert(alignof(T) <= alignof(std::max_align_t));
    void* const at = own_malloc(n * sizeof(T));
    if (at == nullptr) throw std::bad_alloc();
    return static_cast<T*>(at);
  }
  void deallocate(T* at, std::size_t) noexcept { std::free(at); }
  friend bool operator==(own_allocator, own_allocator) noexcept { return true; }
};

template <class T>
using own_vector = std::vector<T, own_allocator<T>>;
template <class T>
using own_deque = std::deque<T, own_allocator<T>>;

}  // namespace godwit::base
