// Plain recursion on one board: without tasks nobody needs a copy.

#include "nqueens.hpp"

namespace nqueens {

namespace {
std::uint64_t count(board& b, int row, int n) {
  if (row == n) return 1;
  std::uint64_t found = 0;
  for (int c = 0; c < n; ++c) {
    if (!safe(b, row, c)) continue;
    b.column[row] = static_cast<std::int8_t>(c);
    found += count(b, row + 1, n);
  }
  return found;
}
std::uint64_t count_by_pairs(board& b, int row, int n) {
  if (row == n) return 1;
  std::uint64_t found = 0;
  for (int c = 0; c < n; ++c) {
    b.column[row] = static_cast<std::int8_t>(c);
    if (all_safe(b, row + 1)) found += count_by_pairs(b, row + 1, n);
  }
  return found;
}
}  // namespace

std::uint64_t calls_by_pairs(int n) {
  board b{};
  return count_by_pairs(b, 0, n);
}

std::uint64_t calls(int n) {
  board b{};
  return count(b, 0, n);
}

}  // namespace nqueens
