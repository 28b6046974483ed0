// What valgrind_test.sh runs under memcheck: spawns, suspended threads, threads with a mutex, global memory.
// With "wrong" as the first argument a thread reads beyond a block of the heap, which memcheck must still
// see.
#include <godwit/godwit.hpp>

#include <cstdio>
#include <cstring>
#include <memory>

namespace gw = godwit;

static long fib(int n) {
  if (n < 2) return n;
  auto [x, y] = gw::invoke([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return x + y;
}

// The joiner is suspended where its child is still to run.
static long chain(int n) {
  if (n == 0) return 0;
  auto f = gw::spawn(chain, n - 1);
  gw::yield();
  return f.join() + 1;
}

static int beyond_a_block(int n) {
  const auto block = std::make_unique<char[]>(static_cast<std::size_t>(n));
  const volatile char* p = block.get();
  return p[n] == 1 ? 1 : 0;
}

int main(int argc, char** argv) {
  const bool wrong = argc > 1 && std::strcmp(argv[1], "wrong") == 0;
  return gw::run(argc, argv, [wrong] {
    const long a = fib(10), b = chain(20);
    gw::global_array<long> numbers(1000, gw::distribution::blocked());
    gw::for_each(numbers, [](long& x) { x = 3; });
    const long sum = gw::reduce(numbers);
    const int c = wrong ? gw::spawn(beyond_a_block, 100).join() : 0;
    std::printf("%ld %ld %ld %d\n", a, b, sum, c);
  });
}
