// Stacks that do not migrate (each worker's scheduler stack, signal stacks), and the stack that the workers
// inherit.
//
// The uni-address region itself belongs to the segment (src/transport/shm): it must be reachable from
// outside.
// Called by: src/sched, src/runtime. Test: tests/stack/stack_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::stack {

inline constexpr std::size_t scheduler_stack_bytes = 256 << 10;
inline constexpr std::size_t signal_stack_bytes = 64 << 10;

/// Stacks of a process, more or less, whose guard is a mapping of its own: it makes two of one, and a process
/// may have 65,530 by default. These are the first ones, all of most programs.
inline constexpr std::uint32_t protected_at_most = 24'000;

/// Private memory with a guard page below it, except where there are more of them than protected_at_most.
/// Gives back its low end. Ends the run when there is no memory.
std::byte* map_private(std::size_t bytes) noexcept;

/// Give it back: @p low as from map_private.
void unmap_private(std::byte* low, std::size_t bytes) noexcept;

/// An address range [low, high).
struct range {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;
  bool holds(std::uintptr_t a) const noexcept { return a >= low && a < high; }
};

/// The calling thread's stack as the system gave it, mapped or not. Empty when unknown.
range whole_system_stack() noexcept;
/// Of that, what lies above the caller, and a little below. Empty when unknown, or when it is not safe to
/// protect (a pthread's stack also holds its thread-local data).
range system_stack() noexcept;

/// Make the inherited stack read-only in this process. The caller must run on another stack by now.
void protect(const range& r) noexcept;
/// Whoever uses these pages of this process from now on gets a fault. False: the system refuses.
bool take_away(const range& r) noexcept;

/// May the page at @p at, which holds data, or code too, be written? False: the system refuses. Local.
bool open_page(void* at, bool writable, bool code = false) noexcept;

/// A sanitizer or valgrind places a program's memory itself: own_private_heap cannot steer it. Local.
bool steers_heaps() noexcept;

/// Steer all memory that this process maps from now on (so: malloc) into a range of its own, one of @p count.
/// A pointer into another worker's private heap then faults instead of meeting other data. Gives back the
/// range; empty if it cannot be done here. Call before the process allocates. @p used_by_threads: threads
/// allocate there, so nothing may come from what the inherited heap has free; else, as they have a heap in
/// common, only other threads of the system do. Cost: 0.1 ms; with @p used_by_threads 200 KiB of memory too.
range own_private_heap(std::uint32_t number, std::uint32_t count, bool used_by_threads) noexcept;

}  // namespace godwit::stack
