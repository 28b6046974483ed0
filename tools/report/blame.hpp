// What ran while other workers were idle: who is to be divided, spawned earlier, or made larger.
//
// At every moment in which workers have nothing to run, the longest of the pieces of threads that run is
// taken for the reason: a shorter one would have ended, or spawned, before. Not while a worker offers
// something: then thieves are late, as on a busy machine. Pieces are put together by name. Called by:
// walker.hpp, read by verdict.cpp. Document: docs/report.md. Test: tests/report/blame_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

namespace godwit::report {

inline constexpr std::uint32_t nothing = 0xffffffff;

struct analysis;

/// Pieces of one name.
struct culprit {
  std::uint32_t name = nothing;    ///< index into analysis::names
  bool own_name = false;           ///< the program's own
  bool spawns = false;             ///< each ended with a spawn whose continuation was taken at once
  bool resumed = false;            ///< the longest began behind a wait
  std::uint64_t lost_ns = 0;       ///< of workers that were idle because of them
  std::uint64_t most_lost_ns = 0;  ///< of that, because of a single one
  std::uint64_t alone_ns = 0;      ///< nothing else ran
  std::uint64_t from = 0, to = 0;  ///< where nothing else ran for longest
  std::uint64_t longest_ns = 0;    ///< also of those that kept nobody waiting
  std::uint64_t pieces = 0;        ///< likewise; that steals had left behind
};

struct blame {
  std::uint64_t lost_ns = 0;     ///< of idle workers that had no work, waited at joins or got threads
  std::uint64_t offered_ns = 0;  ///< of that, while they could have taken something: nobody's fault
  std::vector<culprit> names;    ///< the largest first
};

/// Cost: some 100 ns for each piece of a time line.
blame what_ran_while_idle(const analysis& a);

/// Time of one name in the chain of threads that ended last.
struct chain_part {
  std::uint32_t name;
  std::uint64_t ns;
};
/// The largest first.
std::vector<chain_part> parts_of_chain(const analysis& a);

}  // namespace godwit::report
