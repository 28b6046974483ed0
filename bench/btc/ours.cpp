// BTC in godwit.

#include <godwit/godwit.hpp>

#include "btc.hpp"

namespace {
template <class P>
[[gnu::noinline]] std::uint64_t task(int depth, int iter) {
  if (depth == 0) return 1;
  std::uint64_t tasks = 1;
  for (int i = 0; i < iter; ++i) {
    auto a = P::spawn([depth, iter] { return task<P>(depth - 1, iter); });
    auto b = P::spawn([depth, iter] { return task<P>(depth - 1, iter); });
    tasks += b.join();
    tasks += a.join();
  }
  return tasks;
}
}  // namespace

std::uint64_t (*btc::spawn_join_under(const std::string& policy))(int depth, int iter) {
  return godwit::with_policy(godwit::choice::named{policy}, [](auto p) { return &task<decltype(p)>; });
}
