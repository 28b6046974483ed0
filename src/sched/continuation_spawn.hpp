// Members of continuation_worker: what may happen where a child begins and where it ends, when it is not the
// usual thing. docs/protocols/deque.md, cancel.md (CA). Included by continuation.cpp alone, which
// instantiates them.
#pragma once

#include "sched/continuation.hpp"

namespace godwit::sched {

template <class P>
bool continuation_worker<P>::spawn_point(bool child_may_leave, bool always_begins) noexcept {
  if constexpr (lazy) wrong_policy();
  return look_at_spawn(child_may_leave, always_begins);
}

template <class P>
bool continuation_worker<P>::look_at_spawn(bool child_may_leave, bool always_begins) noexcept {
  const bool thrown = !here_.exceptions.state->empty();
  std::uint32_t unasked = context::poll_exceptions;
  if (!thrown && detail::hot().poll.load(std::memory_order_relaxed) == unasked &&
      detail::hot().poll.compare_exchange_strong(unasked, poll_unasked(), std::memory_order_relaxed)) {
    if (account_.samples_spawns()) account_.note_spawn(spawned_at(detail::hot().bottom[-1]));
    return refuses_child() && !always_begins;
  }
  catch_up();
  spend(base::step::look);  // of the poll word: and however often a thread spawns, time passes
  detail::hot().poll.store(poll_unasked(), std::memory_order_relaxed);
  // Before looking: what was posted before poll was set again must be seen now, or poll stay set. Else a
  // request (way am) or a letter could wait for as long as nobody else asks.
  base::fence();
  if (refuses_child()) {
    detail::hot().poll.store(1, std::memory_order_relaxed);  // who asks is served by another spawn
    if (!always_begins) return true;
  }
  check_own_stack(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), detail::hot().bottom[-1].sp);
  if (thrown) {
    parents_leave();                                       // EX1; before anybody else's code runs here
    if (carried_.scope() != 0) context::look_at_spawns();  // CA4: the child may be stopped, unlike its parent
  }
  inbox_.serve();
  serve_mailbox();
  delay();
  if (here_.words->put_aside.load(std::memory_order_relaxed) != 0) put_aside();
  offer_segment();
  if (here_.forced == choice::force_steal::none) {
    sample_spawn();
    expose();
    return false;
  }
  force(child_may_leave);
  // perhaps later, and at another worker
  return static_cast<continuation_worker&>(this_worker()).refuses_child() && !always_begins;
}

/// Somebody asked at a spawn: this one counts, or those behind it are looked at.
template <class P>
void continuation_worker<P>::sample_spawn() noexcept {
  if (account_.samples_spawns())
    account_.note_spawn(spawned_at(detail::hot().bottom[-1]));
  else if (account_.traced())
    account_.sample_spawns(base::fast_ns());
}

template <class P>
void continuation_worker<P>::expose() noexcept {
  spawn_slot* end = deque_.next_split();
  if (end == detail::hot().split) return;
  const unexposed inside;  // from here on: a half-encoded frame must not become public by signal
  if (detail::hot().pending != nullptr)
    exposure_.encode_pending(iso ? here_.region_low : end[-1].sp, here_.region_high);
  end = deque_.next_split();
  if (end == detail::hot().split) return;  // the signal was faster
  exposure_.expose(end, base::float_control());
  idle_.wake_one();
}

/// CA4: then the next spawn is looked at as well.
template <class P>
bool continuation_worker<P>::refuses_child() noexcept {
  if (!must_stop()) return false;
  context::look_at_spawns();
  return true;
}

template <class P>
ref continuation_worker<P>::pop_public(spawn_slot* b) noexcept {
  const unexposed inside;
  catch_up();
  const auto popped = deque_.pop_public(
      b, [&](const spawn_slot* first, const spawn_slot* last) { check_left_frames(first, last); });
  if (popped.parent_here) return 0;
  carried_.moved_down();
  return popped.record;
}

}  // namespace godwit::sched
