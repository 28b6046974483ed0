// See stack.hpp.
#include "stack/stack.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.hpp"
#include "base/valgrind.hpp"

extern "C" [[gnu::weak]] void __asan_unpoison_memory_region(void const volatile* address, std::size_t size);

namespace godwit::stack {

namespace {

std::atomic<std::uint32_t> mapped{0};  // W and R all: stacks of map_private

/// For the next @p bytes, if they are free. Closures are searched for addresses of stacks. Two numbers of 32
/// bits side by side should look like none: the lower half of these is no number that is common.
std::uintptr_t next_place(std::size_t bytes) noexcept {
  constexpr std::uintptr_t half = std::uintptr_t{1} << 31;
  static std::atomic<std::uintptr_t> next{0x6ab3'0000'0000 | half};
  std::uintptr_t at = next.load(std::memory_order_relaxed), begin = 0;
  do begin = ((at + bytes) & half) != 0 ? at : ((at >> 32) + 1) << 32 | half;
  while (!next.compare_exchange_weak(at, begin + bytes, std::memory_order_relaxed));
  return begin;
}

}  // namespace

std::byte* map_private(std::size_t bytes) noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* p = mmap(reinterpret_cast<void*>(next_place(bytes + page)), bytes + page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    base::fatal(
        "cannot map a stack of %zu bytes: %s. If memory is not short, perhaps the number of mappings is "
        "(sysctl vm.max_map_count)",
        bytes, std::strerror(errno));
  if (mapped.fetch_add(1, std::memory_order_relaxed) < protected_at_most && mprotect(p, page, PROT_NONE) != 0)
    base::fatal(
        "cannot protect the end of a stack of %zu bytes: %s. A process may have so many mappings "
        "only, and each stack takes two: raise the limit (sysctl vm.max_map_count)",
        bytes, std::strerror(errno));
  // The shadow outlives a mapping: another stack may have lain here.
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(p, bytes + page);
  std::byte* usable = static_cast<std::byte*>(p) + page;
  if (base::on_valgrind()) {  // its number for the stack: where only a stack that is all but full would write
    const auto at = reinterpret_cast<std::uintptr_t>(usable);
    *reinterpret_cast<unsigned*>(usable) = base::valgrind_stack(at, at + bytes);
  }
  return usable;
}

void unmap_private(std::byte* low, std::size_t bytes) noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (base::on_valgrind()) {
    const auto at = reinterpret_cast<std::uintptr_t>(low);
    base::valgrind_bytes(at, at + sizeof(unsigned));
    base::valgrind_stack_gone(*reinterpret_cast<unsigned*>(low));
  }
  mapped.fetch_sub(1, std::memory_order_relaxed);
  munmap(low - page, bytes + page);
}

range whole_system_stack() noexcept {
  pthread_attr_t a;
  if (pthread_getattr_np(pthread_self(), &a) != 0) return {};
  void* address = nullptr;
  std::size_t size = 0;
  const bool ok = pthread_attr_getstack(&a, &address, &size) == 0;
  pthread_attr_destroy(&a);
  if (!ok) return {};
  const auto low = reinterpret_cast<std::uintptr_t>(address);
  return {low, low + size};
}

range system_stack() noexcept {
  if (getpid() != static_cast<pid_t>(syscall(SYS_gettid))) return {};
  const range whole = whole_system_stack();
  if (whole.high == 0) return {};
  // The system's end is where the stack may grow to; only what is mapped can be protected: from a little
  // below here.
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) / page * page;
  return {here > whole.low ? here : whole.low, whole.high};
}

void protect(const range& r) noexcept {
  if (r.high > r.low) mprotect(reinterpret_cast<void*>(r.low), r.high - r.low, PROT_READ);
}

bool take_away(const range& r) noexcept {
  return mprotect(reinterpret_cast<void*>(r.low), r.high - r.low, PROT_NONE) == 0;
}

bool open_page(void* at, bool writable, bool code) noexcept {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto low = reinterpret_cast<std::uintptr_t>(at) / page * page;
  const int access = PROT_READ | (writable ? PROT_WRITE : 0) | (code ? PROT_EXEC : 0);
  return mprotect(reinterpret_cast<void*>(low), page, access) == 0;
}

}  // namespace godwit::stack
