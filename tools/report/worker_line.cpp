// One worker's segments. See worker_line.hpp.
#include "worker_line.hpp"

#include "waits.hpp"

#include <algorithm>

namespace godwit::report {

void worker_line::put(segment s) {
  if (s.end <= s.begin) return;
  if (sums_.spare && s.what != state::busy && s.what != state::getting) {
    s.what = state::unknown;
    s.place = nothing;
  }
  const std::uint64_t from = std::max(s.begin, sums_.whole_from);
  if (s.end > from) {
    sums_.totals.ns[static_cast<std::size_t>(s.what)] += s.end - from;
    if (s.place != nothing && s.what != state::busy) sums_.places[s.place].idle_ns += s.end - from;
  }
  if (!sums_.out.empty() && s.what != state::busy) {
    segment& last = sums_.out.back();
    if (last.what == s.what && last.end == s.begin && last.place == s.place) {
      last.end = s.end;
      return;
    }
  }
  sums_.out.push_back(s);
}

/// @p next: the name of where it came to, for what has no better one.
void worker_line::put_busy(std::uint64_t to, loss how, std::uint32_t place, std::uint32_t next) {
  const bool own = own_name_ != nothing;
  const std::uint32_t name = own ? own_name_ : now_.name != nothing ? now_.name : next;
  put({now_.begin, to, now_.thread, now_.other, place, state::busy, now_.begun, how, name, own, now_.offers});
}

/// What runs goes on as a new piece.
void worker_line::cut(std::uint64_t at, loss how, std::uint32_t next) {
  if (!busy_ || at <= now_.begin) return;
  now_.depth = now_.depth_at(at);
  put_busy(at, how, nothing, next);
  now_.begin = now_.since = at;
  now_.begun = gain::none;
}

void worker_line::offers(std::uint64_t at, std::uint32_t name) {
  cut(at, loss::offered, name);
  now_.offers = true;
}

void worker_line::called(std::uint64_t at, std::uint32_t own_name) {
  if (own_name == own_name_) return;
  cut(at, loss::none);
  own_name_ = own_name;
}

// The time since the last thread: what idle events say about it, and at its end the getting. What lies
// between two idle events, or before the first, is the few instructions between them: it goes to its
// neighbour.
void worker_line::put_gap(std::uint64_t to, std::uint64_t took) {
  const std::uint64_t got = took < to - gap_from_ ? to - took : gap_from_;
  std::uint64_t from = gap_from_;
  const auto idle_segment = [&](std::uint64_t end, state cause) {
    const std::uint32_t place = cause == gap_ ? gap_place_ : nothing;
    put({from, end, nothing, nothing, place, cause, gain::none, loss::none});
    from = std::max(from, end);
  };
  state cause = lost_start_ ? state::unknown : gap_;
  for (std::size_t i = 0; i < pauses_.size(); ++i) {
    cause = pauses_[i].cause;
    const bool last = i + 1 == pauses_.size();
    idle_segment(last ? got : std::min(pauses_[i].to, got), cause);
  }
  idle_segment(got, cause);
  put({got, to, nothing, nothing, nothing, state::getting, gain::none, loss::none});
  pauses_.clear();
}

void worker_line::get(running r, std::uint64_t at, std::uint64_t took, bool on_top) {
  if (on_top) {
    // What lies below waits: its time so far is a segment of its own.
    if (busy_) {
      now_.depth = now_.depth_at(at);
      now_.since = at;
      put_busy(std::max(at - std::min(at, took), now_.begin), loss::join, nothing);
      gap_from_ = std::max(at - std::min(at, took), now_.begin);
      gap_ = state::join;
      gap_place_ = nothing;
    }
    buried_.push_back({now_, busy_});
  } else if (busy_) {
    put_busy(std::max(at, now_.begin), loss::none, nothing);
    gap_from_ = std::max(at, now_.begin);
  }
  at = std::max(at, gap_from_);
  put_gap(at, took);
  lost_start_ = false;
  busy_ = true;
  now_ = r;
  now_.begin = now_.run_begin = now_.since = at;
}

void worker_line::lose(std::uint64_t at, loss how, std::uint32_t place, std::uint32_t name, wait_for kind) {
  if (!busy_) return;
  at = std::max(at, now_.begin);
  last_depth_ = now_.depth_at(at);
  put_busy(at, how, place, name);
  busy_ = false;
  gap_from_ = at;
  gap_ = state_of(kind);
  gap_place_ = place;
  // Only the end of a task uncovers what lies below it; a thread that leaves is followed by another in its
  // place.
  if ((how == loss::end || how == loss::end_waiter) && !buried_.empty()) {
    const buried_thread below = buried_.back();
    buried_.pop_back();
    if (!below.was_busy) return;
    busy_ = true;
    now_ = below.r;
    now_.begin = now_.since = at;
    now_.depth = std::max(now_.depth, last_depth_);
    now_.begun = gain::resume;
  }
}

void worker_line::stolen(std::uint64_t at, std::uint64_t record, std::uint32_t thread, std::uint32_t name) {
  if (!busy_) return;
  at = std::max(at, now_.begin);
  put_busy(at, loss::stolen, nothing, name);
  // The pieces before, which offered that spawn, have come to it as well.
  for (auto s = sums_.out.rbegin();
       s != sums_.out.rend() && s->what == state::busy && s->thread == now_.thread; ++s)
    if (s->name == nothing) s->name = name;
  now_.offers = false;
  now_.begin = at;
  now_.name = name;
  now_.record = record;
  now_.thread = thread;
  now_.begun = gain::left;
  now_.other = nothing;
}

void worker_line::idle(std::uint64_t from, std::uint64_t to, trace::idle_cause why) {
  const state cause = why == trace::idle_cause::join        ? state::join
                      : why == trace::idle_cause::transport ? state::transport
                      : why == trace::idle_cause::wait      ? gap_  // which, its suspension has said
                                                            : state::no_work;
  if (!busy_) {
    if (lost_start_) first_known(from, false);
    pauses_.push_back({from, to, cause});
    return;
  }
  from = std::max(from, now_.begin);
  if (to <= from) return;
  const std::uint64_t depth = now_.depth_at(from);
  put_busy(from, loss::join, nothing);
  put({from, to, nothing, nothing, nothing, cause, gain::none, loss::none});
  now_.begin = now_.since = to;
  now_.depth = depth;
  now_.begun = gain::resume;
}

void worker_line::first_known(std::uint64_t at, bool busy) {
  put_gap(at, 0);
  lost_start_ = false;
  gap_from_ = at;
  busy_ = busy;
  if (busy) {
    now_ = {};
    now_.begin = now_.run_begin = now_.since = at;
  }
}

void worker_line::finish(std::uint64_t at) {
  if (busy_) {
    last_depth_ = now_.depth_at(at);
    put_busy(std::max(at, now_.begin), loss::none, nothing);
  } else {
    put_gap(std::max(at, gap_from_), 0);
  }
}

}  // namespace godwit::report
