// Step 4 of docs/tutorial.md: results that own memory.
#include <godwit/godwit.hpp>

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

namespace gw = godwit;

/// Oscillates faster and faster towards 0.
double f(double x) {
  double sum = 0;
  for (int k = 1; k <= 20; ++k) sum += std::sin(k / x) / (k * k);
  return sum;
}

struct interval {
  double low, high;
  double at_low, at_middle, at_high;  // the function there
  double simpson() const { return (high - low) / 6 * (at_low + 4 * at_middle + at_high); }
};

interval make_interval(double low, double high) { return {low, high, f(low), f((low + high) / 2), f(high)}; }

struct result {
  double sum;
  std::vector<long> pieces;  // pieces[d]: how many were halved d times
};

result together(result a, result b) {
  if (a.pieces.size() < b.pieces.size()) std::swap(a.pieces, b.pieces);
  for (std::size_t d = 0; d < b.pieces.size(); ++d) a.pieces[d] += b.pieces[d];
  a.pieces.insert(a.pieces.begin(), 0);  // all have been halved once more
  return {a.sum + b.sum, std::move(a.pieces)};
}

/// The integral over i; halves it until both halves say the same as the whole.
result integrate(interval i, double tolerance) {
  const double middle = (i.low + i.high) / 2;
  const interval left{i.low, middle, i.at_low, f((i.low + middle) / 2), i.at_middle};
  const interval right{middle, i.high, i.at_middle, f((middle + i.high) / 2), i.at_high};
  const double fine = left.simpson() + right.simpson();
  const double error = (fine - i.simpson()) / 15;
  if (std::abs(error) <= tolerance) return {fine + error, {1}};
  auto [a, b] = gw::invoke([=] { return integrate(left, tolerance / 2); },
                           [=] { return integrate(right, tolerance / 2); });
  return together(std::move(a), std::move(b));
}

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    const result r = integrate(make_interval(0.0005, 1), 1e-12);
    std::printf("the integral is %.6f, halved up to %zu times\n", r.sum, r.pieces.size() - 1);
  });
}
