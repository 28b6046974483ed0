// The numbers of a comparison, and its sentences. See compare.hpp.
#include "compare.hpp"

#include <algorithm>
#include <cstdio>

namespace godwit::report {
namespace {

using nlohmann::json;

std::string ratio(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", value < 100 ? 2 : 0, value);
  return text;
}

std::string workers(const compared_run& r) {
  return std::to_string(r.figures.workers) + (r.figures.workers == 1 ? " worker" : " workers");
}

/// The program's file name and its own arguments.
std::string command_of(const recording& r) {
  const std::string program = text_of(r.info, "program");
  std::string command = program.substr(program.rfind('/') + 1);
  const auto add = [&](const std::string& argument) {
    if (!argument.starts_with("--godwit-")) command += " " + argument;
  };
  if (const auto list = r.info.find("arguments"); list != r.info.end() && list->is_array()) {
    for (const json& argument : *list)
      if (argument.is_string()) add(argument.get<std::string>());
  } else if (const std::string line = text_of(r.info, "arguments"); !line.empty()) {
    command += " " + line;
  }
  return command;
}
std::string program_of(const compared_run& r) { return r.command.substr(0, r.command.find(' ')); }

/// How many there were, and their time. Counters time some of the steals inside a host only.
void add_steals(compared_run& run, const recording& r, const analysis* a) {
  if (a != nullptr) {
    run.steals = static_cast<double>(a->steal_ns.count + a->far_steal_ns.count);
    run.steal_ns = a->steal_ns.sum + a->far_steal_ns.sum;
    return;
  }
  for (const json& w : r.stats.at("workers")) {
    const double all = number_of(w, "steals"), far = std::min(all, number_of(w, "far_steals"));
    const double timed = number_of(w, "steals_timed");
    run.steals += all;
    run.steal_ns += number_of(w, "far_steal_ns") +
                    number_of(w, "steal_ns") * (timed > 0 ? std::max(1.0, (all - far) / timed) : 1.0);
  }
}

/// All equal, or all different; else who has the same number.
bool all_differ(const std::vector<compared_run>& runs) {
  const auto same = [](const compared_run& x, const compared_run& y) {
    return x.figures.workers == y.figures.workers;
  };
  const auto twice = std::adjacent_find(runs.begin(), runs.end(), same);
  if (twice == runs.end()) return true;
  if (same(runs.front(), runs.back())) return false;
  throw input_error(twice->name + " and " + (twice + 1)->name + ": both have " + workers(*twice) +
                    "; give runs that all have the same number of workers, or all different ones");
}

/// The run that took the least time.
const compared_run& fastest(const comparison& c) {
  return *std::min_element(c.runs.begin(), c.runs.end(), [](const compared_run& x, const compared_run& y) {
    return x.figures.wall < y.figures.wall;
  });
}

}  // namespace

compared_run compared(const recording& r, const analysis* a, const std::string& name) {
  if (const double status = number_of(r.info, "status"); status != 0)
    throw input_error(name + ": that run failed (status " + format_count(status) + ": " +
                      text_of(r.info, "message") + "); compare runs that ended well");
  if (a != nullptr && a->dropped > 0) a = nullptr;  // counters are of the whole run
  compared_run run{name, command_of(r), figures_of(r, a), {}, 0, 0, r.stats};
  if (run.figures.by_worker.empty() || run.figures.wall <= 0)
    throw input_error(name +
                      ": does not say how the workers' time divides, so there is nothing to compare; "
                      "give a whole trace or a file of GODWIT_STATS_JSON");
  run.verdict = explain(run.figures, r, a).front().title;
  add_steals(run, r, a);
  return run;
}

comparison compare(std::vector<compared_run> runs) {
  if (runs.size() < 2) throw input_error("give at least two files to compare");
  for (const compared_run& r : runs)
    if (program_of(r) != program_of(runs.front()))
      throw input_error(r.name + ": a run of " + program_of(r) + ", but " + runs.front().name +
                        " is one of " + program_of(runs.front()) + "; compare runs of one program");
  std::stable_sort(runs.begin(), runs.end(), [](const compared_run& x, const compared_run& y) {
    return x.figures.workers < y.figures.workers;
  });
  comparison c;
  c.scaling = all_differ(runs);
  c.runs = std::move(runs);
  const run_figures& base = c.runs.front().figures;
  c.base_time = c.scaling && base.workers > 1 ? base.busy() : base.wall;
  for (const compared_run& r : c.runs)
    if (c.span < 0 && r.figures.span > 0) c.work = r.figures.work, c.span = r.figures.span;
  return c;
}

double comparison::speed_up(std::size_t run) const noexcept { return base_time / runs[run].figures.wall; }

double comparison::bound(std::size_t run) const noexcept {
  const run_figures& f = runs[run].figures;
  double most = f.workers;
  if (f.cpus > 0) most = std::min(most, f.cpus);
  if (span > 0) most = std::min(most, work / span);
  return most;
}

std::string headline_of(const comparison& c) {
  const compared_run& best = fastest(c);
  const compared_run& first = c.runs.front();
  if (!c.scaling) {
    if (&best == &first) return "No run is faster than " + first.name + ", the first";
    return best.name + " is " + ratio(first.figures.wall / best.figures.wall) + " × as fast as " + first.name;
  }
  const auto index = static_cast<std::size_t>(&best - c.runs.data());
  std::string text = "Speed-up " + ratio(c.speed_up(index)) + " on " + workers(best) + ", of at most " +
                     ratio(c.bound(index));
  if (&best != &c.runs.back())
    text += "; with " + workers(c.runs.back()) + " only " + ratio(c.speed_up(c.runs.size() - 1));
  return text;
}

std::string base_of(const comparison& c) {
  const compared_run& base = c.runs.front();
  if (!c.scaling) return "Ratios are to " + base.name + ", the first file.";
  if (base.figures.workers == 1)
    return "A speed-up of 1 is the time with one worker, " + format_time(c.base_time) + ".";
  return "No run had one worker: a speed-up of 1 is the time that the " + workers(base) + " of " + base.name +
         " had threads, " + format_time(c.base_time) + ".";
}

std::string bound_of(const comparison& c) {
  if (c.span <= 0)
    return "The bound is the least of workers and CPUs: no run measured the span (GODWIT_SPAN=1), which may "
           "bound it further.";
  std::string text = "The bound is the least of workers, CPUs and T1/T∞ = " + ratio(c.work / c.span) +
                     " (work " + format_time(c.work) + ", span " + format_time(c.span) +
                     ", measured with GODWIT_SPAN).";
  const bool all =
      std::all_of(c.runs.begin(), c.runs.end(), [](const compared_run& r) { return r.figures.span > 0; });
  if (!all) text += " Measuring the span slows a run, and only some of these did: let all do it, or none.";
  return text;
}

}  // namespace godwit::report
