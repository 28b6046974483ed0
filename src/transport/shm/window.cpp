// See window.hpp.
#include "transport/shm/window.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "transport/shm/file_pages.hpp"
#include "transport/shm/memory_file.hpp"

namespace godwit::transport::shm {

namespace {

// Large gaps in plain and sanitized programs (docs/decisions/0005-addresses.md); the last for 39-bit systems.
// A thread's stack is searched for addresses of a heap there, and two numbers of 32 bits side by side should
// look like none, nor half an old address beside one: so neither half of these is a common number.
constexpr std::uintptr_t candidates[] = {0x20b3'c000'0000, 0x40b3'c000'0000, 0x10b3'c000'0000,
                                         0x20'c000'0000};

[[noreturn]] void fail(const window_use& use, const std::string& what) {
  throw std::runtime_error(use.prefix + what);
}

}  // namespace

void window::make_file(std::uint64_t bytes) {
  bytes_ = bytes;
  fd_ = make_memory_file(use_.file, bytes, use_.prefix, use_.remedy);
}

std::string window::file_path() const { return path_of(fd_); }

void window::open_file(std::uint64_t bytes, const std::string& path) {
  bytes_ = bytes;
  fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0)
    fail(use_,
         "cannot open the memory of another process on this host (" + path + "): " + std::strerror(errno));
}

std::uint32_t window::free_bases(std::uint64_t bytes) noexcept { return free_among(candidates, bytes); }

std::uint64_t window::largest(std::uint64_t bytes, std::uint32_t count) noexcept {
  for (; bytes >= std::uint64_t{256} << 20; bytes /= 4)
    if (bytes <= largest_file() && free_bases(bytes * count) != 0) return bytes;
  return 0;
}

void window::map(unsigned candidate) {
  void* const all = reserve(candidates[candidate], bytes_of_all());
  if (all == nullptr) fail(use_, taken_meanwhile);
  void* const p = static_cast<std::byte*>(all) + number_ * bytes_;
  if (mmap(p, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd_, 0) == MAP_FAILED) {
    const int error = errno;
    munmap(all, bytes_of_all());
    fail(use_, std::string("cannot map it: ") + std::strerror(error) + ": " + use_.remedy);
  }
  base_ = static_cast<std::byte*>(p);
  struct stat is {};
  if (fstat(fd_, &is) == 0) file_ = is.st_ino;
  madvise(all, bytes_of_all(), MADV_DONTDUMP);  // a core file would hold all of it, touched or not
}

void window::create(std::uint64_t bytes, bool keep_file) {
  make_file(bytes);
  const std::uint32_t free = free_bases(bytes);
  if (free == 0)
    fail(use_, "there is no free range of " + std::to_string(bytes >> 20) +
                   " MiB of addresses: raise the limit on address space (ulimit -v) if there is one, or " +
                   use_.remedy);
  map(static_cast<unsigned>(std::countr_zero(free)));
  if (!keep_file) {
    close(std::exchange(fd_, -1));
    return;
  }
  // Out of the way of programs that count on the lowest numbers.
  constexpr int high = 512;
  if (const int other = fcntl(fd_, F_DUPFD_CLOEXEC, high); other >= 0) close(std::exchange(fd_, other));
}

bool window::has_file() const noexcept {
  struct stat is {};
  if (fstat(fd_, &is) == 0 && is.st_ino == file_) return true;
  errno = EBADF;
  return false;
}

window::bytes_range window::written(std::uint64_t from, std::uint64_t end) const noexcept {
  if (!has_file()) return {from, end};
  const off_t data = lseek(fd_, static_cast<off_t>(from), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return {end, end};  // nothing is written behind
  if (data < 0) return {from, end};                   // the system does not tell
  const off_t hole = lseek(fd_, data, SEEK_HOLE);
  return {std::min(static_cast<std::uint64_t>(data), end), std::min(static_cast<std::uint64_t>(hole), end)};
}

bool window::make_private() noexcept {
  if (!has_file()) return false;
  return mmap(base_, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd_, 0) !=
         MAP_FAILED;
}

void window::destroy() noexcept {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  if (base_ == nullptr) return;
  munmap(base_of_all(), bytes_of_all());
  forget_files(base_of_all(), bytes_of_all());
  base_ = nullptr;
}

void window::forbid(std::byte* base, std::uint64_t bytes) noexcept {
  static_cast<void>(mprotect(base, bytes, PROT_NONE));
}

void window::discard(void* address, std::uint64_t bytes) noexcept {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t low = (reinterpret_cast<std::uintptr_t>(address) + page - 1) / page * page;
  const std::uintptr_t high = (reinterpret_cast<std::uintptr_t>(address) + bytes) / page * page;
  if (low >= high) return;
  void* const pages = reinterpret_cast<void*>(low);
  if (madvise(pages, high - low, MADV_REMOVE) == 0) return;
  const bool no_file = errno == EINVAL;  // memory of the process
  if (!no_file || madvise(pages, high - low, MADV_DONTNEED) != 0) std::memset(pages, 0, high - low);
}

void window::populate(void* address, std::uint64_t bytes) noexcept {
#ifndef MADV_POPULATE_WRITE
  constexpr int MADV_POPULATE_WRITE = 23;  // Linux 5.14
#endif
  static_cast<void>(madvise(address, bytes, MADV_POPULATE_WRITE));  // else each when it is touched
}

void window::put_into_core_file(const void* from, const void* to) noexcept {
  const auto page = static_cast<std::uintptr_t>(getpagesize());
  const std::uintptr_t low = reinterpret_cast<std::uintptr_t>(from) / page * page;
  madvise(reinterpret_cast<void*>(low), reinterpret_cast<std::uintptr_t>(to) - low, MADV_DODUMP);
}

}  // namespace godwit::transport::shm
