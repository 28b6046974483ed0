// A deadline of a thread that waits. Not an interface for users: src/seams/timer.hpp says what is done with
// it.
#pragma once

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

}  // namespace godwit::detail
