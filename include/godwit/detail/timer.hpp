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
  void* arg = nullptr;   ///< for expired
  bool hastens = false;  ///< expires at once when a scope is cancelled, whichever. start_cancellable_timer
  // Of the timers' own.
  std::uint64_t place_ = 0;
  std::uint32_t state_ = 0;
};

/// When the calling thread has to stop (godwit::cancelled), as far as that is known now.
struct stop_time {
  bool may_come;        ///< it is in a scope, and not being unwound
  std::uint64_t at_ns;  ///< of CLOCK_MONOTONIC; 0: now; never: not known
  static constexpr std::uint64_t never = ~std::uint64_t{0};
};
/// Cost: some ns in no scope; else a walk over the scopes.
stop_time when_to_stop() noexcept;

}  // namespace godwit::detail
