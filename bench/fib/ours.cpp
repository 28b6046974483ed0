// fib in godwit. Not inlined into themselves, like the reference: then time / reference compares spawn with
// call.

#include <godwit/godwit.hpp>

#include "fib.hpp"

namespace {
template <class P>
[[gnu::noinline]] std::uint64_t node(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  auto first = P::spawn([n] { return node<P>(n - 1); });
  const std::uint64_t second = node<P>(n - 2);
  return first.join() + second;
}
}  // namespace

std::uint64_t fib::spawn_join(int n) { return node<godwit::policies::greedy>(n); }

std::uint64_t (*fib::spawn_join_under(const std::string& policy))(int n) {
  return godwit::with_policy(godwit::choice::named{policy}, [](auto p) { return &node<decltype(p)>; });
}

[[gnu::noinline]] std::uint64_t fib::invoke(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  const auto [first, second] = godwit::invoke([n] { return invoke(n - 1); }, [n] { return invoke(n - 2); });
  return first + second;
}
