// fib(n) without a cutoff: nothing but spawns and joins. All forms of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fib {

/// The reference "fib1": one real call per node. Its source file is compiled so that the compiler neither
/// inlines the recursion into itself nor turns the second call into a loop; both would remove calls, and
/// the difference between spawning and calling could not be read off any more.
std::uint64_t calls(int n);
/// The same source as the compiler likes it best: gcc unrolls the recursion several levels deep.
std::uint64_t inlined(int n);

/// godwit, spawn + join: the first child is a thread, the second a call.
std::uint64_t spawn_join(int n);
/// The same under a policy.
std::uint64_t (*spawn_join_under(const std::string& policy))(int n);
/// godwit, invoke: the same with one function.
std::uint64_t invoke(int n);
/// Run in a root thread; the others are for the main program.
std::uint64_t tbb(int n, unsigned workers);
std::uint64_t openmp(int n, unsigned workers);

struct library {
  std::string name;
  std::uint64_t (*fib)(int n, unsigned workers);
};
std::uint64_t lace(int n, unsigned workers);  ///< where it was found, as the next one
std::uint64_t libfork(int n, unsigned workers);
/// Other libraries that were found: of threads, Lace, libfork.
std::vector<library> libraries();

/// Nodes of the call tree of fib(n), and how many of them spawn.
constexpr std::uint64_t value(int n) {
  std::uint64_t a = 0, b = 1;
  for (int i = 0; i < n; ++i) {
    const std::uint64_t c = a + b;
    a = b;
    b = c;
  }
  return a;
}
constexpr std::uint64_t nodes(int n) { return 2 * value(n + 1) - 1; }
constexpr std::uint64_t spawns(int n) { return value(n + 1) - 1; }

}  // namespace fib
