// The one thing to know about a run: what the headline says behind the speed-up. See explainer.hpp.
//
// Shares and medians decide, never absolute times alone: where workers share CPUs, all pieces are longer.
#include "explainer.hpp"

#include "trace/verdict.hpp"

#include <algorithm>

namespace godwit::report {

namespace {

double real(std::uint64_t n) { return static_cast<double>(n); }

/// Of the run's time, that in which so many workers were busy.
double share_of_busy(const analysis& a, std::uint32_t from, std::uint32_t to) {
  std::uint64_t ns = 0;
  for (std::uint32_t n = from; n < to && n < a.ns_by_busy.size(); ++n) ns += a.ns_by_busy[n];
  return a.wall() > 0 ? real(ns) / real(a.wall()) : 0;
}

/// A thread that shorter pieces than that are stolen for is too small.
double fine_ns(const analysis& a) {
  constexpr double least = 20'000, steals_worth = 5;
  return std::max(least, steals_worth * a.steal_ns.quantile(0.5));
}

}  // namespace

std::string explainer::name_of(std::uint32_t name) const {
  return name < a->names.size() ? a->names[name] : "a thread";
}

/// A kind of wait that took most of what was lost.
verdict explainer::waits_and_accesses() const {
  const waiting_place* p = nullptr;
  const auto threads = [&] {
    return format_count(real(p->most_at_once)) + " of " + plural(real(p->threads), "thread") +
           " waited at once for " + waited_for(*p);
  };
  if (accesses_rule() && (p = worst_access()) != nullptr)
    return {accesses_of(*p) + " at " + format_place(*p) + " took " + format_percent(access_share()) +
                " of the threads' time",
            "Check out the range."};
  if (lost_share(state::lock) > 0.5 && (p = worst_place(a, wait_for::lock)) != nullptr)
    return {threads(), "Hold the lock for less, or use several."};
  if (lost_share(state::event) > 0.5 && (p = worst_place(a, wait_for::event)) != nullptr)
    return {threads(), "Do earlier what they wait for."};
  if (lost_share(state::outside) > 0.5 && (p = worst_place(a, wait_for::outside)) != nullptr)
    return {"no thread wanted a CPU for " + format_percent(quiet()) + " of the time: " + p->what + " at " +
                format_place(*p),
            "Let more threads wait at the same time; more workers do not help."};
  return {};
}

/// Threads so small that making or getting them is what workers do. @p what: "5,000 times ..."
verdict explainer::fine(const std::string& what) const {
  const std::vector<culprit> none, &names = a != nullptr ? a->while_idle.names : none;
  const auto most = std::max_element(names.begin(), names.end(),
                                     [](const culprit& x, const culprit& y) { return x.pieces < y.pieces; });
  return {"tasks too fine: " + what + (most != names.end() ? ", mostly " + name_of(most->name) : ""),
          "Make the leaves larger: a higher cut-off, or several of them in one thread."};
}

/// One worker at a time had a thread.
verdict explainer::serial(const culprit& c) const {
  const bool once = real(c.to - c.from) > 0.8 * real(c.alone_ns);
  std::string text =
      once ? "serial from " + format_time(real(c.from)) + " to " + format_time(real(c.to))
           : "serial for " + format_percent(real(c.alone_ns) / real(a->wall())) + " of the time";
  text += ": " + name_of(c.name);
  if (c.spawns) text += ", before it spawned";
  return {text, c.spawns ? "Spawn earlier, or divide what runs before."
                         : "Divide what runs there, or let it overlap with something else."};
}

/// What kept running while others had nothing to run.
verdict explainer::what_ran() const {
  const blame& b = a->while_idle;
  if (b.names.empty() || real(b.lost_ns) < 0.5 * f.lost()) return {};
  const culprit& c = b.names.front();
  constexpr std::uint64_t enough = 20;
  if (a->left_ns.count >= enough && a->left_ns.quantile(0.5) < fine_ns(*a) &&
      real(c.most_lost_ns) < 0.5 * real(b.lost_ns))
    return fine("threads left behind by steals ran for " + format_time(a->left_ns.quantile(0.5)) +
                " (median of " + format_count(real(a->left_ns.count)) + ")");
  if (real(b.offered_ns) > 0.5 * real(b.lost_ns)) return {};
  if (a->workers > 2 && share_of_busy(*a, a->workers, a->workers + 1) < 0.1 &&
      share_of_busy(*a, 2, a->workers) > 0.5)
    return {"too few tasks: on average " + decimals(f.speed_up()) + " of " + plural(f.workers, "worker") +
                " had one, mostly " + name_of(c.name),
            "Divide the work into more threads, several for each worker."};
  if (real(c.lost_ns) < 0.4 * real(b.lost_ns - b.offered_ns)) return {};
  const bool alone = real(c.alone_ns) * (a->workers - 1) > 0.5 * real(c.lost_ns);
  if (alone && (c.spawns || c.resumed)) return serial(c);
  const std::string ran = name_of(c.name) + " ran for up to " + format_time(real(c.longest_ns));
  if (c.most_lost_ns > c.lost_ns / 2)
    return {
        "one big leaf: " + ran + ", " + format_percent(real(c.longest_ns) / real(a->wall())) + " of the time",
        "Spawn it first, or divide it."};
  return {"uneven tasks: " + ran, "Divide more evenly, into more threads, or spawn the largest first."};
}

verdict explainer::verdict() const {
  const bool lost = lost_in_all() >= trace::much;
  report::verdict v;
  if (a != nullptr && lost) v = waits_and_accesses();
  // Counted only if the program was compiled for that.
  constexpr double costly_ns = 200, rarely_stolen_ns = 20'000;
  const auto totals = r.stats.find("totals");
  const double spawns = totals != r.stats.end() ? number_of(*totals, "spawns") : 0;
  if (v.text.empty() && f.busy() < (lost ? rarely_stolen_ns : costly_ns) * spawns)
    v = fine(plural(spawns, "spawn") + " with " + format_time(f.busy() / spawns) + " of work each");
  if (v.text.empty() && a != nullptr && lost) v = what_ran();
  if (!v.text.empty() || f.known() <= 0) return v;
  const auto part = [&](state s) { return f.total[at(s)] / f.known(); };
  return {trace::lost_text({.no_work = part(state::no_work),
                            .join = part(state::join),
                            .wait = part(state::lock) + part(state::event) + part(state::outside),
                            .transport = part(state::transport),
                            .getting = part(state::getting),
                            .access = part(state::access)}),
          ""};
}

}  // namespace godwit::report
