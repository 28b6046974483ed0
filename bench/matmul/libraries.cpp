// In other libraries of lightweight threads, where they are found: a thread for the lower half of c.
#include "../common/thread_libraries.hpp"

#include "matmul.hpp"

namespace {
template <class L>
void multiply(void* argument) {
  const matmul::part p = *static_cast<matmul::part*>(argument);
  if (p.is_leaf()) return block(p);
  matmul::part low = p.low(), high = p.high();
  if (!p.halves_m() && !p.halves_n()) {
    multiply<L>(&low);
    return multiply<L>(&high);
  }
  typename L::handle lower;
  L::template create<multiply<L>>(lower, &low);
  multiply<L>(&high);
  L::join(lower);
}
}  // namespace

std::vector<matmul::library> matmul::libraries() {
  std::vector<library> all;
  bench::for_each_thread_library([&]<class L>() {
    all.push_back({L::name, [](const part& p, unsigned workers) {
                     part whole = p;
                     L::run(workers, bench::first::child, [&] { multiply<L>(&whole); });
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
