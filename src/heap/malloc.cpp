// malloc and its family: of the heap in a worker, else the C library's.
//
// A program that is linked with this library has these functions in front of the C library's, like any
// allocator that replaces it; operator new and the libraries that the program uses call them. They go on
// to the C library's own unless the calling OS thread is a worker with a part (heap::enter). What is
// freed says by its address whose it is, whoever frees it.
// What the C library and the loader allocate for themselves -- FILE, DIR, locales, what dlopen gives --
// belongs to its process: asked for from their code, memory comes from the C library. Functions of the C
// library whose result is plain bytes for the caller (strdup, asprintf) are therefore here as well.
// They are weak: a program that brings an allocator of its own, or is linked with -static, has that one. One
// that was preloaded comes behind the program's own functions, so it is where calls go on to (heap::is_ours).
// Nothing else is in this file: what finds malloc elsewhere does not link it.
// Document: docs/decisions/0024-one-heap.md. Test: tests/heap/malloc_test.cpp.
#include "heap/malloc.hpp"

#include "heap/part.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <new>
#include <unistd.h>
#include <utility>

#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GODWIT_OTHER_MALLOC
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define GODWIT_OTHER_MALLOC
#endif
#endif

namespace godwit::heap {

#ifndef GODWIT_OTHER_MALLOC

namespace {

// The C library's, by the names that it has for who replaces them.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void __libc_free(void* at);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* at, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

[[gnu::noinline, gnu::cold]] void find_next() noexcept;

/// Is @p f a function of this very object? It is one of ours then.
bool is_here(void* f) noexcept {
  Dl_info its, own;
  return dladdr(f, &its) != 0 && dladdr(reinterpret_cast<void*>(find_next), &own) != 0 &&
         its.dli_fbase == own.dli_fbase;
}
/// What everybody calls, if that is not ours: in a library that does not export these, or comes behind
/// another allocator, they are called from inside of it only. Else the next one.
template <class F>
void find(F*& to, const char* name, F* otherwise) noexcept {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found != nullptr && is_here(found)) found = dlsym(RTLD_NEXT, name);
  to = found != nullptr ? reinterpret_cast<F*>(found) : otherwise;
}
[[gnu::noinline, gnu::cold]] void find_next() noexcept {
  next_functions f;
  find(f.free, "free", __libc_free);
  find(f.calloc, "calloc", __libc_calloc);
  find(f.realloc, "realloc", __libc_realloc);
  find(f.memalign, "memalign", __libc_memalign);
  find(f.usable_size, "malloc_usable_size",
       static_cast<std::size_t (*)(void*)>([](void*) -> std::size_t { return 0; }));
  find(f.malloc, "malloc", __libc_malloc);
  next_ = f;
}
[[gnu::always_inline]] inline const next_functions& next() noexcept {
  if (next_.malloc == nullptr) [[unlikely]]
    find_next();
  return next_;
}

bool is_power_of_two(std::size_t v) noexcept { return v != 0 && (v & (v - 1)) == 0; }

[[gnu::always_inline]] inline void* found(void* at) noexcept {
  if (at == nullptr) [[unlikely]]
    errno = ENOMEM;
  return at;
}

/// Where who called from @p code allocates. Null: the C library's malloc.
[[gnu::always_inline]] inline part* part_for(const void* code) noexcept {
  part* const p = mine;
  if (p == nullptr || here.c_library.holds(code) || here.loader.holds(code)) return nullptr;
  return p;
}

[[gnu::always_inline]] inline void* aligned(std::size_t alignment, std::size_t bytes) noexcept {
  return mine != nullptr ? found(allocate_aligned(*mine, bytes, alignment))
                         : next().memalign(alignment, bytes);
}

}  // namespace

#endif

}  // namespace godwit::heap

#ifndef GODWIT_OTHER_MALLOC

using namespace godwit::heap;

#define GODWIT_MALLOC extern "C" [[gnu::weak, gnu::visibility("default"), GODWIT_IN_MALLOC]]

#define GODWIT_PART() part_for(__builtin_return_address(0))  // of who called malloc

GODWIT_MALLOC void* malloc(std::size_t bytes) noexcept {
  part* const p = GODWIT_PART();
  if (p == nullptr) return next().malloc(bytes);
  return found(allocate(*p, bytes));
}

GODWIT_MALLOC void free(void* at) noexcept {
  if (!here.holds(at)) return next().free(at);
  free(mine, at);
}

GODWIT_MALLOC void* calloc(std::size_t count, std::size_t each) noexcept {
  part* const p = GODWIT_PART();
  if (p == nullptr) return next().calloc(count, each);
  std::size_t bytes = 0;
  return found(__builtin_mul_overflow(count, each, &bytes) ? nullptr : allocate_zero(*p, bytes));
}

GODWIT_MALLOC void* realloc(void* at, std::size_t bytes) noexcept {
  if (at == nullptr) {
    part* const p = GODWIT_PART();
    return p == nullptr ? next().malloc(bytes) : found(allocate(*p, bytes));
  }
  if (!here.holds(at)) return next().realloc(at, bytes);  // made before the run: it stays where it belongs
  if (bytes == 0) {
    free(at);
    return nullptr;
  }
  if (mine != nullptr) return found(reallocate(*mine, at, bytes));
  void* const to = next().malloc(bytes);  // not a worker
  if (to == nullptr) return nullptr;
  std::memcpy(to, at, std::min<std::size_t>(bytes, usable_bytes(at)));
  free(at);
  return to;
}

GODWIT_MALLOC void* reallocarray(void* at, std::size_t count, std::size_t each) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes)) return found(nullptr);
  return realloc(at, bytes);
}

GODWIT_MALLOC void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return aligned(alignment, bytes);
}
GODWIT_MALLOC void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return aligned(alignment, bytes);
}
GODWIT_MALLOC int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) noexcept {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int error = errno;
  void* const at = aligned(alignment, bytes);
  errno = error;
  if (at == nullptr) return ENOMEM;
  *to = at;
  return 0;
}
GODWIT_MALLOC std::size_t malloc_usable_size(void* at) noexcept {
  return here.holds(at) ? usable_bytes(at) : next().usable_size(at);
}
GODWIT_MALLOC void* valloc(std::size_t bytes) noexcept {
  return aligned(static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), bytes);
}
GODWIT_MALLOC void* pvalloc(std::size_t bytes) noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::size_t with_rest = 0;
  if (__builtin_add_overflow(bytes, page - 1, &with_rest)) return found(nullptr);
  return aligned(page, with_rest / page * page);
}

// Plain bytes that the C library makes for its caller.

GODWIT_MALLOC char* strndup(const char* from, std::size_t most) noexcept {
  const std::size_t n = strnlen(from, most);
  auto* const to = static_cast<char*>(malloc(n + 1));
  if (to == nullptr) return nullptr;
  to[n] = '\0';
  return static_cast<char*>(std::memcpy(to, from, n));
}
GODWIT_MALLOC char* strdup(const char* from) noexcept { return strndup(from, std::strlen(from)); }
GODWIT_MALLOC int vasprintf(char** to, const char* format, std::va_list arguments) noexcept {
  std::va_list again;
  va_copy(again, arguments);
  const int n = std::vsnprintf(nullptr, 0, format, arguments);
  *to = n < 0 ? nullptr : static_cast<char*>(malloc(static_cast<std::size_t>(n) + 1));
  const int written =
      *to == nullptr ? -1 : std::vsnprintf(*to, static_cast<std::size_t>(n) + 1, format, again);
  va_end(again);
  return written;
}
GODWIT_MALLOC int asprintf(char** to, const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  const int n = vasprintf(to, format, arguments);
  va_end(arguments);
  return n;
}
// The same where _FORTIFY_SOURCE is on.
GODWIT_MALLOC int __vasprintf_chk(char** to, int, const char* format, std::va_list arguments) noexcept {
  return vasprintf(to, format, arguments);
}
GODWIT_MALLOC int __asprintf_chk(char** to, int, const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  const int n = vasprintf(to, format, arguments);
  va_end(arguments);
  return n;
}

#endif
