// Members of worker: what it does about the two words that threads carry (carried.hpp). Scopes begin and end:
// docs/protocols/cancel.md. Segments are made where threads part: docs/protocols/segments.md.
#include "sched/worker.hpp"

#include "base/world.hpp"

namespace godwit::sched {

ref worker::enter_scope(scope_kind kind, std::uint64_t deadline_ns) noexcept {
  find_spawns();
  const unexposed inside;
  const ref scope = scopes_.make(kind, deadline_ns);
  carried_.enter(scope, detail::hot().bottom);
  scopes_.changed();
  return scope;
}

void worker::leave_scope(ref scope, const detail::place& where) noexcept {
  {
    const unexposed inside;
    const ref innermost = carried_.scope();  // itself, or what stands for it here
    if (!scopes_.is_or_stands_for(innermost, scope))
      base::fatal(
          "worker %u: the cancel_scope or cancel_shield of %s:%u ends before one that began after it: "
          "make them local variables",
          index(here_.me), where.file, where.line);
    carried_.leave(scopes_.near(scopes_.parent_of(scope)));
    scopes_.changed();
    end_strand(innermost);
  }
  if (!records_.is_complete(scope))
    static_cast<void>(wait(scope, where));
  else
    here_.acquire_writes();  // of threads of other hosts that have ended
  this_worker().records_.free_completed(scope);
}

detail::stop_time worker::when_to_stop() noexcept {
  constexpr std::uint64_t never = detail::stop_time::never;
  if (!may_stop()) return {false, never};
  std::uint64_t until = 0;  // by the fast clock, which is not quite that of timers
  if (scopes_.ask_in(carried_.scope(), until)) return {true, 0};
  const std::uint64_t now = base::fast_ns();
  return {true, until == 0 ? never : until <= now ? 0 : base::now_ns() + (until - now)};
}

/// A part of @p scope has ended: was it the last one?
void worker::end_strand(ref scope) noexcept {
  here_.release_writes();
  if (const ref done = scopes_.strand_ended(scope); done != 0) finish(done);
}

void worker::set_segment(ref s) noexcept {
  deque_.locked([&] { carried_.set_segment(s); });
}

ref worker::segment() noexcept {
  if (carried_.segment() == 0) {
    const unexposed inside;
    set_segment(segments_.begin_list(0));
  }
  return carried_.segment();
}

void worker::end_segment() noexcept {
  const ref s = carried_.segment();
  if (s == 0) [[likely]]
    return;
  const unexposed inside;
  set_segment(0);
  segments_.end(s);
}

carried worker::other_child_takes() noexcept {
  carried takes = carried_.now();
  if (takes.segment == 0) [[likely]]
    return takes;
  const unexposed inside;
  const ref before = takes.segment;
  ref mine = before;
  deque_.locked([&] {
    takes.segment = segments_.make_first(mine);
    if (mine != before) carried_.set_segment(mine);
  });
  if (mine != before) segments_.end(before);  // SE7: no thief reads it any more
  return takes;
}

/// SE5
void worker::part_segments() noexcept {
  const ref s = carried_.segment();
  if (s == 0) [[likely]]
    return;
  const ref parents = segments_.make();
  deque_.locked([&] {
    segments_.list().insert(parents, s);
    carried_.set_segment(parents);
  });
}

void worker::rejoin_segments(ref before) noexcept {
  const ref parents = carried_.segment();
  if (parents == before) [[likely]]
    return;
  set_segment(before);
  segments_.discard(parents);
}

void worker::offer_segment() noexcept {
  if (here_.one_host() || carried_.segment() == 0) [[likely]]
    return;
  if (here_.words->spare_segment.load(std::memory_order_relaxed) != 0) return;
  const unexposed inside;
  here_.words->spare_segment.store(segments_.make(), std::memory_order_release);
}

/// SE3: all that went on with a segment of another host has ended here.
void worker::tell_ended(ref segment) noexcept {
  const auto call = [](const void* closure) {
    this_worker().segments_.end(*static_cast<const ref*>(closure));
  };
  this_worker().send(transport::ref_worker(segment), 0, call, std::as_bytes(std::span(&segment, 1)), {});
}

}  // namespace godwit::sched
