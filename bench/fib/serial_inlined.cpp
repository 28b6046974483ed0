// Plain recursion, optimised like everything else.

#include "fib.hpp"

std::uint64_t fib::inlined(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  return inlined(n - 1) + inlined(n - 2);
}
