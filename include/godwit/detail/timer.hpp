// Deadlines for suspended threads: sleep, timed waits, I/O with a time limit. Substrate threads only.
//
// Not an interface for users. Implemented in src/io/timers.cpp; served by the same event source as I/O
// (park.hpp), so a thread that waits with a timer is parked with wakes::outside, whoever wakes it in the end.
#pragma once

#include <godwit/detail/park.hpp>

#include <cstdint>

namespace godwit::detail {

/// One deadline. Usually in the frame of the thread that waits.
struct timer {
  std::uint64_t deadline_ns = 0;  ///< of CLOCK_MONOTONIC
  /// called once by a worker that delivers events: must not suspend; may unpark
  void (*expired)(timer* self) noexcept = nullptr;
  void* arg = nullptr;  ///< for expired
  // Of the timers' own.
  std::uint64_t place_ = 0;
  std::uint32_t state_ = 0;
};

/// From then on expired will be called, unless stop_timer comes first. Not for a timer that runs. Cost: O(log
/// timers) under a lock.
void start_timer(timer* t) noexcept;

/// True: expired will not be called (any more). False: it has been called, and has come back. Must not be
/// called with a lock held that expired takes.
bool stop_timer(timer* t) noexcept;

/// Suspend the calling thread until then. True. (False: outside a run on substrate threads; nothing was
/// done.)
bool sleep_until_ns(std::uint64_t deadline_ns, const place& where) noexcept;

}  // namespace godwit::detail
