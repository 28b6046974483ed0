// check_global: mistakes that would otherwise show up as wrong results: accesses to what is not allocated,
// checkouts that overlap. (What is freed wrongly and what leaks: allocator.hpp.)
//
// Local memory has one bit per 16 bytes at its home's host; distributed memory is asked for at worker 0's.
// Called by access.hpp and allocator.hpp where on() says so. Test: tests/global/misuse_test.cpp.
#pragma once

#include "gas/directory.hpp"

#include <string>

namespace godwit::gas {

class checks {
 public:
  checks(const reach& net, const space& where, directory& blocks, bool on) noexcept
      : net_(net), where_(where), blocks_(blocks), on_(on) {}

  bool on() const noexcept { return on_; }
  /// Ends the run unless all of the range is allocated.
  void check_range(global_address at, std::uint64_t bytes, const char* doing);
  /// Local memory was allocated, or freed.
  void mark_live(global_address at, std::uint64_t bytes, bool live) noexcept;
  /// A checkout begins. Ends the run if it overlaps one of this host, and one of them writes.
  void note_checkout(global_address at, std::uint64_t bytes, bool writes, const detail::place& where);
  void forget_checkout(global_address at, std::uint64_t bytes, bool writes) noexcept;
  /// Those that this worker holds, one line.
  std::string open_checkouts() const;

 private:
  /// The words of the shadow whose bits stand for a range of local memory.
  struct shadow {
    std::uint64_t first, last;  ///< bits
    shadow(const space& where, global_address at, std::uint64_t bytes) noexcept
        : first((at - where.local_low) / space::shadow_grain),
          last((at + bytes - 1 - where.local_low) / space::shadow_grain) {}
    std::uint64_t words() const noexcept { return last / 64 - first / 64 + 1; }
    /// Bits of word @p i that belong to the range.
    std::uint64_t mask(std::uint64_t i) const noexcept {
      std::uint64_t m = ~std::uint64_t{0};
      if (i == 0) m &= m << first % 64;
      if (i + 1 == words()) m &= ~std::uint64_t{0} >> (63 - last % 64);
      return m;
    }
    global_address at(const space& where) const noexcept { return where.shadow_low + first / 64 * 8; }
  };

  const reach& net_;
  const space& where_;
  directory& blocks_;
  const bool on_;
};

}  // namespace godwit::gas
