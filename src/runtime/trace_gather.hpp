// A trace of several ranks: the clocks of their hosts compared by messages, their events sent to the first
// rank.
//
// Collective, between the other messages of a run (tags of their own). Only in traced runs.
// Called by: run_mpi.cpp. Document: docs/tracing.md. Tests: tests/trace/clock_test.cpp (the arithmetic),
// tests/mpi/trace_test.sh (hosts whose clocks differ).
#pragma once

#include "runtime/mpi_session.hpp"
#include "runtime/trace_output.hpp"
#include "trace/clock_sync.hpp"

#include <span>
#include <vector>

namespace godwit::runtime {

/// By rank: its clock against that of the first rank, where workers of its host are traced. In the other
/// ranks: empty. @p of_rank: the workers of each rank. Collective, about 100 round trips per traced host.
/// Throws std::runtime_error when MPI fails.
std::vector<trace::clock_offset> compare_clocks(const mpi_session& session, const trace_sample& sample,
                                                std::span<const transport::shm::near_range> of_rank);

/// In the first rank: append everybody's events to @p outputs, times in its own clock, which @p before and @p
/// after the run were compared. Collective; bounded memory. Throws std::runtime_error.
void gather_events(const mpi_session& session, run_outputs* outputs, const trace_rings& rings,
                   std::span<const transport::shm::near_range> of_rank,
                   const std::vector<trace::clock_offset>& before,
                   const std::vector<trace::clock_offset>& after);

}  // namespace godwit::runtime
