// What the network between two hosts can do, measured at start: round trip of a message, RMA while the target
// computes, speed of RMA's atomics. Source: peers of the papers all assume one-sided RMA; docs/results shows
// who has it.
#pragma once

#include "transport/mpi/companion.hpp"

namespace godwit::transport::mpi {

struct link_quality {
  double round_trip_us = 0;  ///< 8-byte message there and back, both sides waiting in MPI: median
  bool rma_works = false;
  double atomic_us = 0;       ///< fetch and add, target waiting in MPI: median
  double atomic_busy_us = 0;  ///< the same while the target computes for busy_us: longest
  double busy_us = 0;
  std::string rma_error;  ///< why RMA does not work
  /// An RMA operation does not wait for the target's CPU.
  bool rma_is_one_sided() const noexcept { return rma_works && atomic_busy_us < busy_us / 4; }
};

/// Collective over all ranks; ranks 0 and @p partner, on different hosts, measure. The result is valid in
/// all.
/// @p with_rma: create a window, which some MPIs do not survive. Cost: about ten milliseconds.
link_quality measure_link(const component& mpi, int rank, int partner, bool with_rma);

/// The way that fits, unless the user chose.
way choose_way(const link_quality& q) noexcept;

}  // namespace godwit::transport::mpi
