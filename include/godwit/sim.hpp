// Programs in the simulator (substrate sim): what they have to say about time. See docs/scale.md.
//
// Everything here does nothing on other substrates, at the cost of one compare.
#pragma once

#include <cstdint>

namespace godwit {

namespace detail {
extern bool simulated;  ///< the run that is going on is on substrate sim
void sim_charge(std::uint64_t ns) noexcept;
std::uint64_t sim_now_ns() noexcept;
}  // namespace detail

namespace sim {

/// The calling thread computes for @p ns nanoseconds of virtual time. On other substrates: nothing. With
/// sim_clock=measured or counted, where it counts what the code really does: nothing. Local.
inline void charge(std::uint64_t ns) noexcept {
  if (detail::simulated) detail::sim_charge(ns);
}

/// Virtual time of the calling thread's worker, in nanoseconds since the run began; 0 on other substrates.
/// Local.
inline std::uint64_t now_ns() noexcept { return detail::simulated ? detail::sim_now_ns() : 0; }

}  // namespace sim
}  // namespace godwit
