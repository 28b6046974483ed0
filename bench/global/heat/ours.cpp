// On global memory: a parallel loop over rows for every step.

#include "heat.hpp"

namespace heat {

namespace gw = godwit;

namespace {

using grid = gw::global_ptr<double>;

grid row(grid g, std::uint64_t side, std::uint64_t i) { return g + static_cast<std::ptrdiff_t>(i * side); }

/// f(low, high) for rows.
template <class F>
void rows(const settings& s, grid g, std::uint64_t low, std::uint64_t high, const F& f) {
  if (high - low <= s.rows) return f(low, high);
  const std::uint64_t middle = low + (high - low) / 2;
  const auto lower = [=] { rows(s, g, low, middle, f); };
  const auto upper = [=] { rows(s, g, middle, high, f); };
  // Of two halves a worker computes that first which is its own: it is in its cache from the step before.
  const auto home = [&](std::uint64_t i) { return gw::home_of(row(g, s.side, i)); };
  if (s.near && gw::worker_count() > 1 && home(low) < gw::worker_id() && home(middle) <= gw::worker_id())
    gw::invoke(upper, lower);
  else
    gw::invoke(lower, upper);
}

void step(const settings& s, grid from, grid to) {
  rows(s, from, 1, s.side - 1, [=, side = s.side](std::uint64_t low, std::uint64_t high) {
    const auto in = gw::checkout(row(from, side, low - 1), (high - low + 2) * side, gw::access::read);
    const auto out = gw::checkout(row(to, side, low), (high - low) * side, gw::access::write);
    relax(in.data(), out.data(), side, high - low);
  });
}

}  // namespace

outcome ours(const settings& s) {
  const std::uint64_t side = s.side, all = side * side;
  const std::uint64_t homes = gw::worker_count();
  const auto even =
      gw::distribution::blocked(((side + homes - 1) / homes * side * sizeof(double) + 4095) / 4096 * 4096);
  grid from = gw::allocate<double>(all, even), to = gw::allocate<double>(all, even);
  rows(s, from, 0, side, [=](std::uint64_t low, std::uint64_t high) {
    for (const grid g : {from, to}) {
      const auto x = gw::checkout(row(g, side, low), (high - low) * side, gw::access::write);
      for (std::uint64_t i = low; i < high; ++i) begin(x.data() + (i - low) * side, side, i);
    }
  });
  outcome out;
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      step(s, from, to);
      std::swap(from, to);
    }
  };
  out.first = parts::measured([&] { run(1); });
  out.steps = parts::measured([&] { run(s.steps - 1); });
  out.wrong =
      parts::sum_of_halves<std::uint64_t>(0, side, s.rows, [=](std::uint64_t low, std::uint64_t high) {
        const auto x = gw::checkout(row(from, side, low), (high - low) * side, gw::access::read);
        std::uint64_t wrong = 0;
        for (std::uint64_t i = 0; i < x.size(); ++i) wrong += x[i] != right[low * side + i];
        return wrong;
      });
  gw::deallocate(from, all);
  gw::deallocate(to, all);
  return out;
}

}  // namespace heat
