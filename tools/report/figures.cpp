// The run in numbers, from a trace or from counters. See summary.hpp.
#include "summary.hpp"

#include "trace/verdict.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace godwit::report {

using nlohmann::json;

namespace {

constexpr std::size_t at(state s) { return static_cast<std::size_t>(s); }

/// A worker's counters say how long it lived and why it was idle; steals are part of that idleness.
void add_counters(run_figures& f, const json& worker) {
  std::array<double, states> ns{};
  const double life = number_of(worker, "life_ns");
  const double join = number_of(worker, "idle_join_ns"), transport = number_of(worker, "idle_transport_ns");
  const double no_work = number_of(worker, "idle_no_work_ns"), waits = number_of(worker, "idle_wait_ns");
  const double idle = std::min(join + transport + no_work + waits, life);
  ns[at(state::access)] = std::min(number_of(worker, "far_single_ns"), life - idle);
  const double far = number_of(worker, "far_single_ns") + number_of(worker, "global_fetch_ns") +
                     number_of(worker, "global_write_back_ns");
  ns[at(state::blocked)] =
      trace::blocked_ns(life, number_of(worker, "cpu_ns"), number_of(worker, "aside_ns"), idle, far);
  ns[at(state::busy)] = std::max(life - idle - ns[at(state::access)] - ns[at(state::blocked)], 0.0);
  const double getting = trace::getting_ns(number_of(worker, "steals"), number_of(worker, "far_steals"),
                                           number_of(worker, "steals_timed"), number_of(worker, "steal_ns"),
                                           number_of(worker, "far_steal_ns"));
  ns[at(state::getting)] = std::min(getting, no_work);
  ns[at(state::no_work)] = no_work - ns[at(state::getting)];
  ns[at(state::join)] = join;
  ns[at(state::event)] = waits;  // of which kind, counters do not say
  ns[at(state::transport)] = transport;
  f.by_worker.push_back(ns);
  f.sleep.push_back(0);
  f.wall = std::max(f.wall, life);
}

void add_span(run_figures& f, const json& stats) {
  const auto list = stats.find("workers");
  if (list == stats.end() || !list->is_array()) return;
  double work = 0, span = 0;
  for (const json& w : *list) {
    if (!w.is_object()) continue;
    work += number_of(w, "work_ns");
    span = std::max(span, number_of(w, "span_ns"));
  }
  if (span > 0 && work > 0) f.span = span, f.work = work;
}

}  // namespace

double run_figures::known() const noexcept {
  return std::accumulate(total.begin(), total.end(), 0.0) - total[at(state::unknown)];
}

run_figures figures_of(const recording& r, const analysis* a) {
  run_figures f;
  f.program = text_of(r.info, "program");
  f.policy = text_of(r.info, "policy");
  f.workers = r.workers - r.spares;
  f.hosts = static_cast<std::uint32_t>(std::set(r.host_of.begin(), r.host_of.end()).size());
  f.cpus = number_of(r.info, "cpus", -1);
  if (const double s = number_of(r.info, "seconds", -1); s > 0) f.whole_run = s * 1e9;
  if (a != nullptr) {
    f.wall = static_cast<double>(a->wall());
    f.longest_chain = static_cast<double>(a->longest_chain_ns);
    for (const worker_totals& w : a->totals) {
      auto& mine = f.by_worker.emplace_back();
      std::copy(w.ns.begin(), w.ns.end(), mine.begin());
      f.sleep.push_back(static_cast<double>(w.sleep_ns));
    }
  } else if (const auto list = r.stats.find("workers"); list != r.stats.end() && list->is_array()) {
    for (const json& w : *list)
      if (w.is_object() && number_of(w, "life_ns") > 0) add_counters(f, w);
    if (f.by_worker.size() != f.workers) f.by_worker.clear(), f.sleep.clear();
  }
  for (const auto& w : f.by_worker)
    for (std::size_t s = 0; s < states; ++s) f.total[s] += w[s];
  f.total_sleep = std::accumulate(f.sleep.begin(), f.sleep.end(), 0.0);
  add_span(f, r.stats);
  return f;
}

}  // namespace godwit::report
