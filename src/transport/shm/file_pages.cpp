// See file_pages.hpp.
#include "transport/shm/file_pages.hpp"

#include "base/lock.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <sys/mman.h>

namespace godwit::transport::shm {

namespace {

struct pages {
  std::uintptr_t begin, end;
  bool holds(std::uintptr_t at) const noexcept { return begin <= at && at < end; }
};

// Of this process; W and R under the lock, the number R without.
base::short_lock lock;
pages files[256];  // the last one stands for all that lie between it and further ones, too
std::atomic<std::size_t> count{0};

pages pages_at(const std::byte* at, std::uint64_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  return {begin, begin + bytes};
}

void remember(const pages& f) noexcept {
  const std::lock_guard locked(lock);
  const std::size_t n = count.load(std::memory_order_relaxed);
  pages& last = files[std::size(files) - 1];
  if (std::any_of(files, files + n, [&](const pages& g) { return g.holds(f.begin); }))
    return;  // another worker
  if (n < std::size(files)) {
    files[n] = f;
    count.store(n + 1, std::memory_order_relaxed);
  } else {
    last = {std::min(last.begin, f.begin), std::max(last.end, f.end)};
  }
}

}  // namespace

bool map_read_only(std::byte* at, std::uint64_t bytes, int fd) noexcept {
  remember(pages_at(at, bytes));
  return mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED;
}

bool is_of_file(const void* at) noexcept {
  if (count.load(std::memory_order_relaxed) == 0) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const std::lock_guard locked(lock);
  return std::any_of(files, files + count.load(std::memory_order_relaxed),
                     [=](const pages& f) { return f.holds(address); });
}

void forget_files(const std::byte* base, std::uint64_t bytes) noexcept {
  const pages window = pages_at(base, bytes);
  const std::lock_guard locked(lock);
  pages* const end = files + count.load(std::memory_order_relaxed);
  count.store(static_cast<std::size_t>(
                  std::remove_if(files, end, [&](const pages& f) { return window.holds(f.begin); }) - files),
              std::memory_order_relaxed);
}

}  // namespace godwit::transport::shm
