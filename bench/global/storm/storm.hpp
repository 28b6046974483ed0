// Storm: threads that use words of a few movable blocks in every way there is, and move the blocks meanwhile.
//
// After guppie of HPX-5, with what that leaves out: everything that is read is compared with what it must be,
// and every word at the end. A thread's next step follows from its number, so what the words must be is known
// without running anything. Words are added to by all threads, or belong to one of them, side by side in the
// same blocks. Document: docs/results/README.md. Tests: bench/CMakeLists.txt (bench.global_storm),
// tests/bench (mpi.global_storm).
#pragma once

#include <cstdint>
#include <godwit/godwit.hpp>

namespace storm {

namespace gw = godwit;

constexpr std::uint64_t page_bytes = 4096, word_bytes = 8;

struct settings {
  std::uint64_t words = 0;
  std::uint64_t blocks = 8;  ///< that the words are divided into; at least a page each
  std::uint64_t moves = 0;   ///< of all threads
  unsigned percent = 1;      ///< so many moves for 100 updates
  std::uint32_t threads = 0;
  std::uint64_t seed = 0;

  std::uint64_t block_bytes() const noexcept {
    const std::uint64_t even = (words + blocks - 1) / blocks * word_bytes;
    return (even + page_bytes - 1) / page_bytes * page_bytes;
  }
  std::uint64_t moves_each() const noexcept { return (moves + threads - 1) / threads; }
  std::uint64_t updates_each() const noexcept { return moves_each() * 100 / percent; }
};

/// What the threads did. Plain: it leaves the run.
struct outcome {
  std::uint64_t updates = 0;
  std::uint64_t accesses = 0;  ///< gets, puts, atomics: each at most some messages
  std::uint64_t moved = 0, there = 0, busy = 0, no_room = 0;  ///< moves, by their result
  std::uint64_t wrong_reads = 0;                              ///< by a thread, of its own words
  std::uint64_t wrong_words = 0;                              ///< at the end
  std::uint64_t wrong_budgets = 0;  ///< hosts' words of what is in use, other than before the allocation
  double seconds = 0;               ///< updates and moves

  bool right() const noexcept { return wrong_reads + wrong_words + wrong_budgets == 0 && no_room == 0; }
  void add(const outcome& o) noexcept {
    updates += o.updates;
    accesses += o.accesses;
    moved += o.moved;
    there += o.there;
    busy += o.busy;
    no_room += o.no_room;
    wrong_reads += o.wrong_reads;
    wrong_words += o.wrong_words;
    wrong_budgets += o.wrong_budgets;
    seconds += o.seconds;
  }
};

/// Of a thread's own words: some runs, each beside words that all add to.
constexpr std::uint64_t runs_of_thread = 4, run_words = 8, group_words = 2 * run_words;
/// Threads that so many words have room for.
constexpr std::uint64_t most_threads(std::uint64_t words) noexcept {
  return words / group_words / runs_of_thread;
}

/// As a root thread, or a thread of one.
outcome run(const settings& s);

}  // namespace storm
