// The worker's hot words: all that an unstolen spawn and join touch.
//
// One page per worker. In a worker process it is the worker's own shared memory, mapped over the
// global `godwit_hot_`, so that the inlined fast path reaches it with plain pc-relative loads while
// other workers reach the same words through their mapping of that memory.
// Outside `godwit::run` the page is ordinary data whose `poll` word is set: the first spawn then
// takes the slow path, which reports the mistake.
// Called by: task.hpp and future.hpp (inlined into user code), src/sched. See docs/protocols/deque.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace godwit::detail {

/// One queued parent continuation. Written by the owner at spawn; read by thieves once it is public.
struct spawn_slot {
  std::uintptr_t sp;      ///< stack pointer at the spawn: the lowest address of the parent's frames
  std::uintptr_t fp;      ///< frame pointer register (rbp, x29)
  std::uintptr_t extra;   ///< x86-64: rbx. AArch64: the address to resume at
  std::uint64_t record;   ///< spare join record (a `ref`), 0 while the slot has never been public
};
static_assert(sizeof(spawn_slot) == 32);

struct pending_value;  // future.hpp: a result that lives in a frame and needs its codec to migrate

/// The largest page size of the architecture: the page is mapped over, so it must own whole pages.
#if defined(__x86_64__)
inline constexpr std::size_t hot_bytes = 4096;
#else
inline constexpr std::size_t hot_bytes = 65536;
#endif

/// The page proper. Line 0 is private to the owner except for the starvation check of idle workers.
struct alignas(hot_bytes) hot_words {
  spawn_slot* bottom;              ///< next free slot. W owner (every spawn and pop), R thieves that starve
  spawn_slot* split;               ///< slots below are public. W owner, R owner
  pending_value* pending;          ///< values to encode before their frame may leave. W/R owner
  std::uint32_t worker;            ///< this worker's number. W once
  std::uint32_t workers;           ///< number of workers. W once
  std::uint32_t in_runtime;        ///< non-zero: the expose signal must keep its hands off. W/R owner
  std::uint32_t run;               ///< number of the run in the process that called it; 0 outside. W once
  std::uint64_t spawns;            ///< counted only in programs compiled with GODWIT_COUNT_SPAWNS. W owner

  std::byte* global_base;          ///< byte 0 of global memory here. W once
  std::uint32_t global_plain;      ///< non-zero: all of it is this host's memory, and unchecked. W once
  std::uint32_t checkouts;         ///< checked out ranges that the running thread holds. W owner

  alignas(64) std::atomic<std::uint32_t> poll;  ///< non-zero: owner calls spawn_point() at its next
                                                ///< spawn. W anybody, R owner; CPU atomics only
};
static_assert(sizeof(hot_words) == hot_bytes);

}  // namespace godwit::detail

extern "C" godwit::detail::hot_words godwit_hot_;
