// BTC(depth, iter), binary task creation: every task creates two children and waits for them, iter times in
// sequence. With iter 1 parallelism grows fast; with iter 2 the tasks keep returning to join, so thieves
// find work near the root again and again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace btc {

/// Number of tasks below and including one of @p depth. Plain calls, compiled like fib's reference.
std::uint64_t calls(int depth, int iter);
/// The same in godwit under a policy: both children are threads.
std::uint64_t (*spawn_join_under(const std::string& policy))(int depth, int iter);
std::uint64_t tbb(int depth, int iter, unsigned workers);
std::uint64_t openmp(int depth, int iter, unsigned workers);

struct library {
  std::string name;
  std::uint64_t (*run)(int depth, int iter, unsigned workers);
};
std::uint64_t lace(int depth, int iter, unsigned workers);  ///< where it was found, as the next one
std::uint64_t libfork(int depth, int iter, unsigned workers);
/// Other libraries that were found: of threads, Lace, libfork.
std::vector<library> libraries();

/// 2^(d+1) - 1 for iter 1, (4^(d+1) - 1) / 3 for iter 2, and so on.
constexpr std::uint64_t tasks(int depth, int iter) {
  std::uint64_t n = 1;
  for (int d = 0; d < depth; ++d) n = 1 + 2 * static_cast<std::uint64_t>(iter) * n;
  return n;
}
static_assert(tasks(10, 1) == (std::uint64_t{1} << 11) - 1);
static_assert(tasks(10, 2) == ((std::uint64_t{1} << 22) - 1) / 3);

}  // namespace btc
