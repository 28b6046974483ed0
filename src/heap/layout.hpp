// What lies in the heap's window, which all workers of a host have at one address.
//
//   | common | main's parts | a part for each worker | a table: an entry for each span | spans of 64 KiB ...
//
// and behind these, in runs that are to find leaks, who allocated what is in them (record.hpp).
//
// A *run* is some spans side by side: free, or one large block, or small blocks of one size. The first
// entry of a run tells all. Small blocks belong to a part, whose worker alone hands them out and takes
// its own back (part.hpp); runs belong to the pool (pool.hpp). Every address is the same everywhere, so
// that these are plain pointers.
// Protocol: docs/protocols/heap.md.
#pragma once

#include "base/world.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace godwit::heap {

inline constexpr unsigned span_bits = 16;
inline constexpr std::uint64_t span_bytes = std::uint64_t{1} << span_bits;

struct part;
struct allocations;  // record.hpp

/// A small block that nobody uses.
struct block {
  block* next;
};

enum class run_kind : std::uint8_t {
  none,   ///< never used
  free,   ///< the pool's
  small,  ///< a part's: blocks of one size
  large,  ///< one block
  rest,   ///< not the first span of its run
};

/// Of a span. All but `kind` and `spans` means something in the first entry of a run only. In two lines: who
/// frees another part's block reads the first one, which changes with the run only.
struct alignas(64) span {
  // Small blocks: W the part's worker before the first one is handed out, R all.
  part* owner = nullptr;
  std::uint32_t block_bytes = 0;  ///< of each
  std::uint32_t blocks = 0;       ///< in all
  /// Of the run. In its last entry as well while it is free, and there and in all entries of small blocks but
  /// the first: how many lie in front of it.
  std::uint32_t spans = 0;
  run_kind kind = run_kind::none;
  std::uint8_t size_class = 0;
  std::uint64_t inverse = 0;  ///< of block_bytes (is_multiple)

  // Small blocks: W and R the part's worker. Else the pool's.
  alignas(64) block* free = nullptr;
  std::uint32_t used = 0;   ///< blocks handed out; 1 while there are no others (`full`)
  std::uint32_t fresh = 0;  ///< blocks from this one on have never been in `free`
  // In a list: of a part, or of the pool.
  span* next = nullptr;
  span* previous = nullptr;
  bool full = false;        ///< small: in no list, as all blocks are handed out
  bool of_main = false;     ///< large: main made it. W who takes it from the pool
  std::uint32_t dirty = 0;  ///< free, or just taken: at most so many spans are not all zero
};
static_assert(sizeof(span) == 128);

// Sizes of small blocks: steps of 16 bytes up to 128, then four per doubling up to 64 KiB.
inline constexpr std::uint64_t largest_small = 64 << 10;
inline constexpr unsigned class_count = 8 + 4 * 9;

/// A worker's own. Its worker allocates from it without a lock; what others free comes back by `returned`.
/// One of main's has an OS thread of main in a worker's place (heap::enter_main).
struct part {
  /// Where blocks of a size come from; never null: a span without blocks stands in. W and R its worker
  span* current[class_count] = {};
  /// Further ones that have free blocks. W and R its worker
  span* partial[class_count] = {};
  /// Blocks of other parts that this worker has freed: it hands them out again, or gives them back, many
  /// at a time. W and R its worker
  struct foreign {
    block* first = nullptr;
    std::uint32_t count = 0;
    std::uint32_t most = 0;  ///< W once
  } found[class_count];
  bool of_main = false;  ///< what lies here main made. W once
  /// Blocks of this part that others have freed. W all (push some), its worker (take all). HP1
  alignas(64) std::atomic<block*> returned{nullptr};
};

inline constexpr std::uint32_t mains_count = 16;

/// The pool, and what all parts have in common.
struct common {
  span* table = nullptr;       ///< W once
  std::byte* spans = nullptr;  ///< the first one's bytes. W once
  std::uint64_t count = 0;     ///< of spans. W once
  std::uint64_t largest = 0;   ///< bytes of a block: more than that the machine cannot have. W once
  part* mains = nullptr;       ///< main's parts, one for each OS thread of it that allocates here. W once
  part* parts = nullptr;       ///< W once
  // W main, while there are no workers.
  std::uint32_t part_count = 0;  ///< that have begun
  std::uint32_t part_room = 0;
  allocations* recorded = nullptr;  ///< null: nobody asked. W once

  std::atomic<std::uint64_t> refused{0};  ///< bytes of the largest block there was no room for. W and R all

  // W and R who holds the lock.
  alignas(64) std::atomic<std::uint32_t> lock{0};
  std::uint64_t fresh = 0;  ///< spans from this one on have never been used
  std::uint64_t dirty = 0;  ///< of all free runs
  static constexpr unsigned bin_count = 40;
  span* bins[bin_count] = {};  ///< free runs of [2^i, 2^(i+1)) spans
};

/// Addresses of code.
struct code {
  std::uintptr_t begin = 0;
  std::uint64_t bytes = 0;
  bool holds(const void* p) const noexcept { return reinterpret_cast<std::uintptr_t>(p) - begin < bytes; }
};

/// Where a heap's spans are; bytes 0: there is none.
struct place {
  std::uintptr_t begin = std::uintptr_t{1} << 63;
  std::uint64_t bytes = 0;
  common* all = nullptr;

  bool holds(const void* p) const noexcept { return reinterpret_cast<std::uintptr_t>(p) - begin < bytes; }
};
/// The heap of this process. Other OS threads of main free memory while it changes, so `bytes` is 0 then, and
/// no address lies behind the first value of `begin`.
struct place_here : place {
  bool forgotten = false;     ///< blocks stay as they are: a forked child, or a heap that may be torn
  code c_library, loader;     ///< what they allocate for themselves belongs to the process
  code cpp_library, program;  ///< the latter: without what it is linked with
};
inline constinit place_here here;

// heap.cpp:

/// Make a heap in @p bytes at @p base, all zero, with room for the parts of so many workers. None has begun.
common* lay_out(std::byte* base, std::uint64_t bytes, std::uint32_t room, bool records = false) noexcept;
/// What the C library and the loader allocate is told by `here` from what the program does.
void find_code() noexcept;
place place_of(common* all) noexcept;
/// `here` is the heap there.
void use(const place& p) noexcept;

inline std::byte* bytes_of(const span* s) noexcept {
  return here.all->spans + ((s - here.all->table) << span_bits);
}
inline span* span_at(const void* p) noexcept {
  return here.all->table + ((reinterpret_cast<std::uintptr_t>(p) - here.begin) >> span_bits);
}

/// The first one of the run of small blocks, or of the large block, that begins or lies here.
inline span* run_at(const void* p) noexcept {
  span* const s = span_at(p);
  return s->kind == run_kind::rest ? s - s->spans : s;
}
/// The same, in another heap than `here`.
inline const span& run_in(const common& all, const void* p) noexcept {
  const span* const s = all.table + ((static_cast<const std::byte*>(p) - all.spans) >> span_bits);
  return s->kind == run_kind::rest ? *(s - s->spans) : *s;
}
/// Of what such a run is for: a small block, or the large one.
inline std::uint64_t bytes_of_run(const span& s) noexcept {
  return s.kind == run_kind::small ? s.block_bytes : std::uint64_t{s.spans} << span_bits;
}

/// Whether main made the blocks of a run that is not free.
inline bool is_mains(const span& s) noexcept {
  return s.kind == run_kind::small ? s.owner->of_main : s.of_main;
}

}  // namespace godwit::heap
