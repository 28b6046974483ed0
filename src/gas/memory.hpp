// Global memory of one worker: its parts put together. Knows no scheduler.
//
//   directory   whose is it: find, home, owner, distribution         directory.hpp
//   allocator   give out and take back                               allocator.hpp, arena.hpp, extents.hpp
//   access      get, put, checkout, atomics, through the cache       access.hpp, cache.hpp, parts.hpp
//   balance     the same, by itself                              auto_balance.hpp, heat.hpp
//   begun       checkouts that are begun, and completed later        begun.hpp
//   mover       parts of movable memory to this host                 mover.hpp, places.hpp
//   hints       whom to ask for parts of it                          translations.hpp
//
// All stand on reach.hpp (how to get at the memory of any host) and space.hpp (what lies where); checks.hpp
// looks for mistakes. Documents: docs/global-memory.md, docs/memory-model.md, docs/protocols/global.md. Made
// by src/runtime/global_path.cpp.
#pragma once

#include "gas/access.hpp"
#include "gas/allocator.hpp"
#include "gas/auto_balance.hpp"
#include "gas/begun.hpp"
#include "gas/mover.hpp"
#include "gas/translations.hpp"

namespace godwit::gas {

struct memory {
  /// @p check: check_global. @p force: force_move. @p balances: rebalance. @p how but its hints.
  memory(reach_setup how, const gas::space& space, bool check, bool force, bool balances,
         const cache_setup& copies, const translation_setup& known)
      : hints(*copies.stats, known),
        net((how.hints = &hints, how)),
        where(space),
        directory(net, where),
        checks(net, where, directory, check),
        allocator(net, where, directory, checks, force),
        access(net, directory, checks, copies),
        begun(net, directory, allocator, access),
        mover(net, directory, allocator, access.copies(), *copies.stats),
        balance(net, where, directory, mover, balances && net.several_hosts()),
        force_moves(force && net.several_hosts()) {
    GODWIT_ASSERT(how.me < where.homes && how.workers == where.homes, "each worker is a home");
    GODWIT_ASSERT(where.local_low < where.shared_low && where.shared_low < where.bytes,
                  "local memory lies below distributed memory");
  }
  memory(const memory&) = delete;  // its parts know each other

  /// force_move: before an access to what begins at @p at.
  void before_access(global_address at) {
    if (force_moves) mover.pull_at_random(at);
  }
  void free(global_address at, std::uint64_t bytes, detail::place place) {
    if (at == 0) return;
    access.release();  // else what is dirty would be written into the next allocation here
    if (balance.on() && where.is_shared(at))
      balance.without_looks([&] { allocator.free(at, bytes, place); });
    else
      allocator.free(at, bytes, place);
  }
  /// When all workers have found that the run is over, by one of them: how movable memory was used that
  /// nobody has freed.
  void note_heat_of_rest() {
    if (balance.on())
      balance.without_looks([&] { allocator.note_heat_of_all(); });
    else
      allocator.note_heat_of_all();
  }
  /// After a run without an error, when no worker of this host does anything any more; by each worker.
  void check_invariants() const {
    allocator.check_invariants();
    // What belongs to the host is looked at by its first worker.
    if (net.me() != net.first_of(net.my_host())) return;
    GODWIT_CHECK(net.host().check_lock.load(std::memory_order_relaxed) == 0, "nobody looks at checkouts");
    access.check_invariants();
  }

  translations hints;
  const reach net;
  const space where;
  gas::directory directory;
  gas::checks checks;
  gas::allocator allocator;
  gas::access access;
  begun_checkouts begun;
  gas::mover mover;
  auto_balance balance;
  const bool force_moves;
};

}  // namespace godwit::gas
