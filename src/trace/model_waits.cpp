// What threads wait for, where, and who lets them go on. See model.hpp.
#include "trace/model.hpp"

#include <algorithm>

namespace godwit::trace {

/// Of the suspension, or what began, just written.
void model::about_last(std::uint32_t w, const trace::event& e) {
  worker_info& me = workers_[w];
  const auto t = threads_.find(me.last_suspended);
  if (static_cast<kind>(e.what) == kind::waits) {
    if (t == threads_.end()) return;
    t->second.waits_for_what = e.a;
    t->second.what = state::waiting;
    return;
  }
  if (static_cast<kind>(e.what) == kind::place) {
    me.last_place = {.file = e.a, .function = e.b, .line = e.other};
  } else {
    auto& known = me.last_place.callers;
    const auto next = std::find(known.begin(), known.end(), std::uint64_t{0});
    if (known.end() - next < 2) return;
    next[0] = e.a, next[1] = e.b;
  }
  const std::uint32_t p = intern(me.last_place);
  if (me.last_began != 0) return began_at(me, p);
  if (t != threads_.end()) t->second.place = p;
  if (auto* slice = std::get_if<worker_slice>(&me.closing)) slice->place = p;
  if (auto* point = std::get_if<instant>(&me.closing)) point->place = p;
}

/// A continuation begins at @p place, and so does the child that it left behind. Its thread had come that
/// far.
void model::began_at(worker_info& me, std::uint32_t place) {
  const auto thread = threads_.find(me.last_began);
  if (thread != threads_.end()) thread->second.place = place;
  if (!me.stack.empty() && me.stack.back().slice.record == me.last_began) me.stack.back().slice.began = place;
  if (me.victim >= workers_.size()) return;
  worker_info& victim = workers_[me.victim];
  if (auto* slice = std::get_if<worker_slice>(&victim.closing))
    if (slice->record == me.last_began) slice->place = place;
  const auto child = threads_.find(me.left_child);
  if (me.left_child == 0 || child == threads_.end()) return;
  if (!victim.stack.empty() && victim.stack.front().slice.record == me.left_child) {
    victim.stack.front().slice.began = place;
    child->second.place = place;
  }
}

void model::rename(std::uint32_t w, const trace::event& e) {
  names_.event(w, e);
  update_name(w, e.time_ns);
  if (static_cast<kind>(e.what) == kind::steal && e.other < workers_.size()) update_name(e.other, e.time_ns);
}

/// What the program calls what runs there has changed, or not.
void model::update_name(std::uint32_t w, std::uint64_t time) {
  worker_info& me = workers_[w];
  const std::uint64_t name = me.stack.empty() ? 0 : names_.of(w);
  if (name == me.name) return;
  if (me.name != 0) {
    worker_slice s{.worker = w, .what = activity::named, .begin_ns = me.name_since_ns, .end_ns = time};
    s.address = me.name;
    s.end_ns = std::max(s.end_ns, s.begin_ns);
    out_.on(s);
  }
  me.name = name;
  me.name_since_ns = me.stack.empty() ? time : std::max(time, me.stack.front().slice.begin_ns + 1);
}

/// A thread that waits for no record can go on.
void model::wake(std::uint32_t w, const trace::event& e) {
  workers_[w].last_suspended = workers_[w].last_began = 0;  // the place behind it is its own
  workers_[w].last_place = {};
  const auto found = threads_.find(e.a);
  if (found == threads_.end() || found->second.what != state::waiting) return;
  found->second.flow = next_flow_++;
  out_.on(instant{.worker = w,
                  .what = mark::wakes,
                  .time_ns = e.time_ns,
                  .thread = found->second.number,
                  .flows = {&found->second.flow, 1}});
  move(found->second, state::ready, e.time_ns, w);
}

std::uint32_t model::intern(const place& p) {
  const auto [at, added] = place_numbers_.try_emplace(p, 0);
  if (added) {
    at->second = static_cast<std::uint32_t>(places_.size());
    places_.push_back(p);
  }
  return at->second;
}

}  // namespace godwit::trace
