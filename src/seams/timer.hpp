// Deadlines for suspended threads: sleep, timed waits, I/O with a time limit. Substrate threads only.
//
// A seam: src/sync, src/io and integrations/pthread call it; implemented in src/io/timers.cpp. Served by
// the same event source as I/O (park.hpp), so a thread that waits with a timer is parked with
// wakes::outside, whoever wakes it in the end.
#pragma once

#include <godwit/detail/timer.hpp>

#include "seams/park.hpp"

namespace godwit::detail {

/// From then on expired will be called, unless stop_timer comes first. Not for a timer that runs. Cost: O(log
/// timers) under a lock.
void start_timer(timer* t) noexcept;

/// True: expired will not be called (any more). False: it has been called, and has come back. Must not be
/// called with a lock held that expired takes.
bool stop_timer(timer* t) noexcept;

/// The same. It expires sooner when the calling thread has to stop; rarely for nothing, too: the caller asks,
/// and starts again. CA5
void start_cancellable_timer(timer* t) noexcept;

/// Suspend the calling thread until then. True. (False: outside a run on substrate threads; nothing was
/// done.)
bool sleep_until_ns(std::uint64_t deadline_ns, const place& where) noexcept;
/// The same with a cancellable timer.
bool doze_until_ns(std::uint64_t deadline_ns, const place& where) noexcept;

}  // namespace godwit::detail
