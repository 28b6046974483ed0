// Steps over time and logarithmic histograms. See analysis.hpp.
#include "analysis.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace godwit::report {

void steps::add(std::uint64_t time, std::int32_t change) {
  if (list_.empty()) {
    if (time > 0) list_.push_back({0, 0});
    list_.push_back({time, change});
    return;
  }
  step& last = list_.back();
  if (time <= last.time)
    last.value += change;
  else
    list_.push_back({time, last.value + change});
}

double steps::mean(std::uint64_t from, std::uint64_t to) const noexcept {
  if (to <= from) return at(from);
  double sum = 0;
  auto s = std::upper_bound(list_.begin(), list_.end(), from,
                            [](std::uint64_t t, const step& x) { return t < x.time; });
  std::uint64_t now = from;
  std::int32_t value = s == list_.begin() ? 0 : (s - 1)->value;
  for (; s != list_.end() && s->time < to; ++s) {
    sum += static_cast<double>(s->time - now) * value;
    now = s->time;
    value = s->value;
  }
  sum += static_cast<double>(to - now) * value;
  return sum / static_cast<double>(to - from);
}

std::int32_t steps::most() const noexcept {
  std::int32_t most = 0;
  for (const step& s : list_) most = std::max(most, s.value);
  return most;
}

std::int32_t steps::at(std::uint64_t time) const noexcept {
  const auto s = std::upper_bound(list_.begin(), list_.end(), time,
                                  [](std::uint64_t t, const step& x) { return t < x.time; });
  return s == list_.begin() ? 0 : (s - 1)->value;
}

double histogram::lower_edge(std::size_t bin) noexcept {
  return bin == 0 ? 0 : std::exp2(static_cast<double>(bin) / per_octave);
}

void histogram::add(std::uint64_t value) noexcept {
  std::size_t bin = 0;
  if (value > 1) {
    // The octave from the position of the highest bit, the quarter by comparing with its edges: no logarithm.
    const int octave = std::bit_width(value) - 1;
    const double in_octave = std::ldexp(static_cast<double>(value), -octave);
    bin = static_cast<std::size_t>(octave) * per_octave;
    if (in_octave >= 1.189207115002721) ++bin;
    if (in_octave >= 1.4142135623730951) ++bin;
    if (in_octave >= 1.681792830507429) ++bin;
  }
  ++bins[bin];
  if (samples.size() < few) samples.push_back(value);
  ++count;
  most = std::max(most, value);
  sum += static_cast<double>(value);
}

double histogram::quantile(double q) const noexcept {
  const double wanted = q * static_cast<double>(count);
  double seen = 0;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    seen += static_cast<double>(bins[i]);
    if (seen >= wanted && bins[i] > 0) {
      const double middle = i == 0 ? 1 : std::exp2((static_cast<double>(i) + 0.5) / per_octave);
      return std::min(middle, static_cast<double>(most));
    }
  }
  return 0;
}

std::uint64_t analysis::sum(state s) const noexcept {
  std::uint64_t total = 0;
  for (const worker_totals& w : totals) total += w.ns[static_cast<std::size_t>(s)];
  return total;
}

}  // namespace godwit::report
