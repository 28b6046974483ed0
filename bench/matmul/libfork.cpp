// In libfork.
#include "../common/on_libfork.hpp"
#include "matmul.hpp"

#if BENCH_HAS_LIBFORK
namespace {
constexpr auto multiply = [](auto self, matmul::part p) -> lf::task<void> {
  if (p.is_leaf()) {
    block(p);
    co_return;
  }
  if (!p.halves_m() && !p.halves_n()) {
    co_await lf::call(self)(p.low());
    co_await lf::call(self)(p.high());
    co_return;
  }
  co_await lf::fork(self)(p.low());
  co_await lf::call(self)(p.high());
  co_await lf::join;
};
}  // namespace

void matmul::libfork(const part& p, unsigned workers) { bench::with_libfork(workers, multiply, p); }
#endif
