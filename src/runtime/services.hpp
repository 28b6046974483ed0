// What the companion of this rank does for other hosts in the name of its workers: joins the companion
// (transport/mpi, knows messages) with the calls of the layers (sched/far_calls.hpp knows threads,
// gas/places.hpp memory that moves).
//
// Made by run_mpi.cpp in ranks that have workers; docs/protocols/far.md. Tests: tests/mpi/.
#pragma once

#include "base/random.hpp"
#include "runtime/family.hpp"
#include "runtime/worker_process.hpp"
#include "sched/far_calls.hpp"
#include "transport/mpi/companion.hpp"

#include <cstddef>
#include <memory>

namespace godwit::runtime {

class services final : public transport::mpi::host_services {
 public:
  /// @p memory, @p window: as this host sees them. @p workers: of this rank, forked later; null: they are no
  /// processes.
  services(launch& what, const transport::shm::segment& memory, std::byte* window, const family* workers);

  /// What others ask the channel of this host.
  void enter_calls_of(transport::net::channel& by_block) { by_block.enter_calls(calls_); }

  std::byte* carry_out(transport::far::entry& e, std::unique_ptr<std::byte[]>& room) noexcept override;
  bool runs(transport::worker_no w) noexcept override;
  void alert(transport::worker_no w) noexcept override;
  void release_room(transport::worker_no w, std::byte* bytes) noexcept override;

 private:
  const family* workers_;
  const transport::shm::segment& memory_;
  base::small_random random_;
  sched::call_site site_;
  gas::place_site places_;
  transport::far::call_table calls_;
};

}  // namespace godwit::runtime
