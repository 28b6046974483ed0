// BTC in other libraries of lightweight threads, where they are found: both children are threads.
#include "../common/thread_libraries.hpp"

#include "btc.hpp"

namespace {
struct task {
  int depth, iter;
  std::uint64_t tasks;
};

template <class L>
void node(void* argument) {
  task& mine = *static_cast<task*>(argument);
  mine.tasks = 1;
  for (int i = 0; mine.depth > 0 && i < mine.iter; ++i) {
    task a{mine.depth - 1, mine.iter, 0}, b = a;
    typename L::handle one, two;
    L::template create<node<L>>(one, &a);
    L::template create<node<L>>(two, &b);
    L::join(one);
    L::join(two);
    mine.tasks += a.tasks + b.tasks;
  }
}
}  // namespace

std::vector<btc::library> btc::libraries() {
  std::vector<library> all;
  bench::for_each_thread_library([&]<class L>() {
    all.push_back({L::name, [](int depth, int iter, unsigned workers) {
                     task root{depth, iter, 0};
                     L::run(workers, bench::first::child, [&] { node<L>(&root); });
                     return root.tasks;
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
