// Threads that workers get and lose, and what lets waiting ones go on. See walker.hpp.
#include "walker.hpp"

namespace godwit::report {

using trace::event;
using trace::kind;

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
  if (what == kind::task || what == kind::start) next.name = name_behind(cursors_[w]);
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
  next.name = t.name;
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
  next.name = name_behind(cursors_[w]);
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
  if (next.name == nothing) next.name = waited->name;
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
  waiter->woken_by = name_behind(cursors_[w]);
}

/// For waits.cpp.
void walker::keep(const thread_table::wait& waited, std::uint64_t until) {
  if (waited.kind == wait_for::nothing || waited.kind == wait_for::join || waited.place == nothing) return;
  waits_.push_back({waited.since, until, waited.place, waited.woken_by});
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
  if (t.name == nothing) t.name = line.now().name;  // in the library's own code
  line.stolen(at, t.left, t.left_thread, t.name);
}

}  // namespace godwit::report
