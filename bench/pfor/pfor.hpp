// PFor: K parallel loops, one after the other. RecPFor: the same in a recursion over halves, so that much
// work waits behind every join. A loop is a binary recursion down to single iterations, each of which is
// compute(M).
//
// Every iteration gives back a number of its own, and joins add them up: a lost, doubled or misplaced one
// shows.
// Source: "Distributed continuation stealing is more scalable than you might think", IV-C, figure 5.
#pragma once

#include <cstdint>
#include <string>

#include "compute.hpp"

namespace pfor {

enum class kind { loops, recursive };

/// What a run computes.
struct problem {
  kind what;
  std::uint32_t n;       ///< iterations of a loop; a power of two if recursive
  std::uint32_t k;       ///< loops
  std::uint64_t rounds;  ///< of compute, per iteration
};

/// The number of iteration @p i of loop @p k (the single iteration at the end of RecPFor counts as loop K).
inline std::uint64_t number_of(std::uint32_t i, std::uint32_t k) noexcept {
  std::uint64_t x = (std::uint64_t{k} << 32 | i) + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 27);
}

inline std::uint64_t iteration(std::uint32_t i, std::uint32_t k, std::uint64_t rounds) noexcept {
  compute(rounds);
  return number_of(i, k);
}

/// Calls of compute: T1 in units of M.
std::uint64_t iterations(const problem& p);
/// The sum that every schedule must give.
std::uint64_t expected(const problem& p);

/// The same recursion with calls instead of threads.
std::uint64_t calls(const problem& p);
/// In godwit under a policy, as a root thread calls it.
std::uint64_t (*threads_under(const std::string& policy))(const problem& p);

}  // namespace pfor
