// The headline, and the order of the findings. See summary.hpp.
#include "explainer.hpp"

#include "trace/verdict.hpp"

#include <algorithm>
#include <cstdio>

namespace godwit::report {

std::string plural(double n, const char* one) { return format_count(n) + " " + one + (n == 1 ? "" : "s"); }

std::string decimals(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", value < 100 ? 2 : 0, value);
  return text;
}

const waiting_place* worst_place(const analysis* a, wait_for kind) {
  const waiting_place* worst = nullptr;
  if (a != nullptr)
    for (const waiting_place& p : a->places)
      if (p.kind == kind && p.idle_ns > 0 && (worst == nullptr || p.idle_ns > worst->idle_ns)) worst = &p;
  return worst;
}

std::string waited_for(const waiting_place& p) {
  return (p.what.empty() ? "the end of a thread" : "a " + p.what) + " at " + format_place(p);
}

std::string accesses_of(const waiting_place& p) {
  return format_count(static_cast<double>(p.count)) + " single " + p.what + "s of memory of " +
         (p.owner != nothing ? "worker " + std::to_string(p.owner) + "'s host" : "another host");
}

void explainer::headline() {
  finding h{level::good, "", "", ""};
  if (f.by_worker.empty() || f.wall <= 0) {
    h.title = plural(f.workers, "worker") + ", " + (f.whole_run > 0 ? format_time(f.whole_run) : "no times");
    h.text = "The file does not say how the workers' time divides, so nothing can be concluded.";
    out.push_back(h);
    return;
  }
  const report::verdict v = verdict();
  h.title = trace::speed_up_text(f.speed_up(), f.workers) +
            (f.hosts > 1 ? " of " + plural(f.hosts, "host") : "") + ": " + v.text + "." + system_sentence(v);
  h.title[0] = 'S';
  h.advice = v.advice;
  h.text = "In " + format_time(f.wall) + " on average " + decimals(f.speed_up()) + " of " +
           plural(f.workers, "worker") + " had a thread to run (T1/TP), an efficiency of " +
           format_percent(f.speed_up() / std::max(1u, f.workers)) + ". " + format_percent(lost_in_all()) +
           " of the workers' time (" + format_time(f.lost()) + " of " + format_time(f.known()) +
           ") was lost.";
  std::vector<std::pair<double, state>> shares;
  for (const state s : causes_of_loss) shares.emplace_back(lost_share(s), s);
  std::sort(shares.rbegin(), shares.rend(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::string list;
  for (const auto& [share, s] : shares) {
    if (share < 0.03) continue;
    list += (list.empty() ? " Of that: " : "; ") + format_percent(share) + " ";
    if (s == state::getting) list += "getting threads from other workers";
    if (s == state::no_work) list += "having nothing to run";
    if (s == state::transport) list += "waiting for other hosts";
    if (s == state::lock) list += "with nothing to run while threads waited for locks";
    if (s == state::event) list += "with nothing to run while threads waited for others";
    if (s == state::outside) list += "while no thread wanted a CPU";
    if (s == state::access) list += "waiting for single values of other hosts";
    if (s == state::blocked) list += "while threads waited in the operating system";
    if (s == state::kernel) list += "while the operating system worked for threads";
    if (s == state::join) {
      const waiting_place* p = worst_place(a);
      list += "waiting for outstanding joins";
      if (p != nullptr) list += " (most of it at " + format_place(*p) + ")";
    }
  }
  if (lost_in_all() >= 0.005 && !list.empty()) h.text += list + ".";
  if (lost_in_all() > 0.05) h.what = level::cause;
  out.push_back(h);
}

std::vector<finding> explain(const run_figures& f, const recording& r, const analysis* a) {
  explainer e{f, r, a, {}};
  e.headline();
  e.causes();
  e.chain();
  e.parallelism();
  e.oversubscribed();
  e.asleep();
  e.messages();
  e.global_memory();
  e.moves();
  e.stayed();
  e.caveats();
  return std::move(e.out);
}

}  // namespace godwit::report
