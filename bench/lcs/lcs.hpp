// LCS: the length of the longest common subsequence of two strings of random bytes, by recursive
// decomposition into quarters that futures connect.
//
// A block of C x C needs the lower boundary of the block above it and the right boundary of the block to its
// left, and gives its own two. Quarters get *futures* of their neighbours, so that a block starts when these
// two are done and not when a whole quadrant is. Source: "Distributed continuation stealing is more scalable
// than you might think", V-D, figures 10 and 11. Document: docs/performance.md. Test: bench/CMakeLists.txt
// (bench.lcs).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lcs {

/// The strings, made before the run: every worker reads its own copy.
struct problem {
  std::vector<unsigned char> a, b;
  std::uint32_t n = 0;  ///< length of both: cutoff times a power of two
  std::uint32_t c = 0;  ///< cutoff: the side of the blocks that are computed by a loop
};
extern problem the_problem;

/// Two random strings; the same in all ranks. Alphabet: all 256 bytes, as in the paper.
problem random_problem(std::uint32_t n, std::uint32_t c, std::uint64_t seed);

/// A boundary of a block: n + 1 values, the corner first. Empty: the edge of the matrix, all zero.
using boundary = std::vector<std::uint32_t>;

/// One block by the recurrence, (i, j) its first cell. Gives the lower and the right boundary.
struct boundaries {
  boundary bottom, right;
};
boundaries block_by_rows(const problem& p, std::uint32_t i, std::uint32_t j, const boundary& top,
                         const boundary& left);

/// All blocks, one after the other: the serial reference, whose time over the number of blocks is Tc.
std::uint32_t by_blocks(const problem& p);
/// The textbook, without blocks: what all results are compared with.
std::uint32_t by_rows(const problem& p);

/// In godwit under a policy, as a root thread calls it. Null if the policy has no futures.
std::uint32_t (*futures_under(const std::string& policy))();

}  // namespace lcs
