// Who moves parts of movable memory to this worker's host: docs/protocols/move.md, Move. A move is a pull:
// it is done by a worker of the host that the part goes to, from beginning to end.
//
// Called by src/runtime/global_path.cpp. Tests: tests/global/move_test.cpp.
#pragma once

#include "gas/allocator.hpp"
#include "gas/cache.hpp"

#include <godwit/detail/global_path.hpp>

#include <cstdint>
#include <optional>

namespace godwit::gas {

class mover {
 public:
  mover(const reach& net, directory& blocks, allocator& budgets, cache& copies, worker_stats& stats) noexcept
      : net_(net), blocks_(blocks), budgets_(budgets), cache_(copies), stats_(stats) {}

  /// Everything movable in the range, part by part, to worker @p to, which is of this host. The result that
  /// says most: no_room before busy before moved before already_there. Cost: a part of this host's some ns,
  /// of another one four round trips and its bytes.
  move_result pull(global_address at, std::uint64_t bytes, std::uint32_t to);

  /// Now and then the part that @p at lies in, if it is movable and this thread holds nothing.
  void pull_at_random(global_address at);

 private:
  move_result pull_one(const piece& p, std::uint32_t to);
  std::optional<move_result> reassign(const piece& p, std::uint32_t to);
  ownership freeze(const piece& p, std::uint32_t to, part& source, std::uint64_t since);
  void settle(const piece& p, const part& source, ownership now);
  /// One message to where @p to is believed to be.
  place_answer call(const part& to, place_call what, const far_move& m);

  const reach& net_;
  directory& blocks_;
  allocator& budgets_;
  cache& cache_;
  worker_stats& stats_;
  std::uint64_t random_ = 0x9e3779b97f4a7c15;
};

}  // namespace godwit::gas
