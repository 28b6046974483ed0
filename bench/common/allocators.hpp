// Allocators that are compared: malloc and free under one pair of names each.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>

extern "C" {
void* __libc_malloc(std::size_t);
void __libc_free(void*);
}

namespace bench {

/// The program's: in a run that has one, the heap that its workers share.
struct program_malloc {
  static void* allocate(std::size_t n) { return std::malloc(n); }
  static void release(void* p) { std::free(p); }
};
struct glibc_malloc {
  static void* allocate(std::size_t n) { return __libc_malloc(n); }
  static void release(void* p) { __libc_free(p); }
};
/// Loaded apart: linked, it would be this program's malloc.
struct mimalloc {
  static inline void* (*allocate)(std::size_t) = nullptr;
  static inline void (*release)(void*) = nullptr;
  static bool load() {
    void* const library = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    allocate = reinterpret_cast<void* (*)(std::size_t)>(dlsym(library, "mi_malloc"));
    release = reinterpret_cast<void (*)(void*)>(dlsym(library, "mi_free"));
    return allocate != nullptr && release != nullptr;
  }
};

}  // namespace bench
