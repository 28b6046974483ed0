// See memory_file.hpp.
#include "transport/shm/memory_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/thread_sanitizer.hpp"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace godwit::transport::shm {

std::uint64_t largest_file() noexcept {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? limit.rlim_cur : ~std::uint64_t{0};
}

int make_memory_file(const char* name, std::uint64_t bytes, const std::string& prefix,
                     const std::string& remedy) {
  if (bytes > largest_file())
    throw std::runtime_error(prefix +
                             "the file size limit (ulimit -f) is below the size of the shared memory: raise "
                             "it, or " +
                             remedy);
  const int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0)
    throw std::runtime_error(prefix + "cannot create shared memory (memfd_create): " + std::strerror(errno));
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    close(fd);
    throw std::runtime_error(prefix + "cannot size shared memory to " + std::to_string(bytes >> 20) +
                             " MiB (virtual): " + std::strerror(error) + ": " + remedy);
  }
  return fd;
}

std::string path_of(int fd) { return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd); }

void* reserve(std::uintptr_t at, std::uint64_t bytes) noexcept {
  if (!base::thread_sanitizer_allows(at, bytes)) return nullptr;
  void* p = mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  if (p == reinterpret_cast<void*>(at)) return p;
  munmap(p, bytes);  // a kernel before 4.17 takes the address as a hint
  return nullptr;
}

std::uint32_t free_among(std::span<const std::uintptr_t> candidates, std::uint64_t bytes) noexcept {
  std::uint32_t free = 0;
  for (unsigned i = 0; i < candidates.size(); ++i)
    if (void* p = reserve(candidates[i], bytes); p != nullptr) {
      free |= 1u << i;
      munmap(p, bytes);
    }
  return free;
}

void leave_untouched_out_of_core_file(std::byte* p, std::uint64_t bytes) noexcept {
  madvise(p, bytes, MADV_DONTDUMP);
  const auto page = static_cast<std::uint64_t>(getpagesize());
  constexpr std::uint64_t most_between = 16;  // pages: each range becomes a mapping, whose number is limited
  unsigned char touched[2048];                // there is not much stack here
  std::uint64_t from = 0, to = 0;             // of the range that is being found
  const auto put = [&] {
    if (from != to) madvise(p + from * page, (to - from) * page, MADV_DODUMP);
  };
  const std::uint64_t all = bytes / page;
  for (std::uint64_t first = 0; first < all; first += sizeof touched) {
    const std::uint64_t n = std::min<std::uint64_t>(sizeof touched, all - first);
    if (mincore(p + first * page, n * page, touched) != 0) continue;
    for (std::uint64_t i = 0; i < n; ++i) {
      if ((touched[i] & 1) == 0) continue;
      if (first + i > to + most_between) {
        put();
        from = first + i;
      }
      to = first + i + 1;
    }
  }
  put();
}

std::byte* map_of_process(std::uint64_t bytes) noexcept {
  constexpr std::uintptr_t hint = 0x60b3'c000'0000;  // the same in each run, if that can be
  void* const p = mmap(reinterpret_cast<void*>(hint), bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  madvise(p, bytes, MADV_NOHUGEPAGE);
  return static_cast<std::byte*>(p);
}

}  // namespace godwit::transport::shm
