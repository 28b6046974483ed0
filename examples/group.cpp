// All solutions of the n queens puzzle, found by a group of threads that spawn each other and that nobody
// joins.
//
// Each thread puts one queen and spawns a member for every place where the next one may stand. Who has put
// the last queen adds to a sum at its own worker; on_all adds these up. Who waits for the group waits for
// all of them, wherever they were stolen to. docs/control.md
#include <godwit/godwit.hpp>

#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace gw = godwit;

namespace {

/// Columns and diagonals that are taken, as bits.
struct board {
  std::uint32_t n, columns = 0, left = 0, right = 0, row = 0;
};

void place(gw::group g, gw::global_span<std::uint64_t> found, board b) {
  const std::uint32_t all = (1u << b.n) - 1;
  if (b.row == b.n) {
    gw::atomic_fetch_add(found.data() + gw::worker_id(), std::uint64_t{1}, std::memory_order_relaxed);
    return;
  }
  for (std::uint32_t free = all & ~(b.columns | b.left | b.right); free != 0; free &= free - 1) {
    const std::uint32_t bit = free & (0u - free);
    const board next{b.n, b.columns | bit, (b.left | bit) << 1 & all, (b.right | bit) >> 1, b.row + 1};
    g.spawn(place, g, found, next);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int asked = argc > 1 ? std::atoi(argv[1]) : 8;
  const std::uint32_t n = asked < 1 || asked > 16 ? 8 : static_cast<std::uint32_t>(asked);
  return gw::run(argc, argv, [n] {
    const auto workers = std::uint64_t{gw::worker_count()};
    gw::global_array<std::uint64_t> found(workers, gw::distribution::cyclic(16), 0);
    const gw::owned<gw::group> g;
    g->spawn(place, g.get(), found.span(), board{n});
    g->wait();
    const gw::owned<gw::reduction<std::uint64_t>> sum(workers);
    gw::on_all([f = found.span(), s = sum.get()](gw::team t) {
      const std::uint64_t here = f[t.rank()];
      s.contribute(here);
      if (t.all_reduce(here) != s.get()) std::abort();  // two ways to the same
    });
    std::cout << n << " queens: " << sum->get() << " solutions\n";
  });
}
