// The one thing to know about a run: what the headline says behind the speed-up. See explainer.hpp.
//
// Shares and medians decide, never absolute times alone: where workers share CPUs, all pieces are longer.
#include "explainer.hpp"

#include "trace/verdict.hpp"

#include <algorithm>
#include <cctype>

namespace godwit::report {

using trace::system_kind;

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

std::string explainer::held_by(const waiting_place& lock) const {
  return lock.held_by == nothing ? std::string() : ", held by " + name_of(lock.held_by);
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
    return {threads() + held_by(*p), "Hold the lock for less, or use several."};
  if (lost_share(state::event) > 0.5 && (p = worst_place(a, wait_for::event)) != nullptr)
    return {threads(), "Do earlier what they wait for."};
  if (lost_share(state::outside) > 0.5 && (p = worst_place(a, wait_for::outside)) != nullptr)
    return {"no thread wanted a CPU for " + format_percent(quiet()) + " of the time: " + p->what + " at " +
                format_place(*p),
            "Let more threads wait at the same time; more workers do not help."};
  return {};
}

std::string explainer::waited_in_system() const {
  return "threads waited in the operating system for " +
         format_percent(share_of_own_time(f.total[at(state::blocked)])) + " of their time" +
         (a != nullptr ? ", mostly " + name_of(a->system.worst(system_kind::waits)) : "");
}
std::string explainer::kernel_worked() const {
  return "the operating system worked for " + format_percent(share_of_own_time(f.total[at(state::kernel)])) +
         " of the threads' time (" + plural(real(a->system.faults), "page fault") + "), mostly for " +
         name_of(a->system.worst(system_kind::kernel));
}

std::string explainer::ready_advice() const {
  if (f.policy != "greedy")
    return "Under the policy " + f.policy +
           " only the worker that a thread left runs it again: GODWIT_POLICY=greedy runs it at once.";
  return "Workers came late: they sleep when there is nothing for GODWIT_SPIN_US, and wait for a CPU where "
         "others have it.";
}

/// Threads could go on, and did not.
verdict explainer::nobody_ran() const {
  if (ready_share() < 0.5) return {};
  const waiting_place* const p = readiest_place();
  return {"threads were ready, and nobody ran them, for " + format_percent(ready_share()) +
              " of the lost time" + (p != nullptr ? ": after waits at " + format_place(*p) : ""),
          ready_advice()};
}

/// Threads had workers, and the operating system did not let them go on.
verdict explainer::kept_by_system() const {
  if (lost_share(state::blocked) > 0.5) return {waited_in_system(), waits_keep_workers};
  if (lost_share(state::kernel) > 0.5) return {kernel_worked(), kernel_works};
  return {};
}

/// What is worth saying behind @p first, the verdict.
std::string explainer::system_sentence(const report::verdict& first) const {
  if (a == nullptr) return "";
  std::string text;
  const auto say_if = [&](double share, std::string sentence) {
    if (share < trace::much || sentence == first.text) return;
    sentence[0] = static_cast<char>(std::toupper(sentence[0]));
    text += " " + sentence + ".";
  };
  say_if(share_of_own_time(f.total[at(state::blocked)]), waited_in_system());
  say_if(share_of_own_time(f.total[at(state::kernel)]), kernel_worked());
  const double aside = share_of_threads(put_aside());
  say_if(aside, "others had the CPUs for " + format_percent(aside) + " of the threads' time");
  return text;
}

/// Threads so small that making or getting them is what workers do, most of them where @p name says. @p what:
/// "5,000 times ..."
verdict explainer::fine(const std::string& what, std::uint32_t name) const {
  return {"tasks too fine: " + what + (name != nothing ? ", mostly " + name_of(name) : ""),
          "Make the leaves larger: a higher cut-off, or several of them in one thread."};
}

/// Of the pieces that steals left behind, most have that name.
std::uint32_t explainer::mostly_left() const {
  const std::vector<culprit> none, &names = a != nullptr ? a->while_idle.names : none;
  const auto most = std::max_element(names.begin(), names.end(),
                                     [](const culprit& x, const culprit& y) { return x.pieces < y.pieces; });
  return most != names.end() ? most->name : nothing;
}

/// They were counted, if the program was compiled for that; else a trace has samples.
verdict explainer::fine_by_spawns() const {
  constexpr double costly_ns = 200, rarely_stolen_ns = 20'000;
  constexpr std::uint64_t enough = 50;
  const auto totals = r.stats.find("totals");
  const double counted = totals != r.stats.end() ? number_of(*totals, "spawns") : 0;
  const bool sampled = counted <= 0 && a != nullptr && a->spawns.seen >= enough;
  const double spawns = sampled ? a->spawns.spawns : counted;
  const bool lost = lost_in_all() >= trace::much;
  if (f.busy() >= (lost ? rarely_stolen_ns : costly_ns) * spawns) return {};
  const std::string work = format_time(f.busy() / spawns) + " of work";
  return fine(sampled ? "a spawn for every " + work : plural(spawns, "spawn") + " with " + work + " each",
              a != nullptr && a->spawns.most != nothing ? a->spawns.most : mostly_left());
}

/// Nothing else ran for most of that, in one piece.
bool once(const culprit& c) { return real(c.to - c.from) > 0.8 * real(c.alone_ns); }

/// One worker at a time had a thread.
verdict explainer::serial(const culprit& c) const {
  std::string text =
      once(c) ? "serial from " + format_time(real(c.from)) + " to " + format_time(real(c.to))
              : "serial for " + format_percent(real(c.alone_ns) / real(a->wall())) + " of the time";
  text += ": " + name_of(c.name);
  if (c.spawns) text += ", before it spawned";
  return {text, c.spawns ? "Spawn earlier, or divide what runs before."
                         : "Divide what runs there, or let it overlap with something else."};
}

/// The first of all. Where that is but the way from one unequal task to the next, both are one.
culprit explainer::first_culprit() const {
  const std::vector<culprit>& names = a->while_idle.names;
  const culprit& c = names.front();
  if (!c.spawns || once(c)) return c;
  const auto same = [&](const culprit& x) { return x.name == c.name && !x.spawns; };
  const auto tasks = std::find_if(names.begin(), names.end(), same);
  if (tasks == names.end() || tasks->lost_ns < c.lost_ns / 2) return c;
  culprit both = *tasks;
  both.lost_ns += c.lost_ns;
  return both;
}

/// Most was lost because of one piece of a thread, however small those elsewhere are.
bool explainer::one_piece_rules() const {
  if (a == nullptr || a->while_idle.names.empty()) return false;
  const culprit& c = a->while_idle.names.front();
  return real(c.lost_ns) > 0.5 * f.lost() && (once(c) || c.most_lost_ns > c.lost_ns / 2);
}

/// What kept running while others had nothing to run.
verdict explainer::what_ran() const {
  const blame& b = a->while_idle;
  if (b.names.empty() || lost_share(state::transport) > 0.5) return {};
  if (real(b.lost_ns) < 0.5 * (f.lost() - f.total[at(state::transport)])) return {};
  const culprit c = first_culprit();
  constexpr std::uint64_t enough = 20;
  if (a->left_ns.count >= enough && a->left_ns.quantile(0.5) < fine_ns(*a) &&
      real(c.most_lost_ns) < 0.5 * real(b.lost_ns))
    return fine("threads left behind by steals ran for " + format_time(a->left_ns.quantile(0.5)) +
                    " (median of " + format_count(real(a->left_ns.count)) + ")",
                mostly_left());
  const double own = real(b.lost_ns - b.offered_ns);  // the rest is late thieves
  if (own < trace::much * f.known()) return {};
  if (f.workers > 2 && share_of_busy(*a, f.workers, f.workers + 1) < 0.1 &&
      share_of_busy(*a, 2, f.workers) > 0.5)
    return {"too few tasks: on average " + decimals(f.speed_up()) + " of " + plural(f.workers, "worker") +
                " had one, mostly " + name_of(c.name),
            "Divide the work into more threads, several for each worker."};
  if (real(c.lost_ns) < 0.4 * own) return {};
  const bool alone = real(c.alone_ns) * (f.workers - 1) > 0.5 * real(c.lost_ns);
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
  if (v.text.empty() && lost) v = nobody_ran();
  if (v.text.empty() && !(lost && one_piece_rules())) v = fine_by_spawns();
  if (v.text.empty() && lost) v = kept_by_system();
  if (v.text.empty() && a != nullptr && lost) v = what_ran();
  if (!v.text.empty() || f.known() <= 0) return v;
  const auto part = [&](state s) { return f.total[at(s)] / f.known(); };
  return {trace::lost_text({.no_work = part(state::no_work),
                            .join = part(state::join),
                            .wait = part(state::lock) + part(state::event) + part(state::outside),
                            .transport = part(state::transport),
                            .getting = part(state::getting),
                            .access = part(state::access),
                            .blocked = part(state::blocked),
                            .kernel = part(state::kernel)}),
          ""};
}

}  // namespace godwit::report
