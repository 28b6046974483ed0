// Who allocated what: of every block in use, how many bytes were asked for, and the callers of malloc.
//
// For runs that are to find leaks (check_heap). A worker's calls go on to functions of record.cpp, as if its
// OS thread had no part: so runs that do not ask for it have not one instruction more. Records lie behind the
// spans, one for 16 bytes, because the smallest block has as many; a record that is 0 says that no block in
// use begins there.
// Called by heap.cpp, part.cpp, mains_blocks.cpp. Read by leaks.cpp and gdb. Test: tests/heap/leaks_test.cpp.
#pragma once

#include "heap/changes.hpp"
#include "heap/heap.hpp"
#include "heap/layout.hpp"

#include <algorithm>

namespace godwit::heap {

/// Of malloc, the innermost first. Each once, so that recursion does not make a site of every path to it.
struct caller_list {
  static constexpr unsigned most = 15;
  unsigned frames = 0;
  unsigned count = 0;
  std::uintptr_t code[most];

  void add(std::uintptr_t c) noexcept {
    ++frames;
    if (std::find(code, code + count, c) == code + count) code[count++] = c;
  }
};
/// Who has called malloc now. Frames from @p end on are not looked at.
caller_list find_callers(std::uintptr_t end) noexcept;

/// Some callers of malloc that have allocated.
struct site {
  std::atomic<std::uint64_t> hash{0};              ///< of them; 0: not used. W who comes first, once
  std::uintptr_t callers[caller_list::most] = {};  ///< W who wrote the hash
};
/// By number. All bytes are zero while it is empty.
struct site_table {
  static constexpr unsigned bits = 14;
  static constexpr std::uint32_t count = 1u << bits;
  site rows[count];  ///< the first one stands for callers that found no room

  std::uint32_t number_of(const caller_list& c) noexcept;
};

/// Of a block. W who allocates and who frees it; at the end of the run whoever reaches it.
struct record {
  static constexpr unsigned site_bits = site_table::bits;
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
  static constexpr std::uint64_t grain = 16;
  static constexpr std::uint64_t bytes_for_span = span_bytes / grain * sizeof(record);

  site_table sites;
  std::atomic<std::uint32_t> searched{0};  ///< workers that have looked for what they reach. W and R all
  change_list changed;                     ///< of main's memory

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
