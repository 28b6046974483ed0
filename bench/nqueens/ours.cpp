// N queens in godwit: every safe place is a thread. The futures of a row's threads are chained through the
// recursion over its columns, so a row with two children holds two futures and not n.

#include <functional>
#include <godwit/godwit.hpp>

#include "nqueens.hpp"

namespace nqueens {

namespace {

template <class P>
std::uint64_t from_column(const board& b, int row, int n, int c);

template <class P>
std::uint64_t count(const board& b, int row, int n) {
  return row == n ? 1 : from_column<P>(b, row, n, 0);
}

template <class P>
std::uint64_t from_column(const board& b, int row, int n, int c) {
  for (; c < n; ++c) {
    if (!safe(b, row, c)) continue;
    const board next = placed(b, row, c);
    auto here = P::spawn([next, row, n] { return count<P>(next, row + 1, n); });
    const std::uint64_t right = from_column<P>(b, row, n, c + 1);
    return here.join() + right;
  }
  return 0;
}

template <class P>
std::uint64_t root(int n) {
  const board empty{};
  return count<P>(empty, 0, n);
}

std::uint64_t sum_by_pairs(const board& b, int row, int n) {
  if (row == n) return 1;
  return godwit::transform_reduce(godwit::indices(n), std::uint64_t{0}, std::plus<>(),
                                  [b, row, n](std::uint64_t c) {
                                    const board next = placed(b, row, static_cast<int>(c));
                                    return all_safe(next, row + 1) ? sum_by_pairs(next, row + 1, n) : 0;
                                  });
}

}  // namespace

std::uint64_t by_pairs(int n) { return sum_by_pairs(board{}, 0, n); }

std::uint64_t (*spawn_join_under(const std::string& policy))(int n) {
  return godwit::with_policy(godwit::choice::named{policy}, [](auto p) { return &root<decltype(p)>; });
}

}  // namespace nqueens
