// A run of several ranks that spawns: prints fib(20). With setjmp it must end with the reason
// (tests/context/extras.cmake).
#include <godwit/godwit.hpp>

#include <cstdio>

namespace {
long fib(int n) {
  if (n < 2) return n;
  auto first = godwit::spawn([n] { return fib(n - 1); });
  const long second = fib(n - 2);
  return first.join() + second;
}
}  // namespace

int main(int argc, char** argv) {
  return godwit::run(argc, argv, [] { std::printf("fib(20) = %ld\n", fib(20)); });
}
