// Who allocated what: of every block in use, how many bytes were asked for, and the callers of malloc.
//
// For runs that are to find leaks (check_heap). A worker's calls go on to functions of record.cpp, as if its
// OS thread had no part: so runs that do not ask for it have not one instruction more. Records lie behind the
// spans, one for 16 bytes, because the smallest block has as many; a record that is 0 says that no block in
// use begins there.
// Called by heap.cpp, part.cpp. Read by leaks.cpp and gdb. Test: tests/heap/leaks_test.cpp.
#pragma once

#include "heap/heap.hpp"
#include "heap/layout.hpp"

namespace godwit::heap {

/// Some callers of malloc, the innermost first, that have allocated.
struct site {
  static constexpr unsigned most_callers = 15;
  std::atomic<std::uint64_t> hash{0};         ///< of them; 0: not used. W who comes first, once
  std::uintptr_t callers[most_callers] = {};  ///< W who wrote the hash
};

/// Of a block. W who allocates and who frees it; at the end of the run whoever reaches it.
struct record {
  static constexpr unsigned site_bits = 14;
  static constexpr std::uint64_t in_use = std::uint64_t{1} << 63, reached = std::uint64_t{1} << 62;

  /// 0, or in_use, reached, bytes, and the number of the site. W and R as said above
  std::atomic<std::uint64_t> word{0};

  static std::uint64_t of(std::uint64_t bytes, std::uint32_t site) noexcept {
    return in_use | bytes << site_bits | site;
  }
  static std::uint64_t bytes_of(std::uint64_t word) noexcept {
    return (word & ~(in_use | reached)) >> site_bits;
  }
  static std::uint32_t site_of(std::uint64_t word) noexcept { return word & ((1u << site_bits) - 1); }
};

struct allocations {
  static constexpr std::uint32_t site_count = 1u << record::site_bits;
  static constexpr std::uint64_t grain = 16;
  static constexpr std::uint64_t bytes_for_span = span_bytes / grain * sizeof(record);

  site sites[site_count];                  ///< the first one stands for callers that found no room
  std::atomic<std::uint32_t> searched{0};  ///< workers that have looked for what they reach. W and R all

  /// Of the block that begins at @p at. The records follow this object.
  record& of(const void* at) noexcept {
    return reinterpret_cast<record*>(this + 1)[(reinterpret_cast<std::uintptr_t>(at) - here.begin) / grain];
  }
};

/// What this OS thread allocates as a worker is recorded from now on, where it has a part. @p end: see
/// heap::enter.
void begin_recording(stack_end* end) noexcept;
/// The block @p at is about to be free. Ends the run if none in use begins there.
void forget_allocation(const void* at) noexcept;

}  // namespace godwit::heap
