// Deadlines, as events.cpp and calls that wait see them. See godwit/detail/timer.hpp for those who set them.
#pragma once

#include "io/suspension.hpp"

namespace godwit::events {

inline constexpr std::uint64_t never = ~std::uint64_t{0};

/// The earliest deadline, `never` if there is none. Any worker; one load.
std::uint64_t next_deadline() noexcept;
/// The caller is about to sleep until @p until at most: gives back the earlier of that and the next deadline,
/// and from then on whoever sets an earlier one interrupts it (TM1).
std::uint64_t begin_sleep(std::uint64_t until) noexcept;
void end_sleep() noexcept;
/// Call `expired` of all timers whose deadline has passed. Any worker that may make threads ready.
void expire(std::uint64_t now) noexcept;
/// Cancellable timers expire at once. CA5
void hasten_timers() noexcept;
/// Forget all: the run is over.
void clear_timers() noexcept;

/// Suspend the caller until s.end() or @p deadline_ns (0: none). False: disturbed, see suspension::suspend.
/// @p expired: the deadline came. May migrate.
bool suspend_until(suspension& s, std::uint64_t deadline_ns, const char* what, bool& expired) noexcept;

}  // namespace godwit::events
