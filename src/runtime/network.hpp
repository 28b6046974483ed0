// What a run needs besides the companions' channels of datagrams: their addresses, the switch, and its
// process if it is one of ours.
//
// Made by run_mpi.cpp where --godwit-directory asks for it; the channel itself: transport/net/channel.hpp.
// Document: docs/switch.md. Tests: tests/global/routed_test.cpp under MPI.
#pragma once

#include "runtime/mpi_session.hpp"
#include "runtime/placement.hpp"
#include "transport/net/channel.hpp"

#include <godwit/options.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <sys/types.h>

namespace godwit::runtime {

class network {
 public:
  /// What is wrong with the options of @p opts that it needs; empty: nothing. Local.
  static std::string problem_of(const options& opts);

  network() = default;
  ~network();
  network(const network&) = delete;

  /// Collective. @p life: of the host that this rank's channel is for; null: it has none. Throws
  /// std::runtime_error, in all ranks.
  void start(const mpi_session& session, const placement& place, const options& opts, std::uint64_t run,
             const transport::word* life);

  /// Null: this rank has none.
  transport::net::channel* channel() noexcept { return channel_.get(); }
  /// Why the run cannot go on; empty: it can. Local.
  std::string problem();

 private:
  transport::net::address start_relay(transport::net::address own, std::uint64_t seed);

  std::unique_ptr<transport::net::channel> channel_;
  pid_t relay_ = -1;
};

}  // namespace godwit::runtime
