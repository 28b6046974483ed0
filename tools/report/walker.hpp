// The walk over all events of a run in the order of time: which thread waits for which, what was ready, which
// chain ended last.
//
// Every worker's events come in order; they are merged by time. Where two workers' clocks disagree by a
// little, an effect may be seen before its cause: then what is known counts, nothing is guessed. analyze.cpp
// walks, walk_threads.cpp and walk_places.cpp say what events mean. Used by these only. See analysis.hpp.
#pragma once

#include "place_table.hpp"
#include "thread_table.hpp"
#include "worker_line.hpp"

#include "trace/open_names.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace godwit::report {

inline std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

/// A steal, seen from the victim.
struct taking {
  std::uint64_t from;  ///< when the thief began
  std::uint64_t taken, left;
  std::uint64_t depth = 0;  ///< of the victim's chain at that moment
  std::uint32_t left_thread = nothing;
  std::uint32_t node = nothing;
  std::uint32_t name = nothing;  ///< where what was taken had spawned what was left
  std::uint32_t victim;
  bool applied = false;
};

class walker {
 public:
  explicit walker(const recording& r) : r_(r), open_(r.workers), moves_(r.workers), spawns_(r.workers) {
    a_.workers = r.workers;
    a_.events = r.event_count();
    a_.dropped = r.dropped_count();
    a_.timeline.resize(r.workers);
    a_.totals.resize(r.workers);
    a_.ns_by_busy.assign(r.workers + 1, 0);
    a_.from_whom.group = (r.workers + 127) / 128;
    a_.from_whom.size = (r.workers + a_.from_whom.group - 1) / a_.from_whom.group;
    const std::size_t cells = static_cast<std::size_t>(a_.from_whom.size) * a_.from_whom.size;
    for (auto* cell : {&a_.from_whom.steals, &a_.from_whom.bytes, &a_.from_whom.resumes})
      cell->assign(cells, 0);
  }
  analysis run() {
    look_ahead();
    for (std::uint32_t w = 0; w < r_.workers; ++w) {
      lines_.emplace_back(
          line_sums{a_.totals[w], a_.timeline[w], a_.places, a_.whole_from, w >= r_.workers - r_.spares},
          r_.dropped[w] > 0);
      cursors_.emplace_back(r_.events[w]);
    }
    skip_idle_.assign(r_.workers, 0);
    merge();
    for (worker_line& line : lines_) {
      if (line.busy()) ended(line, a_.end);
      line.finish(a_.end);
    }
    levels(a_.end, 0, 0);
    walk_back();
    a_.threads = threads_.count();
    a_.moves = moves_.finish(a_.end);
    threads_.each_waiting(
        [&](const thread_table::wait& waited) { keep(waited, waited.ready ? waited.ready_at : a_.end); });
    explain_idleness(a_, std::move(waits_));
    a_.while_idle = what_ran_while_idle(a_);
    for (worker_totals& t : a_.totals) {
      std::uint64_t& busy = t.ns[static_cast<std::size_t>(state::busy)];
      t.ns[static_cast<std::size_t>(state::access)] = std::min(t.access_ns, busy);
      busy -= std::min(t.access_ns, busy);
    }
    a_.system = divide_system_times(a_, system_);
    a_.spawns = spawns_.estimate(a_);
    return std::move(a_);
  }

 private:
  void look_ahead();
  void merge();
  void handle(std::uint32_t w, const trace::event& e);
  void on_get(std::uint32_t w, const trace::event& e);
  void on_steal(std::uint32_t w, const trace::event& e, worker_line::running& next);
  void on_resume(std::uint32_t w, const trace::event& e, worker_line::running& next);
  void on_end(std::uint32_t w, const trace::event& e);
  void on_suspend(std::uint32_t w, const trace::event& e);
  void on_complete(std::uint32_t w, std::uint64_t record, std::uint64_t at);
  void on_access(std::uint32_t w, const trace::event& e);
  void on_wake(std::uint32_t w, std::uint64_t thread, std::uint64_t at);
  std::uint32_t name_behind(event_cursor c);
  std::uint32_t name_of_code(const std::vector<std::uint64_t>& callers);
  std::uint32_t name_of_place(std::uint32_t place);
  void rename(std::uint32_t w, std::uint64_t at);
  void keep(const thread_table::wait& waited, std::uint64_t until);
  void apply_takings(std::uint32_t victim, std::uint64_t until);
  void apply(taking& t);
  bool cancelled(std::uint32_t w, const trace::event& e, std::uint32_t& place);
  void on_stay(std::uint32_t w, const trace::event& e);
  void idles_behind(std::uint32_t w, std::uint64_t before);
  std::uint32_t new_node(std::uint32_t w, std::uint64_t at, gain how, std::uint32_t parent,
                         std::uint64_t parent_at);
  void ended(worker_line& line, std::uint64_t at);
  void levels(std::uint64_t at, int busy, int ready);
  void walk_back();
  bool counts(std::uint64_t at) const { return at >= a_.whole_from; }
  std::uint64_t& cell(std::vector<std::uint64_t>& of, std::uint32_t taker, std::uint32_t from) {
    const std::uint32_t group = a_.from_whom.group;
    return of[static_cast<std::size_t>(taker / group) * a_.from_whom.size + from / group];
  }
  /// An event's time, since the first of all.
  std::uint64_t time(const trace::event& e) const { return minus(e.time_ns, origin_); }

  struct node {
    std::uint64_t begin, parent_at;
    std::uint32_t worker, parent;
    gain how;
    bool outside = false;  ///< a resume behind a wait for something outside of the run
  };

  const recording& r_;
  analysis a_;
  std::uint64_t origin_ = 0;
  std::vector<worker_line> lines_;
  std::vector<event_cursor> cursors_;
  std::vector<std::uint32_t> skip_idle_;            // idle events that a get before them has used already
  std::vector<taking> takings_;                     // by thief, in order
  std::vector<std::size_t> next_taking_;            // per thief
  std::vector<std::vector<std::uint32_t>> losses_;  // per victim, by when the thief began
  std::vector<std::size_t> next_loss_;
  thread_table threads_;
  place_table place_table_;
  name_table name_table_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> code_names_;
  trace::open_names open_;
  std::vector<one_wait> waits_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> waited_;                   // place, thread
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> accesses_;  // by place and owner
  std::vector<node> nodes_;
  move_events moves_;
  std::vector<system_piece> system_;
  spawn_samples spawns_;
  std::uint32_t last_node_ = nothing;
  std::uint64_t last_end_ = 0;
  std::uint64_t now_ = 0;
  int busy_now_ = 0, ready_now_ = 0;
};

}  // namespace godwit::report
