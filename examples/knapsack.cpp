// Branch and bound: the best value so far is shared by all threads, and prunes what cannot reach it.
//
//   example_knapsack --godwit-workers=4
//
// The best value is one word of global memory, read by every node and raised by an atomic operation. How many
// nodes are searched depends on the schedule; the result does not. docs/global-memory.md
#include <godwit/godwit.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>

namespace gw = godwit;

struct item {
  long value, weight;
};
constexpr int items = 40;
constexpr long room = 300;
std::array<item, items> all;  // made before run, sorted by value per weight: every worker can read it

void raise(gw::global_ptr<long> best, long value) {
  long seen = gw::atomic_load(best);
  while (seen < value && !gw::atomic_compare_exchange(best, seen, value)) {
  }
}

/// What fits if the next item may be cut: no choice of whole items is worth more.
double bound(int next, long value, long left) {
  double most = static_cast<double>(value);
  for (; next < items && all[next].weight <= left; ++next) {
    most += static_cast<double>(all[next].value);
    left -= all[next].weight;
  }
  if (next < items)
    most += static_cast<double>(all[next].value * left) / static_cast<double>(all[next].weight);
  return most;
}

void search(gw::global_ptr<long> best, int next, long value, long left) {
  raise(best, value);
  if (next == items || bound(next, value, left) <= static_cast<double>(gw::atomic_load(best))) return;
  const item i = all[next];
  if (i.weight > left) return search(best, next + 1, value, left);
  gw::invoke([=] { search(best, next + 1, value + i.value, left - i.weight); },
             [=] { search(best, next + 1, value, left); });
}

int main(int argc, char** argv) {
  std::uint32_t x = 1;
  const auto random = [&x](long low, long high) {
    x = x * 1'664'525u + 1'013'904'223u;
    return low + static_cast<long>(x >> 16) % (high - low);
  };
  for (item& i : all) {
    i.weight = random(10, 50);
    i.value = i.weight + random(0, 10);
  }
  std::ranges::sort(all, [](item a, item b) { return a.value * b.weight > b.value * a.weight; });
  return gw::run(argc, argv, [] {
    const auto best = gw::global_new<long>(0);
    search(best, 0, 0, room);
    const long value = gw::atomic_load(best);
    std::cout << "the best choice is worth " << value << '\n';
    gw::global_delete(best);
  });
}
