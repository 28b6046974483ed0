// What the ranks of a real run on several hosts exchange before its first thread and after its last one,
// and the simulator's workers do not: MPI's collective operations. An estimate from the machine file, with
// trees of ranks and no contention. docs/scale.md, "110,592 ranks". Tests: tests/sim/collectives_test.cpp;
// tests/mpi/collectives_test.sh counts them in a real run.
#pragma once

#include "sim/machine.hpp"

#include <cstdint>
#include <string_view>

namespace godwit::sim {

struct collective {
  std::string_view name;  ///< of MPI's function, without MPI_
  std::uint32_t calls;
  std::uint64_t bytes;       ///< that each rank brings, in all calls together
  std::uint64_t host_bytes;  ///< and so many more for each host
};

/// Of a run that asks for nothing special, way server: each rank, in all.
inline constexpr collective collectives_of_run[] = {
    {"Comm_dup", 1, 0, 0},      {"Allgather", 1, 8, 0},
    {"Allreduce", 25, 2200, 0}, {"Bcast", 11, 951, 64},  // the hosts' names
    {"Gather", 2, 8, 0},                                 // to the first rank: besides the counters
    {"Ibarrier", 4, 0, 0},  // one of them: the window of the measurement is done with
};

/// What they take on @p m. @p counters: bytes of a rank's counters as they travel to the first one, the most
/// of all ranks (runtime/packed_stats.hpp). The first rank gathers, so it grows with @p ranks in the end.
std::uint64_t collectives_ns(const machine& m, std::uint32_t ranks, std::uint32_t hosts,
                             std::uint64_t counters) noexcept;

}  // namespace godwit::sim
