// The recurrence: one block, all blocks, and the whole matrix row by row.

#include <algorithm>
#include <random>

#include "lcs.hpp"

namespace lcs {

problem the_problem;

problem random_problem(std::uint32_t n, std::uint32_t c, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  problem p;
  p.n = n;
  p.c = c;
  p.a.resize(n);
  p.b.resize(n);
  for (auto& x : p.a) x = static_cast<unsigned char>(random() >> 56);
  for (auto& x : p.b) x = static_cast<unsigned char>(random() >> 56);
  return p;
}

boundaries block_by_rows(const problem& p, std::uint32_t i, std::uint32_t j, const boundary& top,
                         const boundary& left) {
  const std::uint32_t n = p.c;
  boundaries out;
  boundary& row = out.bottom;
  row = top.empty() ? boundary(n + 1, 0) : top;
  out.right.resize(n + 1);
  out.right[0] = row[n];
  const unsigned char* const b = p.b.data() + j;
  for (std::uint32_t r = 0; r < n; ++r) {
    const unsigned char x = p.a[i + r];
    std::uint32_t diagonal = row[0];
    std::uint32_t before = row[0] = left.empty() ? 0 : left[r + 1];
    for (std::uint32_t k = 0; k < n; ++k) {
      const std::uint32_t above = row[k + 1];
      before = x == b[k] ? diagonal + 1 : std::max(above, before);
      diagonal = above;
      row[k + 1] = before;
    }
    out.right[r + 1] = before;
  }
  return out;
}

std::uint32_t by_blocks(const problem& p) {
  std::vector<boundary> bottoms(p.n / p.c);
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < p.n; i += p.c) {
    boundary left;
    for (std::uint32_t j = 0; j < p.n; j += p.c) {
      boundaries block = block_by_rows(p, i, j, bottoms[j / p.c], left);
      bottoms[j / p.c] = std::move(block.bottom);
      left = std::move(block.right);
    }
    last = left.back();
  }
  return last;
}

std::uint32_t by_rows(const problem& p) {
  std::vector<std::uint32_t> row(p.n + 1, 0);
  for (std::uint32_t i = 0; i < p.n; ++i) {
    std::uint32_t diagonal = 0;
    for (std::uint32_t j = 0; j < p.n; ++j) {
      const std::uint32_t above = row[j + 1];
      row[j + 1] = p.a[i] == p.b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row[p.n];
}

}  // namespace lcs
