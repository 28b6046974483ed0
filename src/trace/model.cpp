// See model.hpp.
#include "trace/model.hpp"

#include <algorithm>

namespace godwit::trace {

namespace {
constexpr std::size_t completions_kept = 4096;
constexpr std::size_t most_sleeps_held = 8192;
constexpr std::uint16_t parent_goes_on = 1;  // details of suspend
constexpr std::uint16_t stays_below = 2;

std::uint64_t begin_of(const event& e) noexcept {
  return e.time_ns - std::min<std::uint64_t>(e.time_ns, e.duration_ns);
}
}  // namespace

model::model(std::uint32_t workers, sink& out, std::vector<std::uint64_t> initial)
    : out_(out),
      workers_(workers),
      names_(workers),
      initial_(std::move(initial)),
      second_pass_(!initial_.empty()),
      early_completions_(completions_kept) {
  initial_.resize(workers);
}

void model::event(std::uint32_t w, const trace::event& e) {
  first_look(w, e);
  const auto what = static_cast<kind>(e.what);
  // (Who asks another host whether what it waits for is there serves others meanwhile.)
  if (what != kind::place && what != kind::waits && what != kind::callers && what != kind::cancel &&
      what != kind::message)
    flush(w);
  switch (what) {
    case kind::start:
    case kind::resume:
    case kind::task:
      gain(w, e);
      break;
    case kind::steal:
      leave_victim(w, e);
      gain(w, e);
      break;
    case kind::end:
      lose(w, e);
      end_thread(e.a, e.time_ns);
      complete(w, e.a, e.time_ns, e.detail == 1);
      break;
    case kind::suspend:
      suspend(w, e);
      break;
    case kind::waits:
    case kind::place:
    case kind::callers:
      about_last(w, e);
      break;
    case kind::wake:
      wake(w, e);
      break;
    case kind::cancel:
      cancel(w, e);
      break;
    case kind::idle:
      idle(w, e);
      break;
    case kind::sleep:
      slept(w, e);
      break;
    case kind::expose:
      expose(w, e);
      break;
    case kind::stay:
      stay(w, e);
      break;
    case kind::complete:
      complete(w, e.a, e.time_ns, false);
      break;
    case kind::access:
    case kind::far_call:
    case kind::message:
    case kind::global:
    case kind::moves:
    case kind::part_wait:
    case kind::system:
      nested(w, e);
      break;
    case kind::part:
    case kind::parts:
    case kind::heat:
      about_parts(w, e);
      break;
    default:
      break;  // clock; name: see rename
  }
  update_busy(w, e.time_ns);
  rename(w, e);
}

void model::slept(std::uint32_t w, const trace::event& e) {
  workers_[w].sleeps.emplace_back(begin_of(e), e.time_ns);
  if (workers_[w].sleeps.size() >= most_sleeps_held) flush_sleeps(w);
}

/// In the second pass it is known what a worker ran when its events begin.
void model::first_look(std::uint32_t w, const trace::event& e) {
  worker_info& me = workers_[w];
  if (me.seen) return;
  me.seen = true;
  me.floor_ns = begin_of(e);
  if (second_pass_ && initial_[w] != 0) {
    put(w, initial_[w], me.floor_ns, kind::count_);
    update_busy(w, me.floor_ns);
  }
  if (second_pass_) me.known = true;
}

// ---- threads ---------------------------------------------------------------------------------------------

model::thread_info& model::get(std::uint64_t record) {
  thread_info& t = threads_[record];
  if (t.number == 0) t.number = next_number_++;
  return t;
}

void model::hand_out(thread_info& t) {
  if (t.undoable && t.before.what != state::none) out_.on(t.before);
  t.undoable = false;
}

void model::move(thread_info& t, state to, std::uint64_t time, std::uint32_t worker) {
  time = std::max(time, t.since_ns);
  hand_out(t);
  t.before = {t.number, t.what, t.worker, t.since_ns, time, t.place, t.waits_for_what};
  t.undoable = true;
  const bool was = t.what == state::ready;
  const bool is = to == state::ready;
  t.what = to;
  t.since_ns = time;
  t.worker = worker;
  if (was != is) {
    ready_joins_ += is ? 1 : -1;
    out_.on(counter::ready_joins, time, ready_joins_);
  }
}

void model::end_thread(std::uint64_t record, std::uint64_t time) {
  const auto found = threads_.find(record);
  if (found == threads_.end()) return;
  stop_waiting(record, found->second);
  move(found->second, state::none, time, nobody);
  hand_out(found->second);
  threads_.erase(found);
}

void model::stop_waiting(std::uint64_t record, thread_info& t) {
  if (t.waits_for == 0) return;
  const auto [first, last] = waiters_.equal_range(t.waits_for);
  for (auto i = first; i != last; ++i)
    if (i->second == record) {
      waiters_.erase(i);
      break;
    }
  t.waits_for = 0;
}

void model::complete(std::uint32_t w, std::uint64_t record, std::uint64_t time, bool waiter_follows) {
  flows_.clear();
  const auto [first, last] = waiters_.equal_range(record);
  for (auto i = first; i != last; ++i) {
    const auto t = threads_.find(i->second);
    if (t == threads_.end()) continue;
    t->second.flow = next_flow_++;
    flows_.push_back(t->second.flow);
    t->second.waits_for = 0;
    move(t->second, state::ready, time, w);
  }
  waiters_.erase(first, last);
  if (flows_.empty() && waiter_follows) {
    flows_.push_back(next_flow_++);
    early_completions_[record / 8 % completions_kept] = {record, flows_.front()};
  }
  if (flows_.empty()) return;
  out_.on(instant{.worker = w, .what = mark::done, .time_ns = time, .flows = flows_});
}

// ---- workers ---------------------------------------------------------------------------------------------

void model::update_busy(std::uint32_t w, std::uint64_t time) {
  worker_info& me = workers_[w];
  const bool busy = !me.stack.empty() && me.stack.back().below_since_ns == 0;
  if (busy == me.busy) return;
  me.busy = busy;
  busy_ += busy ? 1 : -1;
  out_.on(counter::busy_workers, std::max(time, me.floor_ns), busy_);
}

/// Its place is known, if there is one, and a suspension was not undone: show it.
void model::flush(std::uint32_t w) {
  const auto closing = std::exchange(workers_[w].closing, {});
  if (const auto* slice = std::get_if<worker_slice>(&closing)) out_.on(*slice);
  if (const auto* point = std::get_if<instant>(&closing)) out_.on(*point);
}

void model::flush_sleeps(std::uint32_t w) {
  worker_info& me = workers_[w];
  for (const auto& [begin, end] : me.sleeps) {
    const std::uint64_t from = std::max(begin, me.floor_ns);
    out_.on(
        worker_slice{.worker = w, .what = activity::sleep, .begin_ns = from, .end_ns = std::max(end, from)});
  }
  me.sleeps.clear();
}

/// A thread is in the worker's stack region from now on.
void model::put(std::uint32_t w, std::uint64_t record, std::uint64_t time, kind how) {
  worker_info& me = workers_[w];
  thread_info& t = get(record);
  stop_waiting(record, t);
  move(t, state::running, time, w);
  running r;
  r.slice.worker = w;
  r.slice.begin_ns = std::max(time, me.floor_ns);
  r.slice.thread = t.number;
  r.slice.record = record;
  r.slice.began = t.place;
  r.slice.how = how;
  r.slice.flow = std::exchange(t.flow, 0);
  me.floor_ns = r.slice.begin_ns;
  me.stack.push_back(r);
  me.known = true;
}

void model::gain(std::uint32_t w, const trace::event& e) {
  worker_info& me = workers_[w];
  const auto how = static_cast<kind>(e.what);
  flush_sleeps(w);
  me.late_steal = {};
  if (how == kind::resume && !me.stack.empty() && me.stack.back().slice.record == e.a &&
      me.stack.back().below_since_ns != 0)
    return surface(w, e);
  const bool on_top = how == kind::task && e.detail == 1;
  if (!on_top)
    while (!me.stack.empty()) close_top(w, e.time_ns, kind::count_);  // its end was not seen
  const std::uint64_t idle_floor = me.floor_ns;
  if (const std::uint64_t flow = flow_to(w, e); flow != 0) get(e.a).flow = flow;
  put(w, e.a, e.time_ns, how);
  me.last_suspended = 0;
  me.last_began = e.a;
  me.left_child = how == kind::steal ? e.b : 0;
  me.victim = how == kind::steal ? e.other : nobody;
  me.last_place = {};
  worker_slice& s = me.stack.back().slice;
  s.from = e.other;
  s.bytes = e.bytes;
  s.latency_ns = e.duration_ns;
  if (how != kind::start && e.duration_ns != 0 && e.other != w && !on_top) {
    worker_slice g = s;
    g.what = activity::getting;
    g.begin_ns = std::max(begin_of(e), idle_floor);
    g.end_ns = std::max(e.time_ns, g.begin_ns);
    g.flow = 0;
    if (g.begin_ns < g.end_ns) out_.on(g);
  }
}

/// From where a thread that goes on came, if that is another worker's doing; 0: nothing new.
std::uint64_t model::flow_to(std::uint32_t w, const trace::event& e) {
  const auto how = static_cast<kind>(e.what);
  if (how == kind::task && e.other != w && e.other < workers_.size() && workers_[e.other].seen) {
    const std::uint64_t flow = next_flow_++;
    out_.on(instant{.worker = e.other,
                    .what = mark::stolen,
                    .time_ns = std::max(e.time_ns, workers_[e.other].floor_ns),
                    .thread = get(e.a).number,
                    .other = w,
                    .flows = {&flow, 1}});
    return flow;
  }
  if (how == kind::resume && get(e.a).flow == 0) {
    completion& c = early_completions_[e.b / 8 % completions_kept];
    if (e.b != 0 && c.record == e.b) return std::exchange(c, {}).flow;
  }
  return 0;
}

/// The top thread of worker @p w, which waited in place below others, goes on.
void model::surface(std::uint32_t w, const trace::event& e) {
  running& r = workers_[w].stack.back();
  worker_slice s = r.slice;
  s.what = activity::below;
  s.begin_ns = std::max(r.below_since_ns, r.slice.begin_ns);
  s.end_ns = std::max(e.time_ns, s.begin_ns);
  s.flow = 0;
  out_.on(s);
  r.below_since_ns = 0;
  thread_info& t = get(e.a);
  stop_waiting(e.a, t);
  t.flow = 0;
  move(t, state::running, e.time_ns, w);
}

/// A thief took the bottom thread: from now on the child that it waited for is what the victim runs.
void model::leave_victim(std::uint32_t w, const trace::event& e) {
  if (e.other >= workers_.size() || e.other == w || !workers_[e.other].seen) return;
  const std::uint32_t v = e.other;
  worker_info& victim = workers_[v];
  const std::uint64_t time = std::max(e.time_ns, victim.floor_ns);
  get(e.a).flow = next_flow_++;
  out_.on(instant{.worker = v,
                  .what = mark::stolen,
                  .time_ns = time,
                  .thread = get(e.a).number,
                  .other = w,
                  .bytes = e.bytes,
                  .flows = {&get(e.a).flow, 1}});
  for (auto& gone : victim.early)
    if (gone == e.b && e.b != 0) {  // the child has ended or left meanwhile, and the slice is cut already
      gone = 0;
      return;
    }
  if (victim.stack.empty() && !victim.known) {
    initial_[v] = e.a;
    victim.known = true;
    if (e.b != 0) put(v, e.b, time, kind::steal);
    update_busy(v, time);
    return;
  }
  if (victim.stack.empty() || victim.stack.front().slice.record != e.a) {
    victim.late_steal = {e.a, e.b};
    return;
  }
  for (std::uint64_t child = e.b;;) {
    while (!victim.stack.empty()) close_top(v, time, kind::steal);
    if (child == 0) break;
    put(v, child, time, kind::steal);
    if (victim.late_steal.first != child) break;
    child = std::exchange(victim.late_steal, {}).second;
  }
  update_busy(v, time);
}

void model::close_top(std::uint32_t w, std::uint64_t time, kind why) {
  worker_info& me = workers_[w];
  running r = me.stack.back();
  me.stack.pop_back();
  if (!me.stack.empty()) {  // nested: the outer one must contain it
    r.slice.begin_ns = std::max(r.slice.begin_ns, me.stack.back().slice.begin_ns + 1);
  }
  r.slice.end_ns = std::max(time, r.slice.begin_ns);
  r.slice.why = why;
  me.floor_ns = std::max(me.floor_ns, r.slice.end_ns);
  flush(w);
  if (why == kind::suspend || why == kind::steal)  // its place follows
    me.closing = r.slice;
  else
    out_.on(r.slice);
}

/// The worker's thread ended or left, and its parent is not here.
void model::lose(std::uint32_t w, const trace::event& e) {
  worker_info& me = workers_[w];
  flush_sleeps(w);
  const auto why = static_cast<kind>(e.what);
  if (me.stack.empty()) {
    if (!me.known) initial_[w] = e.a;
    me.known = true;
    return;
  }
  me.known = true;
  std::size_t depth = me.stack.size();
  while (depth > 0 && me.stack[depth - 1].slice.record != e.a) --depth;
  if (depth == 0) {
    // Who we believed to be here was stolen, and the thief has not written it down yet. In child stealing
    // without thieves this is the top thread under another name: same.
    close_top(w, e.time_ns, kind::steal);
    me.early[me.next_early++ % std::size(me.early)] = e.a;
    return;
  }
  while (me.stack.size() >= depth) {
    const bool last = me.stack.size() == depth;
    if (last && why == kind::suspend) me.stack.back().slice.copied_out = e.bytes;
    close_top(w, e.time_ns, last ? why : kind::count_);
  }
}

void model::suspend(std::uint32_t w, const trace::event& e) {
  worker_info& me = workers_[w];
  if (e.detail != parent_goes_on && e.detail != stays_below) lose(w, e);
  const bool fresh = !threads_.contains(e.a);
  thread_info& t = get(e.a);
  stop_waiting(e.a, t);
  t.fresh = fresh;
  t.place = 0;
  t.waits_for_what = 0;
  me.last_began = 0;
  me.last_place = {};
  move(t, e.b == 0 ? state::yielded : state::waiting, e.time_ns, w);
  t.waits_for = e.b;
  if (e.b != 0) waiters_.emplace(e.b, e.a);
  me.last_suspended = e.a;
  if (e.detail == stays_below && !me.stack.empty()) me.stack.back().below_since_ns = e.time_ns;
  if (e.detail != parent_goes_on) return;
  me.closing = instant{.worker = w,
                       .what = mark::suspended,
                       .time_ns = std::max(e.time_ns, me.floor_ns),
                       .thread = t.number,
                       .bytes = e.bytes};
}

void model::stay(std::uint32_t w, const trace::event& e) {
  worker_info& me = workers_[w];
  me.last_suspended = me.last_began = 0;  // the place that follows is not where it waits
  me.last_place = {};
  me.closing = instant{.worker = w,
                       .what = mark::stayed,
                       .time_ns = std::max(e.time_ns, me.floor_ns),
                       .thread = get(e.a).number};
}

/// As if the suspension just written had not been.
void model::cancel(std::uint32_t w, const trace::event& e) {
  worker_info& me = workers_[w];
  const auto was_closing = std::exchange(me.closing, {});
  const auto* slice = std::get_if<worker_slice>(&was_closing);
  if (slice != nullptr && slice->why == kind::steal) out_.on(*slice);  // the parent's, which stays away
  if (slice != nullptr && slice->why == kind::suspend) {
    running r{*slice};
    r.slice.copied_out = 0;
    r.slice.why = kind::count_;
    me.stack.push_back(r);
  } else if (!me.stack.empty() && me.stack.back().below_since_ns != 0 &&
             me.stack.back().slice.record == e.a) {
    me.stack.back().below_since_ns = 0;
  } else if (me.stack.empty() && !std::holds_alternative<instant>(was_closing)) {
    // the steal that left it here has not been seen yet
    for (auto& gone : me.early)
      if (gone == e.a) gone = 0;
    put(w, e.a, e.time_ns, kind::steal);
    return;
  }
  const auto found = threads_.find(e.a);
  if (found == threads_.end()) return;
  thread_info& t = found->second;
  stop_waiting(e.a, t);
  t.flow = 0;
  if (t.undoable && t.what == state::waiting && !t.fresh) {
    t.what = t.before.what;
    t.worker = t.before.worker;
    t.since_ns = t.before.begin_ns;
    t.undoable = false;
  } else if (t.fresh) {  // it has no name of its own, after all
    if (t.what == state::ready) move(t, state::none, e.time_ns, nobody);
    threads_.erase(found);
  } else {
    move(t, state::running, e.time_ns, w);
  }
}

void model::idle(std::uint32_t w, const trace::event& e) {
  worker_info& me = workers_[w];
  me.known = true;
  worker_slice s{
      .worker = w, .what = activity::idle, .begin_ns = begin_of(e), .end_ns = e.time_ns, .detail = e.detail};
  if (me.stack.empty()) {
    s.begin_ns = std::max(s.begin_ns, me.floor_ns);
  } else if (s.begin_ns < me.stack.back().slice.begin_ns) {  // before what runs now
    s.end_ns = std::min(s.end_ns, me.stack.back().slice.begin_ns);
  }
  s.end_ns = std::max(s.begin_ns, s.end_ns);
  out_.on(s);
  for (auto& [begin, end] : me.sleeps) {
    begin = std::clamp(begin, s.begin_ns, s.end_ns);
    end = std::clamp(end, begin, s.end_ns);
  }
  if (!me.sleeps.empty()) {
    const std::uint64_t floor = std::exchange(me.floor_ns, 0);
    flush_sleeps(w);
    me.floor_ns = floor;
  }
}

void model::finish(std::uint64_t end_ns) {
  for (std::uint32_t w = 0; w < workers_.size(); ++w) {
    flush(w);
    flush_sleeps(w);
    while (!workers_[w].stack.empty()) close_top(w, end_ns, kind::count_);
    update_busy(w, end_ns);
    update_name(w, end_ns);
  }
  std::vector<std::pair<std::uint32_t, std::uint64_t>> open;
  for (const auto& [record, t] : threads_) open.emplace_back(t.number, record);
  std::sort(open.begin(), open.end());
  for (const auto& [number, record] : open) end_thread(record, end_ns);
}

}  // namespace godwit::trace
