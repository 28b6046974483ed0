// Containers of what a worker keeps for itself. Their memory comes from the C library, not from the heap that
// threads share (src/heap): a word of it that is left on a thread's stack does not hold the thread on its
// host (docs/heap.md, Several hosts). Test: tests/sim/heaps_test.cpp.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
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
    if constexpr (alignof(T) > alignof(std::max_align_t)) {  // behind the address of the whole
      void* const whole = own_malloc(n * sizeof(T) + alignof(T) + sizeof(void*));
      if (whole == nullptr) throw std::bad_alloc();
      const auto end = reinterpret_cast<std::uintptr_t>(whole) + sizeof(void*) + alignof(T) - 1;
      auto* const at = reinterpret_cast<T*>(end / alignof(T) * alignof(T));
      reinterpret_cast<void**>(at)[-1] = whole;
      return at;
    } else {
      void* const at = own_malloc(n * sizeof(T));
      if (at == nullptr) throw std::bad_alloc();
      return static_cast<T*>(at);
    }
  }
  void deallocate(T* at, std::size_t) noexcept {
    if constexpr (alignof(T) > alignof(std::max_align_t))
      std::free(reinterpret_cast<void**>(at)[-1]);
    else
      std::free(at);
  }
  friend bool operator==(own_allocator, own_allocator) noexcept { return true; }
};

template <class T>
using own_vector = std::vector<T, own_allocator<T>>;
template <class T>
using own_deque = std::deque<T, own_allocator<T>>;
template <class T>
using own_list = std::list<T, own_allocator<T>>;

struct own_free {
  void operator()(std::byte* at) const noexcept { std::free(at); }
};
/// Bytes that nobody has touched yet.
using own_bytes = std::unique_ptr<std::byte[], own_free>;
inline own_bytes own_room(std::size_t n) {
  own_bytes room(static_cast<std::byte*>(own_malloc(n)));
  if (room == nullptr) throw std::bad_alloc();
  return room;
}

}  // namespace godwit::base
