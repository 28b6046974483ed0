// The table of counters. See counters.hpp; the fields are those of worker_stats in
// include/godwit/runtime.hpp.
#include "counters.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace godwit::report {
namespace {

using nlohmann::json;

struct counter {
  const char* name;
  const char* label;
  const char* what;
};
constexpr std::array table{
    counter{"spawns", "threads created", ""},
    counter{"steals", "steals", "continuations taken from other workers"},
    counter{"steals_failed", "failed steals", "looks at a victim that gave nothing"},
    counter{"steals_timed", "steals that were timed", "of the successful ones inside a host"},
    counter{"steal_ns", "their time", ""},
    counter{"steal_copy_ns", "of that, copying stacks", ""},
    counter{"stolen_bytes", "stolen stack bytes", ""},
    counter{"suspends", "threads copied out", "outstanding joins and yields"},
    counter{"evacuated_bytes", "copied-out stack bytes", ""},
    counter{"resumes", "resumes", "suspended threads run again"},
    counter{"outstanding_joins", "outstanding joins", "joins that found their thread unfinished, and left"},
    counter{"outstanding_resumed", "of these, resumed", ""},
    counter{"outstanding_ns", "outstanding join time",
            "from when both sides were there to when they went on, summed"},
    counter{"exposures", "exposures", "times that continuations were made public"},
    counter{"signals", "exposures by signal", ""},
    counter{"idle_no_work_ns", "idle: no work", "the last thread had ended"},
    counter{"idle_join_ns", "idle: join", "the last thread waits at an outstanding join"},
    counter{"idle_wait_ns", "idle: wait",
            "the last thread waits for a lock, another thread, time or a descriptor"},
    counter{"idle_transport_ns", "idle: transport", "waiting for an answer from another host"},
    counter{"sleeps", "sleeps", "times that a worker went to sleep"},
    counter{"life_ns", "life", "from a worker's start to its end"},
    counter{"cpu_ns", "on a CPU", "of that"},
    counter{"aside_ns", "others had its CPU", "of the rest, it could have run"},
    counter{"work_ns", "work", "time in threads (GODWIT_SPAN); the sum is T1"},
    counter{"span_ns", "span", "longest chain that ended there (GODWIT_SPAN); the maximum is T∞"},
    counter{"far_steals", "threads from other hosts", "of the steals and resumes"},
    counter{"far_failed", "failed, other hosts", ""},
    counter{"far_looks", "looks at other hosts", ""},
    counter{"far_steal_ns", "time of steals, other hosts", "request to answer"},
    counter{"far_carry_ns", "of that, companions", ""},
    counter{"far_serve_ns", "of that, at the victim's host", ""},
    counter{"far_check_ns", "of that, empty check", ""},
    counter{"far_lock_ns", "of that, lock", ""},
    counter{"far_entry_ns", "of that, bounds and entry", ""},
    counter{"far_stack_ns", "of that, stack", ""},
    counter{"far_unlock_ns", "of that, unlock", "handed over, not waited for"},
    counter{"messages", "messages", "requests of other hosts carried out by a worker"},
    counter{"message_ns", "time of messages", ""},
    counter{"stack_high_bytes", "stack touched", "the most of a worker, whole pages"},
    counter{"heap_high_bytes", "heap in use", "the most of a worker"},
    counter{"global_hits", "global memory: cache hits", "units of 16 KiB of other hosts that were here"},
    counter{"global_fetches", "fetches", "units that were not"},
    counter{"global_fetched_bytes", "fetched bytes", ""},
    counter{"global_fetch_ns", "time of fetches", "waited for"},
    counter{"global_write_backs", "write-backs", "units of which changed bytes went to their homes"},
    counter{"global_written_bytes", "written-back bytes", ""},
    counter{"global_write_back_ns", "time of write-backs", ""},
    counter{"global_evictions", "evictions", "units thrown out of the cache to make room"},
    counter{"far_gets", "single gets, other hosts", "past the cache: a round trip each"},
    counter{"far_puts", "single puts, other hosts", ""},
    counter{"far_atomics", "atomics, other hosts", ""},
    counter{"far_single_ns", "waiting for single values",
            "gets, puts and atomics, one by one: estimated from every 8th"},
    counter{"moves", "moves of memory", "parts that came to this worker"},
    counter{"move_calls", "calls of move", "carried out here"},
    counter{"moved_bytes", "moved bytes", "of parts that came from other hosts"},
    counter{"moves_busy", "parts that stayed: busy", "in use for too long, or moved by others"},
    counter{"moves_no_room", "parts that stayed: no room", "the host's limit is reached"},
    counter{"move_ns", "time of moves from other hosts", ""},
    counter{"move_wait_ns", "... waiting for users of parts", "or for others who moved them"},
    counter{"part_waits", "waits for parts on their way",
            "accesses that found a part neither here nor there"},
    counter{"part_wait_ns", "time of waits for parts", ""},
    counter{"translations", "movable memory: translations", "parts of other hosts that were asked for"},
    counter{"translation_hits", "hits", "of whom it was known, rightly"},
    counter{"translation_stale", "stale", "who had been given away since"},
    counter{"translation_misses", "misses", "of whom nothing was known: their homes were asked"},
    counter{"translation_evictions", "evictions", "forgotten for others, in a bounded table"},
    counter{"forwards", "requests sent on", "by who had had the part, or was its home"},
    counter{"threads_stayed", "threads that stayed",
            "another host would have taken them, but they name this one's heap"},
    counter{"trace_events", "events written", ""},
    counter{"trace_dropped", "events dropped", "overwritten by later ones"},
};

bool ends_with(std::string_view text, std::string_view end) { return text.ends_with(end); }
bool is_maximum(std::string_view name) {
  return name == "span_ns" || name == "life_ns" || ends_with(name, "_high_bytes");
}

json row_of(const std::string& name, const json& workers) {
  std::vector<double> values;
  for (const json& w : workers) values.push_back(w.is_object() ? number_of(w, name.c_str()) : 0);
  double total = 0;
  for (const double v : values) total = is_maximum(name) ? std::max(total, v) : total + v;
  if (std::all_of(values.begin(), values.end(), [](double v) { return v == 0; })) return nullptr;
  const auto known =
      std::find_if(table.begin(), table.end(), [&](const counter& c) { return c.name == name; });
  return {{"name", name},
          {"label", known == table.end() ? name : known->label},
          {"what", known == table.end() ? "" : known->what},
          {"unit", ends_with(name, "_ns")      ? "ns"
                   : ends_with(name, "_bytes") ? "bytes"
                                               : ""},
          {"maximum", is_maximum(name)},
          {"total", total},
          {"values", values}};
}

}  // namespace

json counter_rows(const json& stats) {
  json rows = json::array();
  const auto workers = stats.find("workers");
  if (workers == stats.end() || !workers->is_array()) return rows;
  std::vector<std::string> names;
  for (const counter& c : table) names.emplace_back(c.name);
  for (const json& w : *workers) {
    if (!w.is_object()) continue;
    for (const auto& [name, value] : w.items())
      if (value.is_number() && name != "worker" && name != "host" &&
          std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  }
  for (const std::string& name : names)
    if (json row = row_of(name, *workers); !row.is_null()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace godwit::report
