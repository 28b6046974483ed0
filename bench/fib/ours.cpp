// fib in godwit. Not inlined into themselves, like the reference: then time / reference compares spawn with
// call.

#include <godwit/godwit.hpp>

#include "fib.hpp"

[[gnu::noinline]] std::uint64_t fib::spawn_join(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  auto first = godwit::spawn([n] { return spawn_join(n - 1); });
  const std::uint64_t second = spawn_join(n - 2);
  return first.join() + second;
}

[[gnu::noinline]] std::uint64_t fib::invoke(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  const auto [first, second] = godwit::invoke([n] { return invoke(n - 1); }, [n] { return invoke(n - 2); });
  return first + second;
}
