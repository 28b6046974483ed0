// See stats_output.hpp.
#include "runtime/stats_output.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>

#include "base/code_place.hpp"
#include "base/json.hpp"
#include "base/options.hpp"
#include "base/text.hpp"
#include "sched/account.hpp"
#include "trace/verdict.hpp"

namespace godwit::runtime {

namespace {

using stats = worker_stats;

constexpr counter_field fields[] = {
    {"spawns", &stats::spawns, false},
    {"steals", &stats::steals, false},
    {"steals_failed", &stats::steals_failed, false},
    {"steals_timed", &stats::steals_timed, false},
    {"steal_ns", &stats::steal_ns, false},
    {"steal_copy_ns", &stats::steal_copy_ns, false},
    {"stolen_bytes", &stats::stolen_bytes, false},
    {"outstanding_joins", &stats::outstanding_joins, false},
    {"outstanding_resumed", &stats::outstanding_resumed, false},
    {"outstanding_ns", &stats::outstanding_ns, false},
    {"suspends", &stats::suspends, false},
    {"evacuated_bytes", &stats::evacuated_bytes, false},
    {"resumes", &stats::resumes, false},
    {"exposures", &stats::exposures, false},
    {"signals", &stats::signals, false},
    {"sleeps", &stats::sleeps, false},
    {"messages", &stats::messages, false},
    {"message_ns", &stats::message_ns, false},
    {"far_steals", &stats::far_steals, false},
    {"far_failed", &stats::far_failed, false},
    {"far_looks", &stats::far_looks, false},
    {"far_steal_ns", &stats::far_steal_ns, false},
    {"far_carry_ns", &stats::far_carry_ns, false},
    {"far_serve_ns", &stats::far_serve_ns, false},
    {"far_check_ns", &stats::far_check_ns, false},
    {"far_lock_ns", &stats::far_lock_ns, false},
    {"far_entry_ns", &stats::far_entry_ns, false},
    {"far_stack_ns", &stats::far_stack_ns, false},
    {"far_unlock_ns", &stats::far_unlock_ns, false},
    {"idle_no_work_ns", &stats::idle_no_work_ns, false},
    {"idle_join_ns", &stats::idle_join_ns, false},
    {"idle_wait_ns", &stats::idle_wait_ns, false},
    {"idle_transport_ns", &stats::idle_transport_ns, false},
    {"life_ns", &stats::life_ns, false},
    {"cpu_ns", &stats::cpu_ns, false},
    {"aside_ns", &stats::aside_ns, false},
    {"work_ns", &stats::work_ns, false},
    {"span_ns", &stats::span_ns, true},
    {"trace_events", &stats::trace_events, false},
    {"trace_dropped", &stats::trace_dropped, false},
    {"stack_high_bytes", &stats::stack_high_bytes, true},
    {"heap_high_bytes", &stats::heap_high_bytes, true},
    {"global_hits", &stats::global_hits, false},
    {"global_fetches", &stats::global_fetches, false},
    {"global_fetched_bytes", &stats::global_fetched_bytes, false},
    {"global_fetch_ns", &stats::global_fetch_ns, false},
    {"global_write_backs", &stats::global_write_backs, false},
    {"global_written_bytes", &stats::global_written_bytes, false},
    {"global_write_back_ns", &stats::global_write_back_ns, false},
    {"global_evictions", &stats::global_evictions, false},
    {"far_gets", &stats::far_gets, false},
    {"far_puts", &stats::far_puts, false},
    {"far_atomics", &stats::far_atomics, false},
    {"far_single_ns", &stats::far_single_ns, false},
    {"moves", &stats::moves, false},
    {"move_calls", &stats::move_calls, false},
    {"moved_bytes", &stats::moved_bytes, false},
    {"moves_busy", &stats::moves_busy, false},
    {"moves_no_room", &stats::moves_no_room, false},
    {"move_ns", &stats::move_ns, false},
    {"move_wait_ns", &stats::move_wait_ns, false},
    {"part_waits", &stats::part_waits, false},
    {"part_wait_ns", &stats::part_wait_ns, false},
    {"translations", &stats::translations, false},
    {"translation_hits", &stats::translation_hits, false},
    {"translation_stale", &stats::translation_stale, false},
    {"translation_misses", &stats::translation_misses, false},
    {"translation_evictions", &stats::translation_evictions, false},
    {"forwards", &stats::forwards, false},
    {"letters", &stats::letters, false},
    {"threads_sent", &stats::threads_sent, false},
    {"threads_sent_on", &stats::threads_sent_on, false},
    {"threads_fetched", &stats::threads_fetched, false},
    {"threads_left", &stats::threads_left, false},
    {"threads_kept", &stats::threads_kept, false},
    {"threads_stayed", &stats::threads_stayed, false},
};
static_assert(
    std::size(fields) * sizeof(std::uint64_t) + sizeof(stats::far_steal_times) + sizeof(stats::stayed_at) ==
        sizeof(stats),
    "a counter was added to worker_stats: give it a row above, a line in docs/tracing.md, and in rows below "
    "if the table should show it");

constexpr double none = std::numeric_limits<double>::quiet_NaN();
double ratio(double a, double b) { return b != 0 ? a / b : none; }
double f(std::uint64_t n) { return static_cast<double>(n); }
/// Microseconds for each of @p n.
double us_each(std::uint64_t ns, std::uint64_t n) { return ratio(f(ns) / 1e3, f(n)); }
double percent_of_life(const stats& s, std::uint64_t ns) { return ratio(100 * f(ns), f(s.life_ns)); }
std::uint64_t idle_ns(const stats& s) {
  return s.idle_no_work_ns + s.idle_join_ns + s.idle_wait_ns + s.idle_transport_ns;
}

struct row {
  const char* title;
  double (*value)(const stats&);
  int decimals;
  bool if_any;  ///< left out where it is 0 for all workers
};
constexpr row rows[] = {
    {"spawns", [](const stats& s) { return s.spawns != 0 ? f(s.spawns) : none; }, 0, false},
    {"steals", [](const stats& s) { return f(s.steals); }, 0, false},
    {"  failed attempts", [](const stats& s) { return f(s.steals_failed); }, 0, false},
    {"  latency, us", [](const stats& s) { return us_each(s.steal_ns, s.steals_timed); }, 2, false},
    {"    of that copying", [](const stats& s) { return us_each(s.steal_copy_ns, s.steals_timed); }, 2,
     false},
    {"  stolen stack, bytes", [](const stats& s) { return ratio(f(s.stolen_bytes), f(s.steals)); }, 0, false},
    {"outstanding joins", [](const stats& s) { return f(s.outstanding_joins); }, 0, false},
    {"  ready until resumed, us",
     [](const stats& s) { return us_each(s.outstanding_ns, s.outstanding_resumed); }, 2, false},
    {"suspensions", [](const stats& s) { return f(s.suspends); }, 0, false},
    {"  copied out, KiB", [](const stats& s) { return f(s.evacuated_bytes) / 1024; }, 1, false},
    {"resumes", [](const stats& s) { return f(s.resumes); }, 0, false},
    {"exposures", [](const stats& s) { return f(s.exposures); }, 0, false},
    {"  by signal", [](const stats& s) { return f(s.signals); }, 0, false},
    {"sleeps", [](const stats& s) { return f(s.sleeps); }, 0, false},
    {"far steals", [](const stats& s) { return f(s.far_steals); }, 0, true},
    {"  failed attempts", [](const stats& s) { return f(s.far_failed); }, 0, true},
    {"  latency, us", [](const stats& s) { return us_each(s.far_steal_ns, s.far_steals); }, 1, true},
    {"messages handled", [](const stats& s) { return f(s.messages); }, 0, true},
    {"  time, ms", [](const stats& s) { return f(s.message_ns) / 1e6; }, 2, true},
    // none stays none: of two doubles max takes the first unless it is less
    {"busy, %", [](const stats& s) { return std::max(100 - percent_of_life(s, idle_ns(s)), 0.0); }, 1, false},
    {"on a CPU, %", [](const stats& s) { return s.cpu_ns != 0 ? percent_of_life(s, s.cpu_ns) : none; }, 1,
     true},
    {"others had its CPU, %", [](const stats& s) { return percent_of_life(s, s.aside_ns); }, 1, true},
    {"idle, %: no work", [](const stats& s) { return percent_of_life(s, s.idle_no_work_ns); }, 1, false},
    {"idle, %: outstanding join", [](const stats& s) { return percent_of_life(s, s.idle_join_ns); }, 1,
     false},
    {"idle, %: a wait", [](const stats& s) { return percent_of_life(s, s.idle_wait_ns); }, 1, true},
    {"idle, %: other hosts", [](const stats& s) { return percent_of_life(s, s.idle_transport_ns); }, 1, true},
    {"work, ms", [](const stats& s) { return f(s.work_ns) / 1e6; }, 2, true},
    {"trace events", [](const stats& s) { return f(s.trace_events); }, 0, true},
    {"  dropped", [](const stats& s) { return f(s.trace_dropped); }, 0, true},
    {"stack high-water mark, KiB", [](const stats& s) { return f(s.stack_high_bytes) / 1024; }, 0, false},
    {"heap high-water mark, KiB", [](const stats& s) { return f(s.heap_high_bytes) / 1024; }, 0, false},
    {"global cache hits", [](const stats& s) { return f(s.global_hits); }, 0, true},
    {"  fetches", [](const stats& s) { return f(s.global_fetches); }, 0, true},
    {"    KiB", [](const stats& s) { return f(s.global_fetched_bytes) / 1024; }, 1, true},
    {"    time, ms", [](const stats& s) { return f(s.global_fetch_ns) / 1e6; }, 2, true},
    {"  write-backs", [](const stats& s) { return f(s.global_write_backs); }, 0, true},
    {"    KiB", [](const stats& s) { return f(s.global_written_bytes) / 1024; }, 1, true},
    {"    time, ms", [](const stats& s) { return f(s.global_write_back_ns) / 1e6; }, 2, true},
    {"  evictions", [](const stats& s) { return f(s.global_evictions); }, 0, true},
    {"global gets, other hosts", [](const stats& s) { return f(s.far_gets); }, 0, true},
    {"  puts", [](const stats& s) { return f(s.far_puts); }, 0, true},
    {"  atomics", [](const stats& s) { return f(s.far_atomics); }, 0, true},
    {"  one by one: time, ms", [](const stats& s) { return f(s.far_single_ns) / 1e6; }, 2, true},
    {"moves of memory, parts", [](const stats& s) { return f(s.moves); }, 0, true},
    {"  calls", [](const stats& s) { return f(s.move_calls); }, 0, true},
    {"  KiB, other hosts", [](const stats& s) { return f(s.moved_bytes) / 1024; }, 1, true},
    {"  parts busy", [](const stats& s) { return f(s.moves_busy); }, 0, true},
    {"  parts without room", [](const stats& s) { return f(s.moves_no_room); }, 0, true},
    {"  time, ms", [](const stats& s) { return f(s.move_ns) / 1e6; }, 2, true},
    {"    of that waiting", [](const stats& s) { return f(s.move_wait_ns) / 1e6; }, 2, true},
    {"waits for moving parts", [](const stats& s) { return f(s.part_waits); }, 0, true},
    {"  time, ms", [](const stats& s) { return f(s.part_wait_ns) / 1e6; }, 2, true},
    {"translations", [](const stats& s) { return f(s.translations); }, 0, true},
    {"  hits", [](const stats& s) { return f(s.translation_hits); }, 0, true},
    {"  stale", [](const stats& s) { return f(s.translation_stale); }, 0, true},
    {"  misses", [](const stats& s) { return f(s.translation_misses); }, 0, true},
    {"  evictions", [](const stats& s) { return f(s.translation_evictions); }, 0, true},
    {"requests sent on", [](const stats& s) { return f(s.forwards); }, 0, true},
    {"letters", [](const stats& s) { return f(s.letters); }, 0, true},
    {"threads sent", [](const stats& s) { return f(s.threads_sent); }, 0, true},
    {"  sent on", [](const stats& s) { return f(s.threads_sent_on); }, 0, true},
    {"  fetched", [](const stats& s) { return f(s.threads_fetched); }, 0, true},
    {"threads left", [](const stats& s) { return f(s.threads_left); }, 0, true},
    {"  kept", [](const stats& s) { return f(s.threads_kept); }, 0, true},
    {"threads that stayed", [](const stats& s) { return f(s.threads_stayed); }, 0, true},
};

constexpr std::size_t most_columns = 8;
constexpr int title_width = 28;
constexpr int column_width = 12;

std::string cell(double v, int decimals) {
  char text[64];
  if (std::isnan(v))
    std::snprintf(text, sizeof text, "%*s", column_width, "-");
  else
    std::snprintf(text, sizeof text, "%*.*f", column_width, decimals, v);
  return text;
}

std::string line_of(const row& r, const std::vector<stats>& all, const stats& total) {
  std::vector<double> values;
  for (const stats& s : all) values.push_back(r.value(s));
  if (r.if_any && std::all_of(values.begin(), values.end(), [](double v) { return std::isnan(v) || v == 0; }))
    return {};
  char title[64];
  std::snprintf(title, sizeof title, "godwit: %-*s", title_width, r.title);
  std::string line = title;
  if (values.size() > most_columns) {
    std::erase_if(values, [](double v) { return std::isnan(v); });
    std::sort(values.begin(), values.end());
    const bool any = !values.empty();
    values = {any ? values.front() : none, any ? values[values.size() / 2] : none,
              any ? values.back() : none};
  }
  for (const double v : values) line += cell(v, r.decimals);
  return line + cell(r.value(total), r.decimals) + "\n";
}

std::string heading(const run_facts& facts) {
  char text[256];
  std::snprintf(text, sizeof text, "godwit: %zu workers on %zu host%s, policy %s, %.3f s%s\n",
                facts.stats.size(), facts.hosts.size(), facts.hosts.size() == 1 ? "" : "s",
                name_of(facts.opts.policy), facts.wall_seconds, facts.status != 0 ? " (the run failed)" : "");
  std::string lines = text;
  std::snprintf(text, sizeof text, "godwit: %-*s", title_width, "");
  lines += text;
  std::vector<std::string> names;
  if (facts.stats.size() > most_columns)
    names = {"smallest", "median", "largest"};
  else
    for (std::size_t i = 0; i < facts.stats.size(); ++i) names.push_back("worker " + std::to_string(i));
  names.emplace_back("all");
  for (const auto& n : names) {
    std::snprintf(text, sizeof text, "%*s", column_width, n.c_str());
    lines += text;
  }
  return lines + "\n";
}

void put_counters(base::json_writer& json, const stats& s) {
  json.begin_object();
  for (const counter_field& c : fields) json.field(c.name, s.*c.field);
  std::size_t n = std::size(s.far_steal_times);
  while (n > 0 && s.far_steal_times[n - 1] == 0) --n;
  json.key("far_steal_times").begin_array();
  for (std::size_t i = 0; i < n; ++i) json.value(s.far_steal_times[i]);
  json.end_array().end_object();
}

void put_derived(base::json_writer& json, const stats& s, bool span) {
  json.begin_object()
      .field("steal_latency_ns", ratio(f(s.steal_ns), f(s.steals_timed)))
      .field("steal_copy_ns", ratio(f(s.steal_copy_ns), f(s.steals_timed)))
      .field("stolen_bytes", ratio(f(s.stolen_bytes), f(s.steals)))
      .field("far_steal_latency_ns", ratio(f(s.far_steal_ns), f(s.far_steals)))
      .field("outstanding_join_ns", ratio(f(s.outstanding_ns), f(s.outstanding_resumed)))
      .field("busy_fraction", 1 - ratio(f(idle_ns(s)), f(s.life_ns)))
      .field("idle_no_work_fraction", ratio(f(s.idle_no_work_ns), f(s.life_ns)))
      .field("idle_join_fraction", ratio(f(s.idle_join_ns), f(s.life_ns)))
      .field("idle_wait_fraction", ratio(f(s.idle_wait_ns), f(s.life_ns)))
      .field("idle_transport_fraction", ratio(f(s.idle_transport_ns), f(s.life_ns)));
  if (span)
    json.field("t1_ns", s.work_ns)
        .field("t_inf_ns", s.span_ns)
        .field("parallelism", ratio(f(s.work_ns), f(s.span_ns)));
  json.end_object();
}

std::string place_of(const stats::stay& s) {
  if (s.line == 0) return base::code_place(s.at);
  return std::string(reinterpret_cast<const char*>(s.at)) + ":" + std::to_string(s.line);
}

/// "godwit: stayed for the heap of their host: 312 at tree (main.cpp:40), ...".
std::string line_of_stays(const stats& total) {
  std::string text;
  for (const stats::stay& s : total.stayed_at)
    if (s.count != 0) text += (text.empty() ? "" : ", ") + std::to_string(s.count) + " at " + place_of(s);
  return text.empty() ? text : "godwit: stayed for the heap of their host: " + text + "\n";
}

void put_stays(base::json_writer& json, const stats& total) {
  json.new_line().key("stayed_at").begin_array();
  for (const stats::stay& s : total.stayed_at)
    if (s.count != 0) json.begin_object().field("place", place_of(s)).field("count", s.count).end_object();
  json.end_array();
}

std::string others_had_cpus(double share) {
  if (share < trace::much) return {};
  char text[64];
  std::snprintf(text, sizeof text, "; others had the CPUs for %.0f %%", 100 * share);
  return text;
}

/// The last line: what the run gained, and where the rest went.
std::string verdict_of(const std::vector<stats>& all, const stats& total) {
  std::uint64_t wall = 0;
  for (const stats& s : all) wall = std::max(wall, s.life_ns);
  if (wall == 0) return {};
  const auto part = [&](std::uint64_t ns) { return f(ns) / f(total.life_ns); };
  double blocked_ns = 0;
  for (const stats& s : all)
    blocked_ns += trace::blocked_ns(f(s.life_ns), f(s.cpu_ns), f(s.aside_ns), f(idle_ns(s)),
                                    f(s.far_single_ns + s.global_fetch_ns + s.global_write_back_ns));
  const double blocked = blocked_ns / f(total.life_ns);
  const double lost = part(idle_ns(total)) + part(total.far_single_ns) + blocked;
  const double speed_up = std::max(1 - lost, 0.0) * f(total.life_ns) / f(wall);
  const double getting =
      std::min(trace::getting_ns(f(total.steals), f(total.far_steals), f(total.steals_timed),
                                 f(total.steal_ns), f(total.far_steal_ns)) /
                   f(total.life_ns),
               part(total.idle_no_work_ns));
  return "godwit: " + trace::speed_up_text(speed_up, all.size()) + ": " +
         trace::lost_text({.no_work = part(total.idle_no_work_ns) - getting,
                           .join = part(total.idle_join_ns),
                           .wait = part(total.idle_wait_ns),
                           .transport = part(total.idle_transport_ns),
                           .getting = getting,
                           .access = part(total.far_single_ns),
                           .blocked = blocked}) +
         others_had_cpus(part(total.aside_ns)) + "\n";
}

bool any_heat(const gas::heat_sums& h) noexcept { return h.near != 0 || h.far != 0; }
bool is_used(const gas::used_part& p) noexcept { return p.near != 0 || p.far != 0; }

/// Lines of their own: hosts count, not workers.
std::string lines_of(const gas::heat_sums& heat) {
  char line[200];
  std::snprintf(line, sizeof line,
                "godwit: accesses to movable memory: %llu by hosts that had it, %llu by others\n"
                "godwit: %-36s%*s%*s%*s%*s\n",
                static_cast<unsigned long long>(heat.near), static_cast<unsigned long long>(heat.far),
                "parts used most: address, number", column_width, "owner", column_width, "near", column_width,
                "far", column_width, "by host of");
  std::string text = line;
  for (const gas::used_part& p : heat.used) {
    if (!is_used(p)) break;
    char name[64];
    std::snprintf(name, sizeof name, "  global:0x%llx, %llu", static_cast<unsigned long long>(p.allocation),
                  static_cast<unsigned long long>(p.part));
    std::snprintf(line, sizeof line, "godwit: %-36s%*u%*u%*u", name, column_width, p.owner, column_width,
                  p.near, column_width, p.far);
    text += line + cell(p.other != ~0u ? p.other : none, 0) + "\n";
  }
  return text;
}

void put_heat(base::json_writer& json, const gas::heat_sums& heat) {
  json.new_line().key("heat").begin_object().field("near", heat.near).field("far", heat.far);
  json.key("used_most").begin_array();
  for (const gas::used_part& p : heat.used) {
    if (!is_used(p)) break;
    json.begin_object().field("allocation", p.allocation).field("part", p.part).field("owner", p.owner);
    json.field("near", p.near).field("far", p.far);
    if (p.other != ~0u) json.field("other", p.other);
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace

std::span<const counter_field> counter_fields() noexcept { return fields; }

worker_stats total_of(const std::vector<worker_stats>& all) noexcept {
  worker_stats total;
  for (const stats& s : all) {
    for (const counter_field& c : fields) {
      std::uint64_t& t = total.*c.field;
      t = c.maximum ? std::max(t, s.*c.field) : t + s.*c.field;
    }
    for (std::size_t i = 0; i < std::size(s.far_steal_times); ++i)
      total.far_steal_times[i] += s.far_steal_times[i];
    for (const stats::stay& stay : s.stayed_at) sched::count_stay(total, stay);
  }
  return total;
}

std::string stats_table(const run_facts& facts) {
  const stats total = total_of(facts.stats);
  std::string text = heading(facts);
  for (const row& r : rows) text += line_of(r, facts.stats, total);
  text += line_of_stays(total);
  if (any_heat(facts.heat)) text += lines_of(facts.heat);
  if (facts.opts.span && total.span_ns != 0) {
    char line[200];
    std::snprintf(line, sizeof line, "godwit: work T1 %.3f ms, span Tinf %.3f ms, parallelism T1/Tinf %.1f\n",
                  f(total.work_ns) / 1e6, f(total.span_ns) / 1e6, ratio(f(total.work_ns), f(total.span_ns)));
    text += line;
  }
  return text + verdict_of(facts.stats, total);
}

void name_program(run_facts& facts) {
  facts.arguments = base::lines_of("/proc/self/cmdline", '\0');
  if (facts.arguments.empty()) return;
  facts.program = facts.arguments.front();
  facts.arguments.erase(facts.arguments.begin());
}

void put_run(base::json_writer& json, const run_facts& facts) {
  json.field("godwit", GODWIT_VERSION).field("program", facts.program);
  json.key("arguments").begin_array();
  for (const auto& a : facts.arguments) json.value(a);
  json.end_array().field("workers", facts.stats.size());
  json.key("hosts").begin_array();
  for (const auto& h : facts.hosts)
    json.begin_object()
        .field("name", h.name)
        .field("first_worker", h.first_worker)
        .field("workers", h.workers)
        .end_object();
  json.end_array()
      .field("policy", name_of(facts.opts.policy))
      .field("cpus", facts.cpus)
      .field("wall_seconds", facts.wall_seconds)
      .field("status", facts.status)
      .field("message", facts.message);
  json.new_line().key("options").begin_object();
  for (const base::option_info& o : base::option_table())
    json.field(o.name, base::option_value(o, facts.opts));
  json.end_object();
}

std::string stats_json(const run_facts& facts) {
  base::json_writer json;
  json.begin_object();
  put_run(json, facts);
  const stats total = total_of(facts.stats);
  json.new_line().key("totals");
  put_counters(json, total);
  json.new_line().key("derived");
  put_derived(json, total, facts.opts.span);
  if (total.threads_stayed != 0) put_stays(json, total);
  if (any_heat(facts.heat)) put_heat(json, facts.heat);
  if (facts.sim) facts.sim->put(json.new_line().key("sim"));
  json.new_line().key("worker_stats").begin_array();
  for (const stats& s : facts.stats) put_counters(json.new_line(), s);
  json.new_line().end_array().new_line().end_object();
  return json.text();
}

}  // namespace godwit::runtime
