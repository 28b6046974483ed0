// In plain memory: one thread, or several that meet after every step.

#include <barrier>
#include <memory>
#include <thread>

#include "heat.hpp"

namespace heat {

std::vector<double> right;

namespace {

/// Rows 1 ... side - 2, those of thread t of n.
std::pair<std::size_t, std::size_t> part(std::size_t side, unsigned t, unsigned n) {
  return {1 + (side - 2) * t / n, 1 + (side - 2) * (t + 1) / n};
}

}  // namespace

outcome plain(const settings& s, unsigned threads) {
  const std::size_t side = s.side;
  const auto one = std::make_unique_for_overwrite<double[]>(side * side),
             two = std::make_unique_for_overwrite<double[]>(side * side);
  double *from = one.get(), *to = two.get();
  const auto on_all = [&](auto f) {
    std::vector<std::thread> others;
    for (unsigned t = 1; t < threads; ++t) others.emplace_back(f, t);
    f(0u);
    for (auto& t : others) t.join();
  };
  on_all([&](unsigned t) {
    auto [low, high] = part(side, t, threads);
    if (t == 0) low = 0;
    if (t + 1 == threads) high = side;
    for (std::size_t i = low; i < high; ++i) {
      begin(from + i * side, side, i);
      begin(to + i * side, side, i);
    }
  });
  const auto run = [&](int steps) {
    std::barrier gate(static_cast<std::ptrdiff_t>(threads));
    on_all([&, steps](unsigned t) {
      const auto [low, high] = part(side, t, threads);
      double *a = from, *b = to;
      for (int i = 0; i < steps; ++i) {
        relax(a + (low - 1) * side, b + low * side, side, high - low);
        std::swap(a, b);
        if (threads > 1) gate.arrive_and_wait();
      }
    });
    if (steps % 2 != 0) std::swap(from, to);
  };
  outcome out;
  out.first = parts::measured_plain([&] { run(1); });
  out.steps = parts::measured_plain([&] { run(s.steps - 1); });
  if (right.empty()) right.assign(from, from + side * side);  // the first, serial run
  for (std::size_t i = 0; i < side * side; ++i) out.wrong += from[i] != right[i];
  return out;
}

}  // namespace heat
