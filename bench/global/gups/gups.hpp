// GUPS: updates of random words of a table, as in the RandomAccess benchmark of HPC Challenge.
//
// Words of 8 bytes in pages of 2048 words, dealt out to the workers in turn; four updates per word: table[r &
// mask] ^= r, with r from HPCC's generator. Two updates of a word at once may lose one of them, which HPCC
// allows to happen to 1 % of the words; done atomically none is lost. Checked by doing all updates once more,
// which restores the table. Source: Active global address space (G10). Document: docs/results/README.md.
// Test: bench/CMakeLists.txt (bench.global_gups).
#pragma once

#include <cstdint>
#include <string>

#include "../parts.hpp"

namespace gups {

constexpr std::uint64_t page_words = 2048;
constexpr std::uint64_t most_batch = 1024;  ///< updates that may be looked ahead, by HPCC's rules

/// The sequence: r(0) = 1, r(i + 1) = 2 r(i), as polynomials over two elements modulo x^64 + x^2 + x + 1.
constexpr std::uint64_t next(std::uint64_t r) noexcept { return (r << 1) ^ ((r >> 63) != 0 ? 7u : 0u); }
/// r(i), in 64 x 64 steps.
std::uint64_t at(std::uint64_t i) noexcept;

struct settings {
  std::uint64_t words = 0;  ///< a power of two
  std::uint64_t updates = 0;
  std::uint64_t grain = 0;  ///< updates in a leaf
  std::uint64_t batch = 0;  ///< updates gathered and scattered together
  bool movable = false;     ///< pages may move, though none does
};

struct outcome {
  parts::phase updates;
  std::uint64_t wrong = 0;  ///< words
};

enum class way { values, atomics, batches };
constexpr way ways[] = {way::values, way::atomics, way::batches};
inline const char* name_of(way w) {
  return w == way::values ? "get and put" : w == way::atomics ? "atomic" : "gather, scatter";
}

/// One thread over private memory.
outcome serial(const settings& s);
/// As a root thread.
outcome ours(const settings& s, way how);

}  // namespace gups
