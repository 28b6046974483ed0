// See system_times.hpp.
#include "analysis.hpp"

#include <algorithm>
#include <map>

namespace godwit::report {

using trace::system_kind;

namespace {

/// Calls each(segment, its length within the piece) for what ran in the piece.
template <class F>
void each_busy(const analysis& a, const system_piece& p, F each) {
  const std::vector<segment>& line = a.timeline[p.worker];
  const std::uint64_t from = std::max(p.begin, a.whole_from);
  if (p.end <= from) return;
  auto s = std::upper_bound(line.begin(), line.end(), from,
                            [](std::uint64_t time, const segment& x) { return time < x.end; });
  for (; s != line.end() && s->begin < p.end; ++s)
    if (s->what == state::busy) each(*s, std::min(s->end, p.end) - std::max(s->begin, from));
}

/// Out of the busy time of a worker.
void take(worker_totals& w, state what, std::uint64_t ns) {
  std::uint64_t& busy = w.ns[static_cast<std::size_t>(state::busy)];
  ns = std::min(ns, busy);
  busy -= ns;
  w.ns[static_cast<std::size_t>(what)] += ns;
}

}  // namespace

std::uint32_t system_times::worst(system_kind k) const noexcept {
  const auto most = std::max_element(names.begin(), names.end(), [&](const of_name& x, const of_name& y) {
    return x.ns[at(k)] < y.ns[at(k)];
  });
  return most == names.end() ? nothing : most->name;
}

system_times divide_system_times(analysis& a, const std::vector<system_piece>& pieces) {
  system_times all;
  std::vector<by_system_kind> by_worker(a.workers);
  std::map<std::uint32_t, by_system_kind> by_name;
  for (const system_piece& p : pieces) {
    std::uint64_t ran = 0;
    each_busy(a, p, [&](const segment&, std::uint64_t ns) { ran += ns; });
    if (ran == 0) continue;
    const std::uint64_t kept = std::min(p.ns, ran);
    const double part = static_cast<double>(kept) / static_cast<double>(ran);
    all.faults += p.faults;
    all.ns[at(p.kind)] += kept;
    by_worker[p.worker][at(p.kind)] += kept;
    each_busy(a, p, [&](const segment& s, std::uint64_t ns) {
      by_name[s.name][at(p.kind)] += static_cast<std::uint64_t>(part * static_cast<double>(ns));
    });
  }
  for (std::uint32_t w = 0; w < a.workers; ++w) {
    worker_totals& t = a.totals[w];
    // Waits for other hosts are waits in the system, too, and have their own names.
    const std::uint64_t waits = by_worker[w][at(system_kind::waits)];
    take(t, state::blocked, waits - std::min(waits, t.access_ns + t.fetch_ns + t.write_back_ns));
    take(t, state::kernel, by_worker[w][at(system_kind::kernel)]);
  }
  for (const auto& [name, ns] : by_name) all.names.push_back({name, ns});
  return all;
}

}  // namespace godwit::report
