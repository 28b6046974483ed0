// The worker's hot words: all that an unstolen spawn and join touch.
//
// One page per worker, in memory that other workers reach as well. The running worker finds its own page by a
// register that belongs to the worker and not to the thread it runs: on x86-64 the base of segment gs (one
// instruction per access, no thread-local storage involved), elsewhere a thread-local pointer. A thread may
// go on at another worker after any spawn or join, so nothing here may be computed before and used after:
// every access is a volatile asm statement, which compilers neither cache nor move. Outside `godwit::run` the
// register leads to a page whose `poll` word is set: the first spawn then takes the slow path, which reports
// the mistake. Called by: task.hpp and future.hpp (inlined into user code), src/sched.
// docs/protocols/deque.md, docs/decisions/0011-threads.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace godwit::detail {

/// One queued parent continuation, in a line of its own. Written by the owner at spawn; read by thieves once
/// it is public.
struct alignas(64) spawn_slot {
  std::uintptr_t sp;  ///< stack pointer at the spawn: the lowest address of the parent's frames
  std::uintptr_t fp;  ///< frame pointer register (rbp, x29)
  /// x86-64: rbx. Others: the address to resume at. Of a task: not 0 if it stays on its host
  std::uintptr_t extra;
  std::uint64_t record;  ///< spare join record (a `ref`), 0 while the slot has never been public
  // docs/protocols/frames.md: children that refer to their ancestors' frames.
  /// of the child: its words, or [0] is closure_at. What is not in use is old. W owner
  std::uintptr_t closure[2];
  /// stack bytes [sp, bytes_end) go with the continuation. W owner before it is public
  std::uintptr_t bytes_end;
  union {
    std::uint64_t float_control;  ///< of the parent, once it is public (base/cpu.hpp). W owner, R thief
    std::uint64_t frame_hash;  ///< once it has left: of its frames. W thief under the deque's lock, R owner
  };
};
static_assert(sizeof(spawn_slot) == 64);

/// In spawn_slot::closure[0]: where a closure lies that rides in no registers, with its size in words above
/// the address. Neither an address nor an ordinary floating-point number looks like that.
inline constexpr std::uintptr_t most_closure_words = 0xFFF;  // that many, or more
inline constexpr std::uintptr_t closure_hides = 0x1000;      // there may be addresses in what it owns as well
[[gnu::always_inline]] inline std::uintptr_t closure_at(const void* address, std::size_t bytes,
                                                        bool hides) noexcept {
  const std::uintptr_t words = bytes / sizeof(std::uintptr_t);
  return reinterpret_cast<std::uintptr_t>(address) |
         ((words < most_closure_words ? words : most_closure_words) | (hides ? closure_hides : 0)) << 48;
}

/// The value of a reducer in the segment that the worker executes (segment.hpp).
struct view_slot {
  std::uint64_t reducer;  ///< its number; 0: none
  void* value;
};
inline constexpr std::size_t view_slots = 8;

/// Free blocks of a worker's own part of global memory: global_objects.hpp. W/R owner
struct local_objects {
  static constexpr std::size_t lists = 80;
  std::uint64_t begin = 0;  ///< address of that part
  std::uint64_t bytes = 0;  ///< of it. W once
  struct free_block* free[lists] = {};
};

// Outside a run.
inline constinit std::atomic<std::uint64_t> no_cancellations{0};
inline constinit local_objects no_objects;  ///< nobody writes it

struct local_table;    // worker_local.hpp
struct pending_value;  // future.hpp: a result that lives in a frame and needs its codec to migrate

/// In hot_words::checkouts while the worker calls a function for on_each_worker, which must neither spawn nor
/// wait either.
inline constexpr std::uint32_t in_call = std::uint32_t{1} << 31;

/// Line 0 is private to the owner except for the starvation check of idle workers. The assembly in
/// src/context knows the places of self, bottom and free_stacks (asserted in src/context/hot.cpp).
struct alignas(64) hot_words {
  hot_words* self = nullptr;     ///< this page, as the owner sees it. W once
  spawn_slot* bottom = nullptr;  ///< next free slot. W owner (every spawn and pop), R thieves that starve
  spawn_slot* split = nullptr;   ///< slots below are public. W owner, R owner
  /// workers as threads: top of an unused stack, where the next one is written; children run on stacks of
  /// their own. Null: children run below their parents. W owner
  void* free_stacks = nullptr;
  pending_value* pending = nullptr;  ///< values to encode before their frame may leave. W/R owner
  std::uint32_t worker = 0;          ///< this worker's number. W once
  std::uint32_t workers = 0;         ///< number of workers. W once
  std::uint32_t in_runtime = 0;      ///< non-zero: the expose signal must keep its hands off. W/R owner
  std::uint32_t run = 0;             ///< number of the run in the process that called it; 0 outside. W once
  /// non-zero: stacks stay where they are and all workers share one address space. W once
  std::uint32_t in_place = 0;
  /// checked out ranges that the running thread holds: it must neither spawn nor wait. And in_call. W owner
  std::uint32_t checkouts = 0;
  /// non-zero: what a thread owns is valid at every worker of the run, and is handed over as it is. W once
  std::uint32_t one_heap = 0;
  std::uint32_t host_heap = 0;  ///< the same for the workers of this host. W once

  std::byte* global_base = nullptr;  ///< byte 0 of global memory here. W once
  void* owner = nullptr;             ///< the sched::worker. W once
  void* memory = nullptr;            ///< its gas::memory. W once
  std::uint64_t spawns = 0;          ///< counted only in programs compiled with GODWIT_COUNT_SPAWNS. W owner
  std::uint32_t global_plain = 0;    ///< non-zero: all of it is this host's memory, and unchecked. W once
  std::uint32_t map_locked = 0;      ///< the running thread is inside global_map's update. W owner
  // Is the running thread cancelled? docs/protocols/cancel.md
  const std::atomic<std::uint64_t>* cancellations = &no_cancellations;  ///< of this host. W once
  /// `cancellations` when that was last asked, plus one if it was; all ones: ask again. W owner
  std::uint64_t cancel_answer = 0;
  const local_table* locals = nullptr;   ///< of worker_local, for this worker; null: nothing yet. W owner
  local_objects* objects = &no_objects;  ///< free blocks of global memory, for inlined code. W once

  /// Non-zero: owner calls spawn_point() at its next spawn. 1: somebody asks; 2: there may be exceptions
  /// (src/context/exceptions.hpp), or the scopes of its thread want it. W anybody, R owner; CPU atomics only.
  alignas(64) std::atomic<std::uint32_t> poll{0};

  /// views that were looked up since the worker's segment changed, each in the slot of its number. W/R owner
  alignas(64) view_slot views[view_slots] = {};
};

#if defined(__x86_64__)

/// The register is set before main by the library, which has to be linked for that: nothing else here needs
/// it.
extern "C" const char godwit_hot_anchor;
[[gnu::used]] static const char* const hot_anchor = &godwit_hot_anchor;

/// The calling worker's page. Valid until the next spawn, join, or whatever else may suspend.
[[gnu::always_inline]] inline hot_words& hot() noexcept {
  hot_words* p;
  asm volatile("movq %%gs:%c1, %0" : "=r"(p) : "i"(offsetof(hot_words, self)));
  return *p;
}
/// One word of it, by its place, as the type T.
template <std::size_t At, class T>
[[gnu::always_inline]] inline T hot_load() noexcept {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  T v;
  asm volatile("mov %%gs:%c1, %0" : "=r"(v) : "i"(At));
  return v;
}
template <std::size_t At, class T>
[[gnu::always_inline]] inline void hot_store(T v) noexcept {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  asm volatile("mov %0, %%gs:%c1" : : "r"(v), "i"(At) : "memory");
}
/// A 4-byte word of it is not zero.
template <std::size_t At>
[[gnu::always_inline]] inline bool hot_test() noexcept {
  bool set;
  asm volatile("cmpl $0, %%gs:%c1" : "=@ccne"(set) : "i"(At));
  return set;
}
/// @p p lies below split.
[[gnu::always_inline]] inline bool hot_below_split(const spawn_slot* p) noexcept {
  bool below;
  asm volatile("cmpq %%gs:%c2, %1" : "=@ccb"(below) : "r"(p), "i"(offsetof(hot_words, split)));
  return below;
}

#else

#if defined(__aarch64__)
[[gnu::always_inline]] inline hot_words& hot() noexcept {
  hot_words* p;
  std::uintptr_t offset;
  asm volatile(
      "adrp %1, :gottprel:godwit_hot_\n\t"
      "ldr %1, [%1, #:gottprel_lo12:godwit_hot_]\n\t"
      "mrs %0, tpidr_el0\n\t"
      "ldr %0, [%0, %1]"
      : "=&r"(p), "=&r"(offset));
  return *p;
}
#elif defined(__riscv)
[[gnu::always_inline]] inline hot_words& hot() noexcept {
  hot_words* p;
  asm volatile(
      "la.tls.ie %0, godwit_hot_\n\t"
      "add %0, %0, tp\n\t"
      "ld %0, 0(%0)"
      : "=&r"(p));
  return *p;
}
#else
extern "C" hot_words* godwit_hot_words() noexcept;  // a call that compilers know nothing about
[[gnu::always_inline]] inline hot_words& hot() noexcept { return *godwit_hot_words(); }
#endif

template <std::size_t At, class T>
[[gnu::always_inline]] inline T hot_load() noexcept {
  return *reinterpret_cast<T*>(reinterpret_cast<char*>(&hot()) + At);
}
template <std::size_t At, class T>
[[gnu::always_inline]] inline void hot_store(T v) noexcept {
  *reinterpret_cast<T*>(reinterpret_cast<char*>(&hot()) + At) = v;
}
template <std::size_t At>
[[gnu::always_inline]] inline bool hot_test() noexcept {
  return *reinterpret_cast<volatile std::uint32_t*>(reinterpret_cast<char*>(&hot()) + At) != 0;
}
[[gnu::always_inline]] inline bool hot_below_split(const spawn_slot* p) noexcept { return p < hot().split; }

#endif

// What inlined code reads most.
[[gnu::always_inline]] inline bool hot_checkouts() noexcept {
  return hot_test<offsetof(hot_words, checkouts)>();
}
/// Of global memory, without in_call.
inline std::uint32_t open_checkouts() noexcept { return hot().checkouts % in_call; }
[[gnu::always_inline]] inline std::uint32_t hot_workers() noexcept {
  return hot_load<offsetof(hot_words, workers), std::uint32_t>();
}
[[gnu::always_inline]] inline std::uint32_t hot_run() noexcept {
  return hot_load<offsetof(hot_words, run), std::uint32_t>();
}

}  // namespace godwit::detail
