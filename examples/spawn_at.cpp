// Threads that go to data: every row is summed up where it lies, and one thread visits all of them.
//
// The rows belong to all workers in turn, and some of them are moved meanwhile. spawn_at makes a thread where
// a row is, wherever that is by then; go_to takes the running thread there, with what it has added up so far
// on its stack. docs/moving.md
#include <godwit/godwit.hpp>

#include <array>
#include <cstdint>
#include <iostream>

namespace gw = godwit;

constexpr std::uint64_t rows = 32, row = 8192;  // 64 KiB each

double sum_of(gw::global_ptr<double> p) {
  double sum = 0;
  for (const double x : gw::checkout(p, row, gw::access::read)) sum += x;
  return sum;
}

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    gw::distribution dealt_out = gw::distribution::cyclic(row * sizeof(double));
    const auto table = gw::allocate<double>(rows * row, dealt_out.movable());
    for (std::uint64_t r = 0; r < rows; ++r)
      gw::with(table + r * row, row, gw::access::write, [r](std::span<double> s) {
        for (double& x : s) x = static_cast<double>(r);
      }).join();

    // The threads go to the rows, also to those that move.
    std::array<gw::future<double>, rows> sums;
    for (std::uint64_t r = 0; r < rows; ++r)
      sums[r] = gw::spawn_at(table + r * row, [p = table + r * row] { return sum_of(p); });
    for (std::uint64_t r = 0; r < rows; r += 4) gw::move(table + r * row, row, 0).join();
    double together = 0;
    for (auto& sum : sums) together += sum.join();

    // This one goes from row to row.
    double on_the_way = 0;
    std::uint64_t was_there = 0;
    for (std::uint64_t r = 0; r < rows; ++r) {
      was_there += gw::go_to(table + r * row);
      on_the_way += sum_of(table + r * row);
    }
    std::cout << "the sum is " << together / row << ", and on the way " << on_the_way / row << "; it was at "
              << was_there << " of " << rows << " rows\n";
    gw::deallocate(table, rows * row);
  });
}
