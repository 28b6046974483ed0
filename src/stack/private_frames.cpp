// See private_frames.hpp.
#include "stack/private_frames.hpp"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace godwit::stack {

namespace {

void* at(std::uintptr_t a) noexcept { return reinterpret_cast<void*>(a); }

/// Not by the C library's function: UCX, which MPICH uses, puts one in its place that forgets where to.
bool move_pages(void* from, std::size_t bytes, void* to) noexcept {
  return syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != -1;
}

/// Null: no memory.
void* map(void* where, std::size_t bytes, int protection) noexcept {
  void* p = mmap(where, bytes, protection,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (where != nullptr ? MAP_FIXED : 0), -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

}  // namespace

bool private_frames::move_out(const range& all, std::uintptr_t low, std::uintptr_t live) noexcept {
  const std::size_t bytes = all.high - low;
  void* copy = map(nullptr, bytes, PROT_READ | PROT_WRITE);
  if (copy == nullptr) return false;
  shared_ = static_cast<std::byte*>(map(nullptr, bytes, PROT_NONE));
  if (shared_ == nullptr) {
    munmap(copy, bytes);
    return false;
  }
  std::memcpy(static_cast<std::byte*>(copy) + (live - low), at(live), all.high - live);
  if (!move_pages(at(low), bytes, shared_) || !move_pages(copy, bytes, at(low))) return false;
  all_ = all;
  moved_ = {low, all.high};
  live_ = live;
  return true;
}

bool private_frames::move_back() noexcept {
  const range r = std::exchange(moved_, range{});
  std::memcpy(shared_ + (live_ - r.low), at(live_), r.high - live_);
  return move_pages(shared_, r.high - r.low, at(r.low));
}

bool private_frames::keep(std::uintptr_t below) noexcept {
  const range r = std::exchange(moved_, range{});
  munmap(shared_, r.high - r.low);
  const std::uintptr_t low = r.low - std::min(r.low - all_.low, below);
  return (low == r.low || map(at(low), r.low - low, PROT_READ | PROT_WRITE) != nullptr) &&
         (low == all_.low || map(at(all_.low), low - all_.low, PROT_NONE) != nullptr);
}

}  // namespace godwit::stack
