// Containers in global memory: a vector that many threads append to, and a hash map in which they count.
//
//   example_containers --godwit-workers=4
//
// Any thread of any worker reaches a container through a span, an appender or a view, which closures copy.
// The container itself stays with its owner, here the root thread. docs/containers.md
#include <godwit/godwit.hpp>

#include <cstdint>
#include <iostream>
#include <optional>

namespace gw = godwit;

constexpr std::uint64_t starts = 30'000;

/// How many steps of the Collatz sequence lead from n to 1.
std::uint32_t steps(std::uint64_t n) {
  std::uint32_t taken = 0;
  for (; n != 1; ++taken) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return taken;
}

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    gw::global_map<std::uint32_t, std::uint64_t> lengths(500);  // steps -> how many numbers take so many
    gw::global_vector<std::uint64_t> far;                       // numbers that take more than 250
    const auto out = far.begin_append(starts);
    gw::for_each(gw::indices(1, starts + 1), [map = lengths.view(), out](std::uint64_t n) {
      const std::uint32_t s = steps(n);
      map.fetch_add(s, 1);
      if (s > 250) out.push_back(n);
    });
    far.end_append(out);
    gw::sort(far);  // threads append in any order

    const std::optional<std::uint64_t> hundred = lengths.find(100);
    const std::uint64_t first = far.front();
    std::cout << lengths.size() << " lengths; " << hundred.value_or(0) << " numbers take 100 steps; "
              << far.size() << " take more than 250, the first is " << first << '\n';
  });
}
