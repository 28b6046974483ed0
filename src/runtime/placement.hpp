// Which worker belongs to which rank and host. Computed alike in all ranks; no communication.
//
// Ranks get equal shares, the first ones one more. Worker numbers follow the hosts, and those the lowest rank
// of each: so the workers of a host are one range, and worker 0 is on rank 0. Called by run_mpi.cpp.
// Document: docs/cluster.md. Test: tests/runtime/placement_test.cpp.
#pragma once

#include "transport/shm/segment.hpp"

#include <godwit/options.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace godwit::runtime {

/// Which ranks can share memory. Machines are numbered by their lowest ranks.
struct machine_table {
  std::vector<std::uint32_t> of_rank;
  std::vector<int> first_rank;  ///< by machine

  machine_table() = default;
  /// @p hashes: by rank, one or more; equal on one machine. Cost: linear.
  explicit machine_table(std::span<const std::uint64_t> hashes);
};

struct placement {
  static constexpr std::uint32_t no_host = ~0u;

  std::vector<transport::shm::near_range> of_rank;  ///< by rank: its workers
  std::vector<transport::shm::near_range> hosts;    ///< workers of each host that has any, in their order
  std::vector<std::vector<int>> ranks_of;           ///< by host: its ranks with workers, in their order
  std::uint32_t my_host = no_host;                  ///< no_host if this rank has no workers
  std::uint32_t workers = 0;

  /// @p me: the rank that asks. Of @p opts count workers (0: one per rank) and hosts (auto: each of
  /// @p machines is one; else every rank). Cost: linear in ranks.
  placement(const machine_table& machines, int me, const options& opts);

  bool has_workers() const noexcept { return my_host != no_host; }
};

/// @p companions of a host carry the requests of its @p ranks, each for as many neighbours as the others, or
/// one less. The first of those among whom the @p i-th is: its companion does it.
constexpr std::uint32_t carrier_of(std::uint32_t i, std::uint32_t ranks, std::uint32_t companions) noexcept {
  const std::uint64_t n = std::min(companions, ranks), group = i * n / ranks;
  return static_cast<std::uint32_t>((group * ranks + n - 1) / n);
}

}  // namespace godwit::runtime
