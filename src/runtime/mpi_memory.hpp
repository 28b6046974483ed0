// The memory of a run whose workers are ranks' children: files that the ranks of a host share, mapped at
// addresses that are free in all ranks.
//
// Called by run_mpi.cpp, by all ranks at once. Document: docs/architecture.md, Ranks and hosts. Tests:
// tests/mpi/.
#pragma once

#include "runtime/mpi_session.hpp"
#include "runtime/placement.hpp"
#include "runtime/run_common.hpp"

#include <string>

namespace godwit::runtime {

class mpi_memory {
 public:
  mpi_memory(const mpi_session& session, const placement& place) noexcept
      : session_(session), place_(place) {}

  // Collective. Throw in all ranks alike.
  void share_segments(run_state& r) const;
  void share_global(run_state& r) const;
  /// Those of a host, if they can and shall.
  void share_heap(run_state& r) const;

 private:
  template <class Memory, class Mapped, class... Kind>
  void share(Memory& memory, std::uint64_t bytes, const char* no_base, Mapped&& mapped,
             const Kind&... kind) const;
  std::string path_in_host(const std::string& path) const;
  bool has_workers() const { return place_.has_workers(); }
  int leader() const { return place_.ranks_of[place_.my_host].front(); }
  bool is_leader() const { return has_workers() && leader() == session_.rank(); }

  const mpi_session& session_;
  const placement& place_;
};

}  // namespace godwit::runtime
