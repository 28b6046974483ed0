// fib in other libraries of lightweight threads, where they are found: a thread per spawn, joined by its
// parent.
#include "../common/thread_libraries.hpp"

#include "fib.hpp"

namespace {
struct part {
  int n;
  std::uint64_t value;
};

template <class L>
void node(void* argument) {
  part& p = *static_cast<part*>(argument);
  if (p.n < 2) {
    p.value = static_cast<std::uint64_t>(p.n);
    return;
  }
  part first{p.n - 1, 0}, second{p.n - 2, 0};
  typename L::handle child;
  L::template create<node<L>>(child, &first);
  node<L>(&second);
  L::join(child);
  p.value = first.value + second.value;
}
}  // namespace

std::vector<fib::library> fib::libraries() {
  std::vector<library> all;
  bench::for_each_thread_library([&]<class L>() {
    all.push_back({L::name, [](int n, unsigned workers) {
                     part root{n, 0};
                     L::run(workers, bench::first::child, [&] { node<L>(&root); });
                     return root.value;
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
