// All events of a run in the order of time: which thread waits for which, what was ready, which chain ended
// last.
//
// Every worker's events come in order; they are merged by time. Where two workers' clocks disagree by a
// little, an effect may be seen before its cause: then what is known counts, nothing is guessed. See
// analysis.hpp.
#include "thread_table.hpp"
#include "worker_line.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>

namespace godwit::report {
namespace {

using trace::event;
using trace::kind;

std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

/// A steal, seen from the victim.
struct taking {
  std::uint64_t from;  ///< when the thief began
  std::uint64_t taken, left;
  std::uint64_t depth = 0;  ///< of the victim's chain at that moment
  std::uint32_t left_thread = nothing;
  std::uint32_t node = nothing;
  std::uint32_t victim;
  bool applied = false;
};

bool takes_time(kind k) {
  return k == kind::start || k == kind::steal || k == kind::resume || k == kind::task || k == kind::idle ||
         k == kind::sleep;
}

void add_global(worker_totals& totals, const event& e) {
  switch (static_cast<trace::global_access>(e.detail)) {
    case trace::global_access::fetch:
      ++totals.fetches;
      totals.fetch_ns += e.duration_ns;
      totals.fetched_bytes += e.bytes;
      break;
    case trace::global_access::write_back:
      ++totals.write_backs;
      totals.write_back_ns += e.duration_ns;
      totals.written_bytes += e.bytes;
      break;
    case trace::global_access::evict:  // its time is its write-back's
      ++totals.evictions;
      break;
  }
}

class walker {
 public:
  explicit walker(const recording& r) : r_(r), moves_(r.workers) {
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
      lines_.emplace_back(line_sums{a_.totals[w], a_.timeline[w], a_.places, a_.whole_from},
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
    for (worker_totals& t : a_.totals) {
      std::uint64_t& busy = t.ns[static_cast<std::size_t>(state::busy)];
      t.ns[static_cast<std::size_t>(state::access)] = std::min(t.access_ns, busy);
      busy -= std::min(t.access_ns, busy);
    }
    return std::move(a_);
  }

 private:
  void look_ahead();
  void merge();
  void handle(std::uint32_t w, const event& e);
  void on_get(std::uint32_t w, const event& e);
  void on_steal(std::uint32_t w, const event& e, worker_line::running& next);
  void on_resume(std::uint32_t w, const event& e, worker_line::running& next);
  void on_end(std::uint32_t w, const event& e);
  void on_suspend(std::uint32_t w, const event& e);
  void on_complete(std::uint32_t w, std::uint64_t record, std::uint64_t at);
  void on_access(std::uint32_t w, const event& e);
  void on_wake(std::uint32_t w, std::uint64_t thread, std::uint64_t at);
  void keep(const thread_table::wait& waited, std::uint64_t until);
  void apply_takings(std::uint32_t victim, std::uint64_t until);
  void apply(taking& t);
  bool cancelled(std::uint32_t w, const event& e, std::uint32_t& place);
  void on_stay(std::uint32_t w, const event& e);
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
  std::uint64_t time(const event& e) const { return minus(e.time_ns, origin_); }

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
  std::vector<one_wait> waits_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> accesses_;  // by place and owner
  std::vector<node> nodes_;
  move_events moves_;
  std::uint32_t last_node_ = nothing;
  std::uint64_t last_end_ = 0;
  std::uint64_t now_ = 0;
  int busy_now_ = 0, ready_now_ = 0;
};

// The span of the run, where each worker's record starts, and who will be robbed when.
void walker::look_ahead() {
  std::uint64_t first = ~std::uint64_t{0}, last = 0;
  std::vector<std::uint64_t> from(r_.workers, 0);
  next_taking_.assign(r_.workers, 0);
  losses_.resize(r_.workers);
  next_loss_.assign(r_.workers, 0);
  for (std::uint32_t w = 0; w < r_.workers; ++w) {
    next_taking_[w] = takings_.size();
    bool is_first = true;
    for (event_cursor c(r_.events[w]); !c.done(); c.next()) {
      const event e = *c;
      const auto what = static_cast<kind>(e.what);
      if (what == kind::place || what == kind::waits || what == kind::callers || what == kind::clock)
        continue;
      const std::uint64_t begin = takes_time(what) ? minus(e.time_ns, e.duration_ns) : e.time_ns;
      if (is_first) from[w] = begin;
      is_first = false;
      first = std::min(first, begin);
      last = std::max(last, e.time_ns);
      if (what != kind::steal) continue;
      takings_.push_back({.from = begin, .taken = e.a, .left = e.b, .victim = e.other});
      if (e.other < r_.workers) losses_[e.other].push_back(static_cast<std::uint32_t>(takings_.size() - 1));
    }
  }
  origin_ = std::min(first, last);
  a_.end = last - origin_;
  for (std::uint32_t w = 0; w < r_.workers; ++w)
    if (r_.dropped[w] > 0) {
      a_.totals[w].recorded_from = r_.events[w].count > 0 ? minus(from[w], origin_) : a_.end;
      if (r_.events[w].count > 0) a_.whole_from = std::max(a_.whole_from, a_.totals[w].recorded_from);
    }
  for (taking& t : takings_) t.from = minus(t.from, origin_);
  for (auto& list : losses_)
    std::stable_sort(list.begin(), list.end(),
                     [&](std::uint32_t x, std::uint32_t y) { return takings_[x].from < takings_[y].from; });
}

void walker::merge() {
  using due = std::pair<std::uint64_t, std::uint32_t>;
  std::priority_queue<due, std::vector<due>, std::greater<>> queue;
  for (std::uint32_t w = 0; w < r_.workers; ++w)
    if (!cursors_[w].done()) queue.push({time(*cursors_[w]), w});
  while (!queue.empty()) {
    const std::uint32_t w = queue.top().second;
    queue.pop();
    const due next = queue.empty() ? due{~std::uint64_t{0}, 0} : queue.top();
    event_cursor& cursor = cursors_[w];
    while (true) {
      const event e = *cursor;
      cursor.next();
      handle(w, e);
      if (cursor.done()) break;
      if (const std::uint64_t t = time(*cursor); t > next.first) {
        queue.push({t, w});
        break;
      }
    }
  }
}

void walker::handle(std::uint32_t w, const event& e) {
  const auto what = static_cast<kind>(e.what);
  const std::uint64_t at = time(e);
  worker_totals& totals = a_.totals[w];
  switch (what) {
    case kind::start:
    case kind::steal:
    case kind::resume:
    case kind::task:
      on_get(w, e);
      break;
    case kind::end:
      on_end(w, e);
      break;
    case kind::suspend:
      on_suspend(w, e);
      break;
    case kind::stay:
      on_stay(w, e);
      break;
    case kind::idle:
      if (skip_idle_[w] > 0) {
        --skip_idle_[w];
        break;
      }
      lines_[w].idle(minus(at, e.duration_ns), at, static_cast<trace::idle_cause>(e.detail));
      break;
    case kind::sleep:
      if (counts(at)) {
        totals.sleep_ns += std::min<std::uint64_t>(e.duration_ns, at - a_.whole_from);
        ++totals.sleeps;
      }
      break;
    case kind::complete:
      on_complete(w, e.a, at);
      break;
    case kind::wake:
      on_wake(w, e.a, at);
      break;
    case kind::access:
      if (counts(at)) on_access(w, e);
      break;
    case kind::message:
      if (counts(at)) totals.message_ns += e.duration_ns;
      break;
    case kind::far_call:
      if (counts(at)) totals.far_call_ns += e.duration_ns;
      break;
    case kind::global:
      if (counts(at)) add_global(totals, e);
      break;
    case kind::parts:
    case kind::part:
    case kind::moves:
    case kind::part_wait:
    case kind::heat:
      moves_.event(w, e, at);
      break;
    default:
      break;  // waits, place, callers, cancel: read with their suspend; expose, clock: say nothing here
  }
}

// Idle events of the gap that a get ends may have been written behind it.
void walker::idles_behind(std::uint32_t w, std::uint64_t before) {
  std::uint32_t found = 0;
  for (event_cursor c = cursors_[w]; !c.done(); c.next()) {
    const event e = *c;
    const auto what = static_cast<kind>(e.what);
    if (what == kind::sleep) continue;
    const std::uint64_t from = minus(time(e), e.duration_ns);
    if (what != kind::idle || from >= before) break;
    lines_[w].idle(from, time(e), static_cast<trace::idle_cause>(e.detail));
    ++found;
  }
  skip_idle_[w] = found;
}

void walker::on_get(std::uint32_t w, const event& e) {
  const auto what = static_cast<kind>(e.what);
  const std::uint64_t at = time(e);
  worker_line& line = lines_[w];
  apply_takings(w, at);
  const bool on_top = what == kind::task && (e.detail & 1) != 0;
  worker_line::running next;
  if (what == kind::resume && line.busy() && line.now().record == e.a && threads_.waiting(e.a) != nullptr) {
    on_resume(w, e, next);  // it was buried in place (run to completion)
    return;
  }
  next.record = e.a;
  next.thread = threads_.number_of(e.a);
  next.other = e.other;
  const bool was_busy = line.busy();
  if (was_busy && !on_top) {
    if (!line.knows_nothing()) ++a_.odd;
    ended(line, at);
    levels(at, -1, 0);
  }
  if (!line.busy()) idles_behind(w, at);
  const bool foreign = e.other < r_.workers && e.other != w;
  if (counts(at) && foreign && what == kind::resume) ++cell(a_.from_whom.resumes, w, e.other);
  if (what == kind::steal) {
    on_steal(w, e, next);
  } else if (what == kind::resume) {
    on_resume(w, e, next);
  } else if (what == kind::task) {
    next.begun = gain::task;
    const std::uint32_t from = e.other < r_.workers ? e.other : w;
    next.depth = lines_[from].depth_at(minus(at, e.duration_ns));
    next.node = new_node(w, at, gain::task, lines_[from].last_node(), minus(at, e.duration_ns));
    if (counts(at) && foreign) {
      ++cell(a_.from_whom.steals, w, e.other);
      ++a_.totals[w].steals;
      a_.steal_ns.add(e.duration_ns);
    }
  } else {
    next.begun = gain::start;
    next.node = new_node(w, at, gain::start, nothing, at);
  }
  line.get(next, at, e.duration_ns, on_top);
  if (!(was_busy && on_top)) levels(at, +1, 0);
}

void walker::on_steal(std::uint32_t w, const event& e, worker_line::running& next) {
  const std::uint64_t at = time(e);
  taking& t = takings_[next_taking_[w]++];
  if (!t.applied && t.victim < r_.workers) apply_takings(t.victim, at);
  if (!t.applied && t.victim < r_.workers) apply(t);
  next.begun = gain::steal;
  next.depth = t.depth;
  next.node = new_node(w, at, gain::steal, t.node, t.from);
  if (!counts(at)) return;
  ++a_.totals[w].steals;
  const bool far = t.victim < r_.workers && r_.host_of[t.victim] != r_.host_of[w];
  (far ? a_.far_steal_ns : a_.steal_ns).add(e.duration_ns);
  a_.stolen_bytes.add(e.bytes);
  if (t.victim >= r_.workers) return;
  ++cell(a_.from_whom.steals, w, t.victim);
  cell(a_.from_whom.bytes, w, t.victim) += e.bytes;
}

void walker::on_resume(std::uint32_t w, const event& e, worker_line::running& next) {
  const std::uint64_t at = time(e);
  next.begun = gain::resume;
  thread_table::wait* waited = threads_.waiting(e.a);
  if (waited == nullptr) {
    if (a_.dropped == 0) ++a_.odd;
    next.node = new_node(w, at, gain::resume, nothing, at);
    return;
  }
  // Who completed what it waited for was not written down: ready at the latest when it was taken.
  const bool unseen = !waited->ready;
  if (unseen) {
    waited->ready = true;
    waited->ready_at = std::max(waited->since, minus(at, e.duration_ns));
    waited->ready_node = nothing;
    threads_.forget_waiter(e.b, e.a);
    if (waited->kind != wait_for::nothing) levels(at, 0, +1);
  }
  next.depth = std::max(waited->depth, waited->ready_depth);
  const bool by_other = waited->ready_at > waited->since && waited->ready_node != nothing;
  next.node = new_node(w, at, gain::resume, by_other ? waited->ready_node : waited->node,
                       by_other ? waited->ready_at : waited->since);
  nodes_.back().outside = waited->kind == wait_for::outside;
  if (waited->kind != wait_for::nothing) levels(at, 0, -1);
  if (counts(at) && waited->kind == wait_for::join) {
    ++a_.totals[w].resumes;
    a_.ready_ns.add(minus(at, waited->ready_at));
    a_.wait_ns.add(minus(at, waited->since));
  }
  if (counts(at) && waited->place != nothing) {
    a_.places[waited->place].wait_ns += minus(at, waited->since);
    a_.places[waited->place].ready_ns += minus(at, waited->ready_at);
  }
  keep(*waited, waited->ready_at);
  waited->valid = false;
}

void walker::on_complete(std::uint32_t w, std::uint64_t record, std::uint64_t at) {
  const std::uint64_t depth = lines_[w].depth_at(at);
  int joins = 0;
  threads_.complete(record, at, depth, lines_[w].last_node(),
                    [&](thread_table::wait& waiter) { joins += waiter.kind != wait_for::nothing ? 1 : 0; });
  if (joins > 0) levels(at, 0, joins);
}

// What runs here let the thread go on; what is outside of the run is no part of a chain.
void walker::on_wake(std::uint32_t w, std::uint64_t thread, std::uint64_t at) {
  thread_table::wait* waiter = threads_.wake(thread, at);
  if (waiter == nullptr) return;
  levels(at, 0, +1);
  if (waiter->kind == wait_for::outside) return;
  waiter->ready_depth = lines_[w].depth_at(at);
  waiter->ready_node = lines_[w].last_node();
  if (lines_[w].busy()) waiter->woken_at = threads_.last_place(lines_[w].now().record);
}

/// For waits.cpp.
void walker::keep(const thread_table::wait& waited, std::uint64_t until) {
  if (waited.kind == wait_for::nothing || waited.kind == wait_for::join || waited.place == nothing) return;
  waits_.push_back({waited.since, until, waited.place, waited.woken_at});
}

void walker::on_end(std::uint32_t w, const event& e) {
  const std::uint64_t at = time(e);
  worker_line& line = lines_[w];
  apply_takings(w, at);
  if (!line.busy()) {
    if (line.knows_nothing())
      line.first_known(at, false);
    else
      ++a_.odd;
  } else {
    ended(line, at);
  }
  on_complete(w, e.a, at);
  threads_.over(e.a);
  if (!line.busy()) return;
  line.lose(at, (e.detail & 1) != 0 ? loss::end_waiter : loss::end, nothing);
  if (!line.busy()) levels(at, -1, 0);
}

/// Reads from @p c what is behind a suspension or an access: where, and for what. False: nothing is there.
bool read_place(event_cursor& c, place_events& found) {
  bool any = false;
  for (; !c.done(); c.next(), any = true) {
    const event p = *c;
    const auto what = static_cast<kind>(p.what);
    if (what == kind::waits)
      found.what = p.a;
    else if (what == kind::place)
      found.file = p.a, found.function = p.b, found.line = p.other;
    else if (what == kind::callers)
      found.callers.insert(found.callers.end(), {p.a, p.b});
    else
      break;
  }
  return any;
}

void walker::on_stay(std::uint32_t w, const event& e) {
  event_cursor c = cursors_[w];
  place_events found;
  if (!read_place(c, found) || !counts(time(e))) return;
  waiting_place& at = a_.places[place_table_.index_of(found, r_.strings, a_.places)];
  ++at.stays;
  at.stale_stays += e.detail == trace::stays_by_stale_words;
}

// And whether the suspension was undone.
bool walker::cancelled(std::uint32_t w, const event& e, std::uint32_t& place) {
  event_cursor c = cursors_[w];
  place_events found;
  if (read_place(c, found)) place = place_table_.index_of(found, r_.strings, a_.places);
  return !c.done() && static_cast<kind>((*c).what) == kind::cancel && (*c).a == e.a;
}

void walker::on_access(std::uint32_t w, const event& e) {
  static constexpr const char* names[] = {"get", "put", "atomic"};
  event_cursor c = cursors_[w];
  place_events found;
  found.access = names[std::min<std::size_t>(e.detail, std::size(names) - 1)];
  read_place(c, found);
  const std::uint32_t number = place_table_.index_of(found, r_.strings, a_.places);
  waiting_place& p = a_.places[number];
  const std::uint64_t ns = std::uint64_t{e.duration_ns} * e.bytes;
  p.count += e.bytes;
  p.wait_ns += ns;
  a_.totals[w].access_ns += ns;
  std::uint64_t& now = accesses_[{number, e.other}];
  now += e.bytes;
  if (p.owner == nothing || now > accesses_[{number, p.owner}]) p.owner = e.other;
}

void walker::on_suspend(std::uint32_t w, const event& e) {
  const std::uint64_t at = time(e);
  worker_line& line = lines_[w];
  apply_takings(w, at);
  std::uint32_t place = nothing;
  if (cancelled(w, e, place)) return;
  const bool goes_on = e.detail != 0;  // its parent in place (1), or what is put on top of it (2)
  if (!line.busy()) {
    if (line.knows_nothing()) {
      line.first_known(at, goes_on);
      if (goes_on) levels(at, +1, 0);
    } else {
      ++a_.odd;
    }
  }
  const wait_for kind = place != nothing ? a_.places[place].kind
                        : e.b != 0       ? wait_for::join
                                         : wait_for::nothing;
  thread_table::wait waiter{.valid = true,
                            .kind = kind,
                            .since = at,
                            .depth = line.depth_at(at),
                            .node = line.last_node(),
                            .place = place};
  if (threads_.suspend(e.a, e.b, waiter) && kind != wait_for::nothing) levels(at, 0, +1);
  if (kind == wait_for::join && counts(at)) ++a_.totals[w].suspends;
  if (place != nothing && counts(at)) ++a_.places[place].count;
  if (goes_on || !line.busy()) return;
  ended(line, at);
  line.lose(at,
            kind == wait_for::join      ? loss::join
            : kind == wait_for::nothing ? loss::yield
                                        : loss::wait,
            place, kind);
  levels(at, -1, 0);
}

// What thieves took from a worker before its next own event: its bottom thread is another one since. A thief
// far away may begin before and end after one nearby, so the threads' names say the order: each takes what
// the last one left.
void walker::apply_takings(std::uint32_t victim, std::uint64_t until) {
  constexpr std::size_t overlapping = 64;
  auto& list = losses_[victim];
  std::size_t& first = next_loss_[victim];
  const worker_line& line = lines_[victim];
  for (bool found = true; found && line.busy();) {
    found = false;
    while (first < list.size() && takings_[list[first]].applied) ++first;
    for (std::size_t i = first; i < std::min(list.size(), first + overlapping); ++i) {
      taking& t = takings_[list[i]];
      if (t.from > until) break;
      if (t.applied || (line.now().record != 0 && line.now().record != t.taken)) continue;
      apply(t);
      found = true;
      break;
    }
  }
}

void walker::apply(taking& t) {
  worker_line& line = lines_[t.victim];
  const std::uint64_t at = line.busy() ? std::max(t.from, line.now().begin) : t.from;
  t.applied = true;
  t.depth = line.depth_at(at);
  t.node = line.last_node();
  t.from = at;
  if (!line.busy()) return;  // its clock is ahead: it has ended already what was left
  t.left_thread = threads_.number_of(t.left);
  line.stolen(at, t.left, t.left_thread);
}

std::uint32_t walker::new_node(std::uint32_t w, std::uint64_t at, gain how, std::uint32_t parent,
                               std::uint64_t parent_at) {
  nodes_.push_back({at, std::min(parent_at, at), w, parent, how});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

/// A run of a worker is over.
void walker::ended(worker_line& line, std::uint64_t at) {
  const auto& now = line.now();
  a_.longest_chain_ns = std::max(a_.longest_chain_ns, now.depth_at(at));
  if (at >= last_end_ && now.node != nothing) {
    last_end_ = at;
    last_node_ = now.node;
  }
  if (!counts(now.run_begin) || now.thread == nothing) return;
  a_.run_ns.add(minus(at, now.run_begin));
  ++a_.totals[static_cast<std::size_t>(&line - lines_.data())].runs;
}

void walker::levels(std::uint64_t at, int busy, int ready) {
  at = std::max(at, now_);
  if (at > now_ && at > a_.whole_from) {
    const std::uint64_t time = at - std::max(now_, a_.whole_from);
    const int level = std::clamp(busy_now_, 0, static_cast<int>(r_.workers));
    a_.ns_by_busy[static_cast<std::size_t>(level)] += time;
    const int pairs = std::min(ready_now_, static_cast<int>(r_.workers) - level);
    if (pairs > 0) a_.ready_while_idle_ns += time * static_cast<std::uint64_t>(pairs);
  }
  now_ = at;
  busy_now_ += busy;
  ready_now_ += ready;
  if (busy != 0) a_.busy.add(at, busy);
  if (ready != 0) a_.ready.add(at, ready);
}

// From what ended last back to the start: at each point to whatever made it possible.
void walker::walk_back() {
  constexpr std::size_t most_pieces = 200'000;
  last_path& path = a_.path;
  std::uint64_t at = last_end_;
  for (std::uint32_t n = last_node_; n != nothing;) {
    const node& here = nodes_[n];
    path.running_ns += minus(at, here.begin);
    if (path.pieces.size() < most_pieces) path.pieces.push_back({here.begin, at, here.worker, gain::none});
    if (here.how == gain::start) path.complete = true;
    if (here.parent == nothing || here.parent >= n) break;
    const std::uint64_t took = here.begin - here.parent_at;
    (here.outside ? path.outside_ns : here.how == gain::resume ? path.ready_ns : path.stealing_ns) += took;
    ++(here.how == gain::resume ? path.joins : path.steals);
    if (path.pieces.size() < most_pieces)
      path.pieces.push_back({here.parent_at, here.begin, here.worker, here.how});
    at = std::max(here.parent_at, nodes_[here.parent].begin);
    n = here.parent;
  }
}

}  // namespace

analysis analyze(const recording& r) { return walker(r).run(); }

}  // namespace godwit::report
