// How a program would scale on a machine that you do not have: a tree of threads whose leaves take 20 us, in
// virtual time.
//
//   example_simulate 20 --godwit-substrate=sim --godwit-workers=1000
//
// The scheduler is the real one; only what a leaf takes is said here (charge). On other substrates nothing is
// charged, and virtual time is 0. docs/scale.md
#include <godwit/godwit.hpp>
#include <godwit/sim.hpp>

#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace gw = godwit;

namespace {

constexpr std::uint64_t leaf_ns = 20'000;

std::uint64_t leaves(int depth) {
  if (depth == 0) {
    gw::sim::charge(leaf_ns);
    return 1;
  }
  auto left = gw::spawn([depth] { return leaves(depth - 1); });
  const std::uint64_t right = leaves(depth - 1);
  return left.join() + right;
}

}  // namespace

int main(int argc, char** argv) {
  const int asked = argc > 1 ? std::atoi(argv[1]) : 12;
  const int depth = asked < 0 || asked > 30 ? 12 : asked;
  return gw::run(argc, argv, [depth] {
    const std::uint64_t from = gw::sim::now_ns();
    const std::uint64_t n = leaves(depth), ns = gw::sim::now_ns() - from;
    std::cout << n << " leaves";
    if (ns != 0)
      std::cout << ": " << static_cast<double>(ns) / 1e6 << " ms of virtual time, "
                << static_cast<double>(n * leaf_ns) / static_cast<double>(ns) << " times one worker";
    std::cout << "\n";
  });
}
