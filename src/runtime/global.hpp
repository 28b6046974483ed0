// Global memory of a run: its window, made before the fork, and each worker's part in it. See
// src/gas/memory.hpp.
#pragma once

#include "gas/heat.hpp"
#include "gas/memory.hpp"
#include "sched/worker.hpp"
#include "transport/shm/window.hpp"

#include <cstdint>

namespace godwit::runtime {

/// Bytes of addresses to use: what the options say; if they say nothing, as much of the default as can be had
/// here.
std::uint64_t choose_global_bytes(const options& opts) noexcept;
/// Divide the space of @p bytes. Throws std::invalid_argument if the options leave no room for so many
/// workers.
gas::space plan_global(const options& opts, std::uint64_t bytes, std::uint32_t workers);
// @p window: where this host's begins.
/// Fill in what all workers of this host find. Once per host, before the fork, in the process that made the
/// window. @p hosts: so many share this machine's memory.
void prepare_global(std::byte* window, const options& opts, std::uint32_t hosts = 1);

/// Where this host carries out what others ask of its part of movable memory.
gas::place_site places_of(const transport::shm::segment& memory, std::byte* window, const gas::space& where,
                          const options& opts) noexcept;

/// Of this host: host_words::life.
const transport::word* life_of(std::byte* window) noexcept;

/// What is written of the run says how movable memory was used, if there are several hosts.
bool tells_heat(const options& opts) noexcept;
/// On this host, when the run is over.
gas::heat_sums heat_of(std::byte* window) noexcept;

/// In a worker, after its scheduler is there.
void start_global(std::byte* window, const gas::space& where, const options& opts,
                  const sched::job_shape& job);
/// At the end of a worker: what it has to complain about.
void end_global() noexcept;
/// With several hosts: global memory sees threads come and go by these hooks of the scheduler.
void hook_global(sched::worker_hooks& hooks, const options& opts) noexcept;
/// And it says where threads that were sent to it are to begin.
void hook_parcels(sched::worker_hooks& hooks) noexcept;

/// Of the calling worker; outside a run it ends with a line that names @p what.
gas::memory& memory_of(const char* what);
/// Where ordinary memory is that algorithms were called with (ordinary.cpp); null: @p at is global memory.
std::byte* ordinary(detail::global_address at) noexcept;
/// The allocation of a range that must be movable memory. Throws std::invalid_argument, which names @p doing.
const gas::descriptor& movable_range(gas::memory& m, gas::global_address at, std::uint64_t bytes,
                                     const char* doing);

}  // namespace godwit::runtime
