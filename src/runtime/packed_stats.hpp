// Workers' counters in few bytes: how they travel to the first rank at the end of a run of several ranks.
// Most counters of a worker are zero, or small.
// Called by run_mpi.cpp; run_sim.cpp asks what real ranks would send. Test:
// tests/runtime/packed_stats_test.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <godwit/runtime.hpp>

namespace godwit::runtime {

/// One after the other: of the words of each, how many are zero before the next one that is not, and that
/// one, seven bits a byte.
std::vector<std::byte> pack(std::span<const worker_stats> of);
/// @p packed may have more bytes behind what is needed. Throws std::runtime_error if it is nothing that pack
/// has made of so many.
void unpack(std::span<const std::byte> packed, std::span<worker_stats> to);

}  // namespace godwit::runtime
