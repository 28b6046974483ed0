// Fork-join in fifteen lines: example_fib [N] [--godwit-workers=4 ...]
#include <godwit/godwit.hpp>

#include <cstdlib>
#include <iostream>

long fib(int n) {
  if (n < 2) return n;
  auto [x, y] = godwit::invoke([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return x + y;
}

int main(int argc, char** argv) {
  godwit::take_options(argc, argv);
  const int n = argc > 1 ? std::atoi(argv[1]) : 30;
  return godwit::run(argc, argv, [n] {
    // first compute, then print: the thread may change workers, and with it buffers, in between
    const long f = fib(n);
    std::cout << "fib(" << n << ") = " << f << '\n';
  });
}
