// What a steal touches first is touched before: by a worker that begins, and by one that has nothing to do, a
// piece at a time.
//
// The first use of a page costs the system's time, and the first one in a segment that of page tables too:
// more than all else of a steal. So a worker reads where its stacks, slots and records will lie, and those of
// its next neighbours, whose threads it will copy. A process gets 24 KiB of page tables for each segment,
// hence `neighbours`. Where workers share CPUs, a switch between them costs more than this saves.
// Called by: idleness. Test: tests/sched/first_touches_test.cpp.
#pragma once

#include "sched/site.hpp"

namespace godwit::sched {

class first_touches {
 public:
  static constexpr std::uint32_t neighbours = 8;
  /// Of the region, from its high end, and of the heap, from its low end: what small threads need.
  static constexpr std::uint64_t bytes = 16 << 10;

  explicit first_touches(const site& here) noexcept : here_(here) {}
  /// Touches the own pieces and those of the next neighbour.
  void init() noexcept;
  bool more() const noexcept { return next_ != end_; }
  /// The next piece. Cost: some microseconds.
  void next() noexcept;

 private:
  const site& here_;
  std::uint32_t next_ = 0, end_ = 0;  ///< pieces, three of each worker: its own first, then its neighbours'
};

}  // namespace godwit::sched
