// BTC in godwit.

#include <godwit/godwit.hpp>

#include "btc.hpp"

[[gnu::noinline]] std::uint64_t btc::spawn_join(int depth, int iter) {
  if (depth == 0) return 1;
  std::uint64_t tasks = 1;
  for (int i = 0; i < iter; ++i) {
    auto a = godwit::spawn([depth, iter] { return spawn_join(depth - 1, iter); });
    auto b = godwit::spawn([depth, iter] { return spawn_join(depth - 1, iter); });
    tasks += b.join();
    tasks += a.join();
  }
  return tasks;
}
