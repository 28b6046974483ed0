#include <godwit/godwit.hpp>

static long fib(int n) {
  if (n < 2) return n;
  auto [x, y] = godwit::invoke([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return x + y;
}

int main(int argc, char** argv) {
  return godwit::run(argc, argv, [] { return fib(20) == 6765 ? 0 : 1; });
}
