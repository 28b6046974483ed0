// What happens inside of what a worker does: requests, the cache, moves of memory. See model.hpp.
#include "trace/model.hpp"

#include <algorithm>

namespace godwit::trace {

namespace {
activity activity_of(kind k) noexcept {
  switch (k) {
    case kind::message:
      return activity::message;
    case kind::global:
      return activity::global;
    case kind::moves:
      return activity::moves;
    case kind::part_wait:
      return activity::part_wait;
    case kind::access:
      return activity::access;
    default:
      return activity::far_call;
  }
}
}  // namespace

void model::nested(std::uint32_t w, const trace::event& e) {
  if (static_cast<kind>(e.what) == kind::system) return kept(w, e);
  const activity what = activity_of(static_cast<kind>(e.what));
  worker_info& me = workers_[w];
  if (what == activity::access) {  // the place behind it is its own
    me.last_suspended = me.last_began = 0;
    me.last_place = {};
  }
  const std::uint64_t from =
      std::max(e.time_ns - std::min<std::uint64_t>(e.time_ns, e.duration_ns), me.floor_ns);
  const bool moves = what == activity::moves;
  out_.on(worker_slice{.worker = w,
                       .what = what,
                       .begin_ns = from,
                       .end_ns = std::max(e.time_ns, from),
                       .from = what == activity::far_call || what == activity::access ? e.other : nobody,
                       .bytes = what == activity::global || moves ? e.bytes : 0,
                       .detail = e.detail,
                       .address = e.a,
                       .part = moves ? part_of(e.b) : 0,
                       .count = moves ? e.other : 0,
                       .to = moves ? worker_of(e.b) : nobody});
}

void model::about_parts(std::uint32_t w, const trace::event& e) {
  instant i{.worker = w, .time_ns = e.time_ns, .bytes = e.bytes, .address = e.a, .part = part_of(e.b)};
  if (worker_of(e.b) != no_worker) i.to = worker_of(e.b);
  if (static_cast<kind>(e.what) == kind::part) {
    i.what = mark::part;
    i.other = e.other;
    i.took_ns = e.duration_ns;
    i.result = static_cast<part_result>(e.detail);
  } else if (static_cast<kind>(e.what) == kind::heat) {
    i.what = mark::used;
    i.count = e.other;
  } else {
    i.what = e.other != 0 ? mark::allocated : mark::freed;
    i.count = e.other;
  }
  out_.on(i);
}

void model::expose(std::uint32_t w, const trace::event& e) {
  out_.on(instant{.worker = w,
                  .what = mark::exposed,
                  .time_ns = e.time_ns,
                  .bytes = e.bytes,
                  .by_signal = e.detail == 1});
}

void model::kept(std::uint32_t w, const trace::event& e) {
  out_.on(instant{.worker = w,
                  .what = mark::kept,
                  .time_ns = e.time_ns,
                  .count = e.other,
                  .how = static_cast<system_kind>(e.detail),
                  .ns = e.b});
}

}  // namespace godwit::trace
