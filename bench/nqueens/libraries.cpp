// N queens in other libraries of lightweight threads, where they are found: a thread per safe place.
#include "../common/thread_libraries.hpp"

#include "nqueens.hpp"

namespace {
template <class L>
struct place {
  nqueens::board b;
  int row, n;
  std::uint64_t found;
  typename L::handle thread;
};

template <class L>
void count(void* argument) {
  place<L>& p = *static_cast<place<L>*>(argument);
  if (p.row == p.n) {
    p.found = 1;
    return;
  }
  std::vector<place<L>> next;
  next.reserve(static_cast<std::size_t>(p.n));  // threads keep their place's address
  for (int c = 0; c < p.n; ++c) {
    if (!nqueens::safe(p.b, p.row, c)) continue;
    place<L>& child = next.emplace_back(place<L>{nqueens::placed(p.b, p.row, c), p.row + 1, p.n, 0, {}});
    L::template create<count<L>>(child.thread, &child);
  }
  p.found = 0;
  for (place<L>& child : next) {
    L::join(child.thread);
    p.found += child.found;
  }
}
}  // namespace

std::vector<nqueens::library> nqueens::libraries() {
  std::vector<library> all;
  bench::for_each_thread_library([&]<class L>() {
    all.push_back({L::name, [](int n, unsigned workers) {
                     place<L> root{{}, 0, n, 0, {}};
                     L::run(workers, bench::first::child, [&] { count<L>(&root); });
                     return root.found;
                   }});
  });
#if BENCH_HAS_LACE
  all.push_back({"lace", lace});
#endif
#if BENCH_HAS_LIBFORK
  all.push_back({"libfork", libfork});
#endif
  return all;
}
