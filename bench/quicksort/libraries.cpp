// In other libraries of lightweight threads, where they are found: a thread for the lower part.
#include "../common/thread_libraries.hpp"

#include "quicksort.hpp"

namespace {
struct range {
  std::uint32_t *first, *last;
};

template <class L>
void sort(void* argument) {
  const range r = *static_cast<range*>(argument);
  if (r.last - r.first <= quicksort::leaf) {
    std::sort(r.first, r.last);
    return;
  }
  std::uint32_t* const middle = quicksort::partition(r.first, r.last);
  range low{r.first, middle}, high{middle, r.last};
  typename L::handle lower;
  L::template create<sort<L>>(lower, &low);
  sort<L>(&high);
  L::join(lower);
}
}  // namespace

std::vector<quicksort::library> quicksort::libraries() {
  std::vector<library> all;
  bench::for_each_thread_library([&]<class L>() {
    all.push_back({L::name, [](std::uint32_t* first, std::uint32_t* last, unsigned workers) {
                     range whole{first, last};
                     L::run(workers, bench::first::child, [&] { sort<L>(&whole); });
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
