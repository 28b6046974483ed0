// Game tree search: as soon as one reply refutes a move, the threads that still look at other replies are
// cancelled. Connect four, some moves deep; the value is that of a search without threads.
//
//   example_alpha_beta 9 --godwit-workers=4
//
// The first reply is searched before the others begin, as a rule the best one: it bounds them. docs/cancel.md
#include <godwit/godwit.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace gw = godwit;

constexpr int columns = 7, rows = 6, lost = -1000;
constexpr int depth_of_threads = 3;  // below, a subtree is searched by one thread

/// Seven bits for each column, the highest always 0.
struct board {
  std::uint64_t mine = 0, theirs = 0;
  bool is_free(int c) const { return ((mine | theirs) >> (7 * c + rows - 1) & 1) == 0; }
  /// The board as the other one sees it then.
  board drop(int c) const {
    const std::uint64_t all = mine | theirs, stone = ((all + (std::uint64_t{1} << 7 * c)) & ~all);
    const std::uint64_t lowest = stone & (std::uint64_t{0x7f} << 7 * c);
    return {theirs, mine | lowest};
  }
  bool they_have_four() const {
    for (const int step : {1, 6, 7, 8}) {
      const std::uint64_t pairs = theirs & theirs >> step;
      if ((pairs & pairs >> 2 * step) != 0) return true;
    }
    return false;
  }
  int value() const {
    constexpr std::uint64_t middle = std::uint64_t{0x7f} << 21, beside = 0x7full << 14 | 0x7full << 28;
    const auto of = [](std::uint64_t s) { return 2 * std::popcount(s & middle) + std::popcount(s & beside); };
    return of(mine) - of(theirs);
  }
};

constexpr std::array<int, columns> order = {3, 2, 4, 1, 5, 0, 6};

int search_alone(board b, int depth, int alpha, int beta) {
  if (b.they_have_four()) return lost - depth;
  if (depth == 0) return b.value();
  for (const int c : order) {
    if (alpha >= beta) break;
    if (b.is_free(c)) alpha = std::max(alpha, -search_alone(b.drop(c), depth - 1, -beta, -alpha));
  }
  return std::min(alpha, beta);
}

/// What the side that moves can reach, cut off at alpha and beta.
int search(board b, int depth, int alpha, int beta) {
  if (depth <= depth_of_threads || b.they_have_four()) return search_alone(b, depth, alpha, beta);
  const auto first = std::ranges::find_if(order, [b](int c) { return b.is_free(c); });
  if (first == order.end()) return b.value();
  alpha = std::max(alpha, -search(b.drop(*first), depth - 1, -beta, -alpha));
  if (alpha >= beta) return beta;

  gw::cancel_scope others;
  const auto best = others.run([&, refuted = others.token()] {
    std::array<gw::future<int>, columns> values;
    for (const int c : order)
      if (c != *first && b.is_free(c))
        values[static_cast<std::size_t>(c)] = gw::spawn([=] {
          const int v = -search(b.drop(c), depth - 1, -beta, -alpha);
          if (v >= beta) refuted.cancel();
          return v;
        });
    int most = alpha;
    for (auto& v : values)
      if (v.valid()) most = std::max(most, v.join());
    return most;
  });
  return best ? std::min(*best, beta) : beta;
}

int main(int argc, char** argv) {
  const int depth = argc > 1 && argv[1][0] != '-' ? std::atoi(argv[1]) : 9;
  const int alone = search_alone({}, depth, 10 * lost, -10 * lost);
  return gw::run(argc, argv, [=] {
    const int v = search({}, depth, 10 * lost, -10 * lost);
    std::cout << "connect four, " << depth << " moves deep: " << v
              << (v == alone ? ", as without threads\n" : ", which is wrong\n");
  });
}
