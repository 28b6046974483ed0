// Heat on a square plate: every point becomes the average of its four neighbours, again and again.
//
// The plate lies in global memory, its rows dealt out to the workers in blocks. A step is a parallel loop
// over the rows; a leaf checks out the rows that it reads and those that it writes. The rest is plain C++,
// and the program is the same on one CPU, on many, and on several machines. The benchmark of it:
// bench/global/heat.
#include <godwit/godwit.hpp>

#include <algorithm>
#include <iostream>
#include <utility>

namespace gw = godwit;

constexpr long side = 256, steps = 500, leaf = 16;

using plate = gw::global_ptr<double>;

template <class F>
void rows(long low, long high, const F& f) {
  if (high - low <= leaf) return f(low, high);
  const long middle = (low + high) / 2;
  gw::invoke([=] { rows(low, middle, f); }, [=] { rows(middle, high, f); });
}

void step(plate from, plate to) {
  rows(1, side - 1, [=](long low, long high) {
    const auto in = gw::checkout(from + (low - 1) * side, (high - low + 2) * side, gw::access::read);
    const auto out = gw::checkout(to + low * side, (high - low) * side, gw::access::write);
    for (long i = 0; i < high - low; ++i) {
      const double* here = in.data() + (i + 1) * side;
      double* next = out.data() + i * side;
      next[0] = here[0];
      for (long k = 1; k < side - 1; ++k)
        next[k] = (here[k - side] + here[k + side] + here[k - 1] + here[k + 1]) / 4;
      next[side - 1] = here[side - 1];
    }
  });
}

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    plate now = gw::allocate<double>(side * side, gw::distribution::blocked());
    plate next = gw::allocate<double>(side * side, gw::distribution::blocked());
    rows(0, side, [=](long low, long high) {  // the upper edge is hot
      for (const plate p : {now, next})
        for (long i = low; i < high; ++i)
          std::ranges::fill(gw::checkout(p + i * side, side, gw::access::write), i == 0 ? 100.0 : 0.0);
    });
    for (long i = 0; i < steps; ++i) {
      step(now, next);
      std::swap(now, next);
    }
    std::cout << "after " << steps << " steps:";
    for (const long i : {1, 4, 16, 64})
      std::cout << "  " << now[i * side + side / 2] << " degrees " << i << " below the edge";
    std::cout << '\n';
    gw::deallocate(now, side * side);
    gw::deallocate(next, side * side);
  });
}
