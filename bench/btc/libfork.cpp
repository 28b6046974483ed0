// BTC in libfork.
#include "../common/on_libfork.hpp"
#include "btc.hpp"

#if BENCH_HAS_LIBFORK
namespace {
constexpr auto node = [](auto self, int depth, int iter) -> lf::task<std::uint64_t> {
  std::uint64_t tasks = 1;
  for (int i = 0; depth > 0 && i < iter; ++i) {
    std::uint64_t a = 0, b = 0;
    co_await lf::fork(&a, self)(depth - 1, iter);
    co_await lf::fork(&b, self)(depth - 1, iter);
    co_await lf::join;
    tasks += a + b;
  }
  co_return tasks;
};
}  // namespace

std::uint64_t btc::libfork(int depth, int iter, unsigned workers) {
  return bench::with_libfork(workers, node, depth, iter);
}
#endif
