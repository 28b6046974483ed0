// own_private_heap: forked siblings would hand out the same heap addresses for different data; here each gets
// its own.
//
// The kernel puts new mappings into the highest gap that fits. So: fill all gaps above the range with
// inaccessible reservations (address space only), stop the program break from growing, and use up what the C
// library still has free in the inherited heap. From then on whatever is allocated lies in the range, and a
// pointer that came with a migrated stack points to nothing. A diagnostic, not a wall: what is larger than a
// range spills into the next.
// Uses malloc's public behaviour only; another malloc that maps its memory works as well. Test:
// fault_test.cpp.
#include "stack/stack.hpp"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread_sanitizer.hpp"
#include "base/valgrind.hpp"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

extern "C" {
[[gnu::weak]] void __asan_unpoison_memory_region(void const volatile* address, std::size_t size);
}

namespace godwit::stack {

namespace {

/// The second one where the kernel maps nothing above the first: without a limit on the stack (ulimit -s
/// unlimited) it keeps most of the addresses for that.
constexpr std::uintptr_t heaps_lows[] = {0x6000'0000'0000, 0x800'0000'0000};
constexpr std::uintptr_t heaps_bytes = 0x800'0000'0000;  // 8 TiB for all workers together
constexpr std::uintptr_t largest_heap = 64ull << 30;

bool reserve(std::uintptr_t low, std::uintptr_t high) noexcept {
  void* p = mmap(reinterpret_cast<void*>(low), high - low, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (p == MAP_FAILED) return false;
  madvise(p, high - low, MADV_DONTDUMP);  // gdb would write tens of terabytes of zeros into a core file
  return true;
}

/// Where heaps can lie: below what the kernel maps next. 0: nowhere, it does not map from above downwards.
std::uintptr_t choose_heaps_low() noexcept {
  const auto map = [] {
    return mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  };
  void *const first = map(), *const second = map();
  if (first != MAP_FAILED) munmap(first, 1);
  if (second != MAP_FAILED) munmap(second, 1);
  if (first == MAP_FAILED || second == MAP_FAILED || second > first) return 0;
  for (const std::uintptr_t low : heaps_lows)
    if (reinterpret_cast<std::uintptr_t>(second) >= low + heaps_bytes) return low;
  return 0;
}

/// Fill every gap between mappings above @p from. Reads the list of mappings without allocating.
bool fill_gaps_above(std::uintptr_t from) noexcept {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  static char text[256 << 10];  // static: the heap must not be touched yet
  std::size_t used = 0;
  for (;;) {
    const ssize_t n = read(fd, text + used, sizeof text - 1 - used);
    if (n <= 0) break;
    used += static_cast<std::size_t>(n);
  }
  close(fd);
  if (used == sizeof text - 1) return false;  // thousands of mappings: leave it
  text[used] = '\0';
  std::uintptr_t end_of_last = from;
  for (const char* line = text; *line != '\0';) {
    char* next = nullptr;
    const std::uintptr_t low = std::strtoull(line, &next, 16);
    const std::uintptr_t high = *next == '-' ? std::strtoull(next + 1, &next, 16) : 0;
    if (high == 0) return false;
    if (low >= from && high >> 63 != 0) break;    // vsyscall, the kernel's
    if (low < from && high > from) return false;  // something lies where the heaps should be
    if (low > end_of_last && low > from && !reserve(end_of_last, low)) return false;
    if (high > end_of_last) end_of_last = high;
    while (*next != '\0' && *next != '\n') ++next;
    line = *next == '\n' ? next + 1 : next;
  }
  return true;
}

/// Allocate and keep what is free outside the range @p mine, so that nobody gets it: below @p end, where the
/// C library has its heap, and what other allocators hold in reserve elsewhere (some of them cannot be
/// steered at all: not without end).
void use_up_old_heap(std::uintptr_t end, const range& mine) noexcept {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 30);  // probes of any size must see the old heap first
#endif
  constexpr unsigned most_blocks = 20'000;
  constexpr std::size_t most_elsewhere = 256 << 20;
  unsigned blocks = 0;
  std::size_t elsewhere = 0;
  // Sizes of all classes that an allocator may have: eight or more for each doubling.
  constexpr std::size_t every_class = 1040;  // below there are blocks that serve one size only
  for (std::size_t size = 1 << 20; size >= 16;
       size = size > every_class ? std::max(size - size / 8, every_class) : size - 16) {
    for (; blocks < most_blocks && elsewhere < most_elsewhere; ++blocks) {
      void* p = std::malloc(size);
      if (p == nullptr) break;
      const auto at = reinterpret_cast<std::uintptr_t>(p);
      if (mine.holds(at)) {
        std::free(p);
        break;
      }
      if (at >= end) elsewhere += size;
    }
  }
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
}

}  // namespace

bool steers_heaps() noexcept {
  if (__asan_unpoison_memory_region != nullptr || base::on_thread_sanitizer()) return false;
  return !base::runs_under_valgrind();  // memcheck keeps a record for each page that would be filled, too
}

range own_private_heap(std::uint32_t number, std::uint32_t count, bool used_by_threads) noexcept {
  if (!steers_heaps()) return {};
  std::uintptr_t size = heaps_bytes / count / (2 << 20) * (2 << 20);
  if (size > largest_heap) size = largest_heap;
  const std::uintptr_t heaps_low = choose_heaps_low();
  if (heaps_low == 0) return {};
  const range mine{heaps_low + number * size, heaps_low + (number + 1) * size};
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto top = (reinterpret_cast<std::uintptr_t>(sbrk(0)) + page - 1) / page * page;
  if (!reserve(top, top + page) || !fill_gaps_above(mine.high)) return {};
  if (!used_by_threads) return mine;
  use_up_old_heap(top, mine);
  void* probe = std::malloc(256 << 10);  // an emulator or another malloc may place memory as it likes
  const bool steered = mine.holds(reinterpret_cast<std::uintptr_t>(probe));
  std::free(probe);
  return steered ? mine : range{};
}

}  // namespace godwit::stack
