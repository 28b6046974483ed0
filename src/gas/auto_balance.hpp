// Parts of movable memory come by themselves to the host that uses them: an idle worker looks now and then at
// some parts of some allocation, and pulls those that its host uses most (wanted_by in
// include/godwit/rebalance.hpp). Option rebalance; with one host there is nothing to do.
//
// Nobody knows of these moves, so who frees memory must not meet them: both take the lock `balance_lock` of
// the job (BA1). A look has it from before it sees that the allocation is live until its parts have arrived;
// a free while the allocation goes. So one host looks at a time, for some milliseconds at most: parts in use
// are not waited for. Who waits for the lock serves others and holds nothing.
//
// Called by src/runtime/global_path.cpp (idle workers) and memory.hpp (free). docs/moving.md. Tests:
// tests/global/rebalance_test.cpp under MPI.
#pragma once

#include "gas/mover.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace godwit::gas {

class auto_balance {
 public:
  auto_balance(const reach& net, const space& where, directory& blocks, mover& moves, bool on) noexcept
      : net_(net), where_(where), blocks_(blocks), mover_(moves), on_(on) {}

  bool on() const noexcept { return on_; }
  /// By an idle worker; does something if the host did nothing for `every_ns`. Some messages then.
  void look();
  /// Call @p f while nobody looks: BA1.
  template <class F>
  void without_looks(F&& f) {
    for (later more(net_); !try_lock();) more.wait();
    f();
    unlock();
  }

 private:
  static constexpr std::uint64_t every_ns = 100'000'000;
  static constexpr std::uint64_t most_bytes = 6 << 20;  ///< at a time: 60 MiB per second and host
  static constexpr std::uint64_t most_parts = 1024;     ///< looked at, likewise
  static constexpr std::uint64_t most_granules = 4096;
  static constexpr std::uint64_t patience_ns = 1'000'000;

  bool try_lock() const noexcept {
    std::uint64_t nobody = 0;
    return net_.remote_compare_exchange(0, net_.host().balance_lock, nobody, std::uint64_t{net_.me()} + 1);
  }
  void unlock() const noexcept { net_.remote_store(0, net_.host().balance_lock, 0); }
  /// The next live movable allocation that this host knows of, from the host's place on. Null: none.
  const descriptor* next();
  void look_at(const descriptor& d);

  const reach& net_;
  const space& where_;
  directory& blocks_;
  mover& mover_;
  const bool on_;
};

}  // namespace godwit::gas
