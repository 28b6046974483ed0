// A wavefront: each cell of a grid is a thread that waits for its upper and its left neighbour.
//
// Every result has two consumers, so futures are shared. The grid counts the ways through it, right and down:
// C(2n, n) for n steps each. Only one row of futures is kept, in the root thread's frame: frames move with
// their threads, also to other hosts.
#include <godwit/godwit.hpp>

#include <array>
#include <iostream>

using cell = godwit::shared_future<long>;

int main(int argc, char** argv) {
  return godwit::run(argc, argv, [] {
    constexpr int n = 16;
    std::array<cell, n + 1> row;
    for (auto& c : row) c = godwit::spawn([] { return 1L; });  // one way along the upper edge
    for (int i = 1; i <= n; ++i)
      for (int j = 1; j <= n; ++j)
        row[j] = godwit::spawn([](cell up, cell left) { return up.get() + left.get(); }, row[j], row[j - 1]);
    const long ways = row[n].get();
    std::cout << "ways through a grid of " << n << " x " << n << ": " << ways << '\n';
  });
}
