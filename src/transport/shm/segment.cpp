// See segment.hpp.
#include "transport/shm/segment.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "base/blocking_calls.hpp"
#include "transport/shm/memory_file.hpp"

namespace godwit::transport::shm {

namespace {

// Tried in order; all were found free in plain and sanitized programs (docs/decisions/0005-addresses.md).
constexpr std::uintptr_t candidates[] = {0x5500'0000'0000, 0x5100'0000'0000, 0x4000'0000'0000,
                                         0x2000'0000'0000, 0x10'0000'0000,   0x7000'0000'0000};

std::uint64_t pages(std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error("godwit: " + what); }

}  // namespace

layout plan(std::uint64_t hot_bytes, std::uint64_t words_bytes, std::uint64_t front_words,
            std::uint64_t stack_bytes, std::uint64_t heap_bytes) noexcept {
  layout l;
  // One 64-byte slot per nested spawn. A frame with a spawn saves at least four callee-saved registers and a
  // return address, so the stack is full before the slots are.
  l.slots_bytes = pages(stack_bytes / 40 * 64 + 4096);
  l.heap_bytes = pages(heap_bytes);
  l.stack_bytes = pages(stack_bytes);
  l.words = l.hot + pages(hot_bytes);
  if (front_words != 0) l.front = l.words + pages(front_words);
  l.slots = l.words + pages(words_bytes);
  l.heap = l.slots + l.slots_bytes + guard_bytes;
  l.stack = l.heap + l.heap_bytes + guard_bytes;
  const std::uint64_t end = l.stack + l.stack_bytes + guard_bytes;
  constexpr std::uint64_t grain = 2 << 20;
  l.span = (end + grain - 1) / grain * grain;
  return l;
}

layout plan_in_place(std::uint64_t hot_bytes, std::uint64_t words_bytes, std::uint64_t slots_bytes,
                     std::uint64_t pool_bytes, std::uint64_t heap_bytes) noexcept {
  layout l = plan(hot_bytes, words_bytes, 0, pool_bytes, heap_bytes);
  const std::uint64_t less = l.slots_bytes - pages(slots_bytes);
  l.slots_bytes -= less;
  l.heap -= less;
  l.stack -= less;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  constexpr std::uint64_t grain = 2 << 20;  // stacks of a power of two in size are aligned to it
  l.stack = (l.stack + std::max(grain, page) - 1) / grain * grain;
  l.span = std::bit_ceil(l.stack + l.stack_bytes + guard_bytes);  // offsets by a mask
  return l;
}

layout plan_in_turn(const parts_in_turn& p) noexcept {
  const auto up = [](std::uint64_t bytes, std::uint64_t grain) {
    return (bytes + grain - 1) / grain * grain;
  };
  constexpr std::uint64_t line = 64;
  const std::uint64_t page = pages(1);
  layout l;
  l.companion_end = up(p.companion, line);
  l.host = l.companion_end;
  const std::uint64_t after_stacks = l.host + up(p.host, line) + p.scheduler + up(p.hot, line);
  l.words = up(after_stacks + p.words_in_page, page) - p.words_in_page;
  l.hot = l.words - up(p.hot, line);
  l.heap = l.words + up(p.words, line);
  l.heap_bytes = up(p.heap, page);
  l.slots = up(l.heap + l.heap_bytes, page);
  l.slots_bytes = up(p.slots, page);
  l.stack = l.slots + l.slots_bytes;
  l.stack_bytes = up(p.stack, page);
  l.span = std::bit_ceil(l.stack + l.stack_bytes);  // offsets by a mask
  return l;
}

void segment::make_file(near_range near, const layout& l) {
  layout_ = l;
  near_ = near;
  if (l.span >= std::uint64_t{1} << ref_offset_bits)
    fail(
        "stack and heap of a worker are together limited to 1 TiB: lower --godwit-stack-bytes or "
        "--godwit-heap-bytes");
  fd_ = make_memory_file("godwit", (l.span + l.front) * near.count,
                         "godwit: ", "lower --godwit-stack-bytes or --godwit-heap-bytes");
}

std::string segment::file_path() const { return path_of(fd_); }

void segment::open_file(near_range near, const layout& l, const std::string& path) {
  layout_ = l;
  near_ = near;
  fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0)
    fail("cannot open the shared memory of another process on this host (" + path +
         "): " + std::strerror(errno) +
         ": the processes of a host must run as the same user and see each other in /proc");
}

std::uint32_t segment::free_bases(std::uint64_t total) noexcept { return free_among(candidates, total); }

void segment::map(unsigned candidate) {
  const std::uint64_t total = total_bytes(near_.count, layout_);
  void* p = reserve(candidates[candidate], total);
  if (p == nullptr) give_up(taken_meanwhile);
  base_ = common_ = static_cast<std::byte*>(p);
  zero_ = reinterpret_cast<std::uintptr_t>(base_) + layout_.span * (std::uintptr_t{1} - near_.first);
  mask_ = ~std::uintptr_t{0};
  front_zero_ = reinterpret_cast<std::uintptr_t>(fronts()) - layout_.front * near_.first;
  if (mmap(base_ + layout_.span, total - layout_.span, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd_, 0) == MAP_FAILED) {
    const std::string why = std::strerror(errno);
    give_up("cannot map shared memory: " + why);
  }
}

void segment::create(std::uint32_t workers, const layout& l) {
  make_file({0, workers}, l);
  const std::uint64_t total = total_bytes(workers, l);
  const std::uint32_t free = free_bases(total);
  if (free == 0)
    give_up("no free range of " + std::to_string(total >> 20) +
            " MiB of address space: lower --godwit-stack-bytes or "
            "--godwit-heap-bytes, or raise the limit on address space (ulimit -v)");
  map(static_cast<unsigned>(std::countr_zero(free)));
}

/// Addresses for all segments, each at a multiple of its size.
void segment::reserve_in_place(std::uint32_t workers, const layout& l) {
  layout_ = l;
  near_ = {0, workers};
  mask_ = l.span - 1;
  const std::uint64_t total = total_bytes(workers, l);
  if (l.span > std::uint64_t{1} << ref_offset_bits)
    fail(
        "stacks and heap of a worker are together limited to 1 TiB: lower --godwit-stack-bytes or "
        "--godwit-heap-bytes");
  void* p = mmap(nullptr, total + l.span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    fail("no free range of " + std::to_string((total + l.span) >> 20) + " MiB of address space for " +
         std::to_string(workers) +
         " workers: raise the limit on address space (ulimit -v), have fewer workers (GODWIT_WORKERS), or "
         "lower the size of stacks (GODWIT_STACK_BYTES, GODWIT_THREAD_STACK_BYTES)");
  const auto low = reinterpret_cast<std::uintptr_t>(p);
  const std::uintptr_t aligned = (low + l.span - 1) / l.span * l.span;
  if (aligned != low) munmap(p, aligned - low);
  munmap(reinterpret_cast<void*>(aligned + total), low + l.span - aligned);
  base_ = common_ = reinterpret_cast<std::byte*>(aligned);
  zero_ = aligned + layout_.span;
  shift_ = static_cast<unsigned>(std::countr_zero(layout_.span));
}

void segment::create_in_place(std::uint32_t workers, const layout& l) {
  reserve_in_place(workers, l);
  for (std::uint32_t i = 0; i < workers; ++i) {
    std::byte* own = at(worker_no{i}, base_);
    for (const auto& [from, bytes] : {std::pair{l.hot, l.slots + l.slots_bytes - l.hot},
                                      {l.heap, l.heap_bytes},
                                      {l.stack, l.stack_bytes}})
      if (mprotect(own + from, bytes, PROT_READ | PROT_WRITE) != 0) {
        const std::string why = std::strerror(errno);
        give_up("cannot make the workers' memory accessible: " + why +
                ": raise the limit on data (ulimit -d) if there is one, have fewer workers (GODWIT_WORKERS), "
                "or lower the size of stacks (GODWIT_STACK_BYTES, GODWIT_THREAD_STACK_BYTES)");
      }
    madvise(own + l.stack, l.stack_bytes, MADV_NOHUGEPAGE);  // a stack is a page or two
  }
}

void segment::create_in_turn(std::uint32_t workers, const layout& l) {
  reserve_in_place(workers, l);
  in_turn_ = true;
  all_ = workers;
  // Few mappings, however many workers: the guards are those around the region that all use.
  const std::uint64_t span = l.span;
  if (mprotect(base_ + l.stack, l.stack_bytes, PROT_READ | PROT_WRITE) != 0 ||
      mprotect(base_ + span, span * workers, PROT_READ | PROT_WRITE) != 0) {
    const std::string why = std::strerror(errno);
    give_up("cannot make the workers' memory accessible: " + why +
            ": raise the limit on data (ulimit -d) if there is one, or have fewer workers (GODWIT_WORKERS)");
  }
  // Of each stack, and of each segment, a few pages are used.
  madvise(base_ + l.stack, l.stack_bytes, MADV_NOHUGEPAGE);
  madvise(base_ + span, span * workers, MADV_NOHUGEPAGE);
}

segment segment::seen_by(worker_no me) const noexcept {
  segment s = *this;
  s.common_ = at(me, base_);
  return s;
}

segment segment::seen_by(worker_no me, near_range near) const noexcept {
  segment s = seen_by(me);
  s.near_ = near;
  return s;
}

void segment::bring_stacks(std::uintptr_t low, std::uintptr_t high) const noexcept {
  if (in_turn_)
    std::memcpy(reinterpret_cast<void*>(low), reinterpret_cast<const void*>(kept(low)), high - low);
}

void segment::keep_stacks(std::uintptr_t low, std::uintptr_t high) const noexcept {
  if (in_turn_)
    std::memcpy(reinterpret_cast<void*>(kept(low)), reinterpret_cast<const void*>(low), high - low);
}

void segment::adopt(worker_no me) {
  const std::uint64_t number = index(me) - near_.first, file = layout_.span * number;
  auto map = [&](std::uint64_t from, std::uint64_t bytes, std::uint64_t in_file) {
    if (mmap(base_ + from, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd_,
             static_cast<off_t>(in_file)) == MAP_FAILED)
      base::fatal("cannot map a worker's memory: %s (limit on mappings: /proc/sys/vm/max_map_count)",
                  std::strerror(errno));
  };
  // The guards between these ranges keep the PROT_NONE of the reservation.
  const std::uint64_t front = layout_.front;
  if (front != 0) map(0, front, layout_.span * near_.count + front * number);
  map(front, layout_.slots + layout_.slots_bytes - front, file + front);
  map(layout_.heap, layout_.heap_bytes, file + layout_.heap);
  map(layout_.stack, layout_.stack_bytes, file + layout_.stack);
  close(std::exchange(fd_, -1));
}

void segment::put_into_core_file() const noexcept {
  leave_untouched_out_of_core_file(base_, total_bytes(in_turn_ ? all_ : near_.count, layout_));
}

void segment::destroy() noexcept {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  if (base_ != nullptr) munmap(base_, total_bytes(near_.count, layout_));
  base_ = common_ = nullptr;
}

void segment::give_up(const std::string& why) {
  destroy();
  fail(why);
}

void segment::discard(void* address, std::size_t bytes) noexcept {
  const base::no_blocking_calls::let_through meanwhile;  // the simulator calls it often
  // no file
  if (madvise(address, bytes, MADV_REMOVE) != 0) static_cast<void>(madvise(address, bytes, MADV_DONTNEED));
}

std::size_t segment::touched_from_top(const std::byte* low, const std::byte* high) noexcept {
  // Stacks are touched from the top without large gaps: look at 1 MiB at a time until one is untouched.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  unsigned char resident[256];
  const std::byte* lowest = high;
  for (const std::byte* end = high; end > low;) {
    const std::size_t n = std::min(static_cast<std::size_t>(end - low) / page, sizeof resident);
    const std::byte* start = end - n * page;
    if (mincore(const_cast<std::byte*>(start), n * page, resident) != 0) break;
    const auto* first = std::find_if(resident, resident + n, [](unsigned char r) { return (r & 1) != 0; });
    if (first == resident + n) break;
    lowest = start + static_cast<std::size_t>(first - resident) * page;
    end = start;
  }
  return static_cast<std::size_t>(high - lowest);
}

}  // namespace godwit::transport::shm
