// Heaps of several hosts in one process, whose workers take turns: the simulator.
//
// They lie side by side, as those of real hosts do, in memory that the process has from its first such run
// on, and of which a fork has a copy. Whose turn it is has the heap of its host: malloc and free find it
// where they find any worker's (`here`, `mine`). Workers of a host take turns on one OS thread, so they have
// one part. To free a block of another host is what would end a run on real hosts, and so it does here; loads
// and stores there are not noticed: all is this process's memory.
// Variables of the process may own blocks when the run is over. So these stay, with their heaps, which a
// later run has again. Any OS thread of the process may free them, but not while that later run is on.
// Called by src/runtime (run_sim.cpp). Document: docs/heap.md (Several hosts). Test:
// tests/heap/hosts_test.cpp.
#pragma once

#include "heap/layout.hpp"
#include "stack/stack.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace godwit::heap {

class hosts {
 public:
  /// Ends the run: whose turn it is frees @p at, a block of @p host, which is another one.
  using foreign_block = void(const void* at, std::uint32_t host) noexcept;

  /// Heaps for @p count hosts; or those of an earlier run, if they are as many and have blocks left. The
  /// first call maps that memory, of @p bytes. Nobody's turn. Throws std::runtime_error with cause and
  /// remedy.
  static hosts& begin(std::uint32_t count, std::uint64_t bytes, foreign_block* is_foreign);
  /// Of no run any more. Heaps in which a block is in use stay.
  static void end(hosts& h) noexcept;

  /// The calling OS thread is on @p host from now on: as a worker, which allocates there, or as who only
  /// frees. Local.
  void turn_of(std::uint32_t host, bool is_worker) noexcept;
  /// Back to the C library's malloc.
  void turn_of_nobody() noexcept;

  /// Of all hosts.
  stack::range addresses() const noexcept;

 private:
  friend struct blocks_elsewhere;

  hosts(std::uint32_t count, std::byte* base, std::uint64_t each) : base_(base), each_(each), heaps_(count) {}
  hosts(const hosts&) = delete;
  hosts& operator=(const hosts&) = delete;
  ~hosts() = default;

  /// Null: it is no block of any.
  static hosts* holding(const void* at) noexcept;
  std::byte* base_of(std::uint32_t host) const noexcept { return base_ + each_ * host; }
  std::byte* end_of_all() const noexcept { return base_of(static_cast<std::uint32_t>(heaps_.size())); }
  common* home_of(const void* at) const noexcept;
  /// Only a later run can use it, so that one frees it: an OS thread of the process must not change `here`.
  void free_later(void* at) noexcept;
  void free_now() noexcept;

  static constexpr std::uint32_t nobody_ = ~0u;
  /// What a change of turn needs of a heap: with many hosts no cache has the heaps themselves.
  struct heap_of_host {
    place at;  ///< nowhere: none of its workers has had a turn
    part* of_workers = nullptr;
  };

  hosts* next_ = nullptr;  // those in front of it
  std::byte* const base_;
  const std::uint64_t each_;         // bytes
  std::vector<heap_of_host> heaps_;  // by host
  std::uint32_t turn_ = nobody_;
  foreign_block* is_foreign_ = nullptr;
  std::atomic<block*> freed_{nullptr};  // by the process, not yet in its heap. W all, R begin and end
};

}  // namespace godwit::heap
