// The table of joins and steals. See joins.hpp.

#include "joins.hpp"

#include <cstdio>
#include <optional>

namespace bench {

namespace {

using field = std::uint64_t scheduler_counts::*;

/// sum / events of one round, where there were events.
std::optional<double> mean_of(const sample& one, field sum, field events, double scale) {
  const auto n = one.counts.*events;
  if (n == 0 || one.counts.*sum == 0) return std::nullopt;  // no sum: this run did not measure it
  return static_cast<double>(one.counts.*sum) / static_cast<double>(n) * scale;
}

/// Median of that over the rounds.
std::optional<double> mean_of(const series& s, field sum, field events, double scale) {
  std::vector<double> means;
  for (const auto& one : s.samples)
    if (const auto mean = mean_of(one, sum, events, scale)) means.push_back(*mean);
  if (means.empty()) return std::nullopt;
  return median(means);
}

std::string text(const std::optional<double>& value) {
  if (!value) return "-";
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, *value >= 100 ? "%.0f" : "%.2f", *value);
  return buffer;
}

ordered_json json_of(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

}  // namespace

void show_joins(program& p, const std::string& title, const std::vector<series>& all,
                const std::function<double(const series&)>& efficiency) {
  std::FILE* const to = p.out();
  std::fprintf(to, "  %-24s %7s %9s %10s %7s %11s %12s %8s %12s %10s %8s %9s\n", "joins and steals",
               "workers", "median s", "efficiency", "/ref", "outstanding", "wait us", "steals", "in vain",
               "latency us", "bytes", "copy us");
  ordered_json rows = ordered_json::array();
  for (const auto& s : all) {
    if (s.samples.empty() || !s.samples.front().scheduled) continue;
    using c = scheduler_counts;
    const double part = efficiency(s);
    const auto waited = mean_of(s, &c::outstanding_ns, &c::outstanding_resumed, 1e-3);
    const auto latency = mean_of(s, &c::steal_ns, &c::steals_timed, 1e-3);
    const auto bytes = mean_of(s, &c::stolen_bytes, &c::steals, 1);
    const auto copy = mean_of(s, &c::steal_copy_ns, &c::steals_timed, 1e-3);
    std::fprintf(to, "  %-24s %7u %9.4f %9.1f%% %6.1f%% %11llu %12s %8llu %12llu %10s %8s %9s\n",
                 s.name.c_str(), s.workers, s.median_s, 100 * part, 100 / s.over_reference / s.workers,
                 static_cast<unsigned long long>(s.counts.outstanding_joins), text(waited).c_str(),
                 static_cast<unsigned long long>(s.counts.steals),
                 static_cast<unsigned long long>(s.counts.steals_failed), text(latency).c_str(),
                 text(bytes).c_str(), text(copy).c_str());
    // What orders are judged by: a median may differ by one event where the rounds disagree.
    ordered_json joins = ordered_json::array(), waits = ordered_json::array();
    for (const auto& one : s.samples) {
      joins.push_back(one.counts.outstanding_joins);
      waits.push_back(json_of(mean_of(one, &c::outstanding_ns, &c::outstanding_resumed, 1e-3)));
    }
    rows.push_back({{"variant", s.name},
                    {"policy", s.policy},
                    {"workers", s.workers},
                    {"seconds", s.median_s},
                    {"efficiency", part},
                    {"efficiency_over_reference", 1 / s.over_reference / s.workers},
                    {"outstanding_joins", s.counts.outstanding_joins},
                    {"outstanding_us", json_of(waited)},
                    {"steals", s.counts.steals},
                    {"steals_failed", s.counts.steals_failed},
                    {"steal_us", json_of(latency)},
                    {"stolen_bytes", json_of(bytes)},
                    {"copy_us", json_of(copy)},
                    {"of_rounds", {{"outstanding_joins", joins}, {"outstanding_us", waits}}}});
  }
  std::fprintf(
      to,
      "  outstanding: joins that found their thread unfinished; wait: from when such a join could go on "
      "to when it did\n");
  p.json()["measurements"].push_back({{"title", title + ": joins and steals"}, {"rows", rows}});
}

}  // namespace bench
