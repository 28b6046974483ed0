// fib in libfork.
#include "../common/on_libfork.hpp"
#include "fib.hpp"

#if BENCH_HAS_LIBFORK
namespace {
constexpr auto node = [](auto self, int n) -> lf::task<std::uint64_t> {
  if (n < 2) co_return static_cast<std::uint64_t>(n);
  std::uint64_t first = 0, second = 0;
  co_await lf::fork(&first, self)(n - 1);
  co_await lf::call(&second, self)(n - 2);
  co_await lf::join;
  co_return first + second;
};
}  // namespace

std::uint64_t fib::libfork(int n, unsigned workers) { return bench::with_libfork(workers, node, n); }
#endif
