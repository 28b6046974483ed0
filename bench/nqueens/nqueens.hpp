// N queens in the style of the Barcelona OpenMP Tasks Suite: count all ways to place n queens; every safe
// place in the next row is a task with its own copy of the board.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace nqueens {

inline constexpr int most = 18;  ///< larger boards take months

/// Column of the queen of every row so far. Copied into every child.
struct board {
  std::int8_t column[most];
};

/// Is a queen at (row, c) safe from those above? The same check for all variants.
[[gnu::always_inline]] inline bool safe(const board& b, int row, int c) {
  for (int above = 0; above < row; ++above) {
    const int other = b.column[above];
    const int distance = row - above;
    if (other == c || other == c - distance || other == c + distance) return false;
  }
  return true;
}

/// Are the first @p rows queens safe from each other? Every pair is looked at, as in Cilk's and Itoyori's
/// example.
[[gnu::always_inline]] inline bool all_safe(const board& b, int rows) {
  for (int i = 0; i < rows; ++i)
    for (int j = i + 1; j < rows; ++j) {
      const int one = b.column[i], other = b.column[j], distance = j - i;
      if (other == one || other == one - distance || other == one + distance) return false;
    }
  return true;
}

/// A copy of @p b with a queen at (row, c): what a task gets.
[[gnu::always_inline]] inline board placed(const board& b, int row, int c) {
  board next = b;
  next.column[row] = static_cast<std::int8_t>(c);
  return next;
}

std::uint64_t calls(int n);
/// The same, and every pair of queens is looked at for each place: Itoyori's example does that.
std::uint64_t calls_by_pairs(int n);
/// In godwit under a policy.
std::uint64_t (*spawn_join_under(const std::string& policy))(int n);
/// In godwit in the form of Itoyori's example: a parallel sum over the columns, safe or not, that looks at
/// every pair.
std::uint64_t by_pairs(int n);
std::uint64_t tbb(int n, unsigned workers);
std::uint64_t openmp(int n, unsigned workers);

struct library {
  std::string name;
  std::uint64_t (*count)(int n, unsigned workers);
};
std::uint64_t lace(int n, unsigned workers);  ///< where it was found, as the next one
std::uint64_t libfork(int n, unsigned workers);
/// Other libraries that were found: of threads, Lace, libfork.
std::vector<library> libraries();

/// Known numbers of solutions.
inline constexpr std::array<std::uint64_t, most + 1> solutions = {
    1,   1,    0,     0,     2,      10,      4,        40,       92,       352,
    724, 2680, 14200, 73712, 365596, 2279184, 14772512, 95815104, 666090624};

}  // namespace nqueens
