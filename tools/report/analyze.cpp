// The walk itself. See walker.hpp.
#include "walker.hpp"

#include "blame.hpp"

#include <queue>

namespace godwit::report {

using trace::event;
using trace::kind;

namespace {

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

}  // namespace

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
      event_cursor behind = c;
      behind.next();
      takings_.push_back(
          {.from = begin, .taken = e.a, .left = e.b, .name = name_behind(behind), .victim = e.other});
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
    case kind::expose:
      lines_[w].offers(at, name_of_code({e.a}));
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
    case kind::system:
      system_.push_back({w, minus(at, e.a), at, e.b, static_cast<trace::system_kind>(e.detail), e.other});
      break;
    case kind::spawns:
      spawns_.add(w, at, e.b, e.other, e.a != 0 ? name_of_code({e.a}) : nothing);
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
      break;  // waits, place, callers, cancel: read with what is before them; clock: says nothing here
  }
  open_.event(w, e);
  rename(w, at);
  if (what == kind::steal && e.other < r_.workers) rename(e.other, at);
}

// Idle events of the gap that a get ends may have been written behind it.
void walker::idles_behind(std::uint32_t w, std::uint64_t before) {
  std::uint32_t found = 0;
  for (event_cursor c = cursors_[w]; !c.done(); c.next()) {
    const event e = *c;
    const auto what = static_cast<kind>(e.what);
    if (what == kind::sleep || what == kind::callers) continue;
    const std::uint64_t from = minus(time(e), e.duration_ns);
    if (what != kind::idle || from >= before) break;
    lines_[w].idle(from, time(e), static_cast<trace::idle_cause>(e.detail));
    ++found;
  }
  skip_idle_[w] = found;
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
  if (now.begun == gain::left) a_.left_ns.add(minus(at, now.begin));
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

analysis analyze(const recording& r) { return walker(r).run(); }

}  // namespace godwit::report
