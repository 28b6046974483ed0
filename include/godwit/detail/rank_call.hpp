// What a rank's process and its workers share of on_rank. Document: docs/cluster.md.
#pragma once

#include <godwit/detail/hot.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace godwit {

/// Which of the run's ranks a function runs in; on one machine without MPI there is one.
struct rank {
  std::uint32_t number = 0;
  std::uint32_t count = 1;
};

namespace detail {

/// In the words of the first worker of each rank. One call at a time in the whole run.
struct rank_call {
  enum state : std::uint64_t { free, asked, running, done };
  static constexpr std::size_t closure_bytes = 256;

  std::atomic<std::uint64_t> now;    ///< a state. W that worker: free, asked; the rank: running, done
  void (*run)(void* closure, rank);  /// W as now, like all that follows
  rank here;
  std::uint64_t letter;  ///< to that worker: it is put into its box when it is done
  char error[256];       ///< what came out of it; empty: it returned
  alignas(64) std::byte closure[closure_bytes];
};

/// On the first worker of a rank: fills in run and closure, or says in error why it cannot.
using rank_prepare = void(const void* closure, rank_call& call);
/// Until all ranks have called what @p prepare makes there.
void run_on_ranks(rank_prepare* prepare, const void* closure, std::size_t bytes);
/// What lies with the workers of this rank of [at, at + bytes), which must be one range. Gives back its
/// bytes.
std::uint64_t part_of_rank(std::uint64_t at, std::uint64_t bytes, void** begin, rank_call& call) noexcept;

}  // namespace detail
}  // namespace godwit
