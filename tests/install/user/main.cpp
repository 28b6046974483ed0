// A user's program: fork-join, a result with a codec, an exception across a join, per-worker calls, exit
// status.
#include <godwit/godwit.hpp>

#include <iostream>
#include <stdexcept>
#include <string>

static long fib(int n) {
  if (n < 2) return n;
  auto [x, y] = godwit::invoke([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return x + y;
}

static std::string text(int n) {
  if (n <= 0) throw std::out_of_range("godwit");
  auto f = godwit::spawn([n] { return text(n - 1); });
  return f.join();
}

int main(int argc, char** argv) {
  return godwit::run(argc, argv, [] {
    auto f = godwit::spawn(fib, 20);
    std::string word;
    try {
      word = godwit::spawn(text, 10).join();
    } catch (const std::out_of_range& e) {
      word = e.what();
    }
    godwit::on_each_worker([] {});
    const long number = f.join();
    std::cout << "fib " << number << " text " << word << " workers " << godwit::worker_count() << '\n';
  });
}
