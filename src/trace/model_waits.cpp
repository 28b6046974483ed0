// What threads wait for, where, and who lets them go on. See model.hpp.
#include "trace/model.hpp"

#include <algorithm>

namespace godwit::trace {

/// Of the suspension just written.
void model::about_last(worker_info& me, const trace::event& e) {
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
  if (t != threads_.end()) t->second.place = p;
  if (auto* slice = std::get_if<worker_slice>(&me.closing)) slice->place = p;
  if (auto* point = std::get_if<instant>(&me.closing)) point->place = p;
}

/// A thread that waits for no record can go on.
void model::wake(std::uint32_t w, const trace::event& e) {
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
