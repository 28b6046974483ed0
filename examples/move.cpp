// Rows that move to who uses them: global memory whose parts change their owner while the program runs.
//
// All rows begin at worker 0, as if it had read them from a file. Every thread takes some of them to the
// worker that it runs on, and then goes over them again and again. The addresses stay, so does every
// global_ptr; on several hosts the sweeps then find their rows in their own memory. docs/moving.md
#include <godwit/godwit.hpp>

#include <cstdint>
#include <iostream>

namespace gw = godwit;

constexpr std::uint64_t rows = 64, row = 8192, sweeps = 20;  // 64 KiB each

/// f(low, high) for pieces of four rows.
template <class F>
void pieces(std::uint64_t low, std::uint64_t high, const F& f) {
  if (high - low <= 4) return f(low, high);
  const std::uint64_t middle = (low + high) / 2;
  gw::invoke([=] { pieces(low, middle, f); }, [=] { pieces(middle, high, f); });
}

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    gw::distribution at_first = gw::distribution::at(0);
    const auto table = gw::allocate<double>(rows * row, at_first.movable(row * sizeof(double)));
    pieces(0, rows, [=](std::uint64_t low, std::uint64_t high) {
      for (double& x : gw::checkout(table + low * row, (high - low) * row, gw::access::write)) x = 1;
    });
    pieces(0, rows, [=](std::uint64_t low, std::uint64_t high) {
      gw::move(table + low * row, (high - low) * row, gw::worker_id()).join();
      for (std::uint64_t s = 0; s < sweeps; ++s)
        for (double& x : gw::checkout(table + low * row, (high - low) * row, gw::access::read_write))
          x += 0.5;
    });
    std::uint64_t sum = 0, moved = 0;
    for (std::uint64_t r = 0; r < rows; ++r) {
      moved += gw::owner_of(table + r * row) != gw::home_of(table + r * row);
      for (const double x : gw::checkout(table + r * row, row, gw::access::read))
        sum += static_cast<std::uint64_t>(x);
    }
    std::cout << "every element is " << sum / (rows * row) << "; " << moved << " of " << rows
              << " rows are not where they began\n";
    gw::deallocate(table, rows * row);
  });
}
