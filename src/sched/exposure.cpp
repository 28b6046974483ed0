// See exposure.hpp.
#include "sched/exposure.hpp"

#include "base/thread_sanitizer.hpp"
#include "base/unexposed.hpp"
#include "context/context.hpp"
#include "sched/frames.hpp"
#include "sched/lazy_spawns.hpp"

#include <godwit/future.hpp>

namespace godwit::sched {

void exposure::encode_pending(std::uintptr_t low, std::uintptr_t high) noexcept {
  // What a value holds may be in the list as well (a future of a future): that is gone with it.
  for (detail::pending_value** at = &detail::hot().pending; *at != nullptr;) {
    detail::pending_value* const v = *at;
    const auto address = reinterpret_cast<std::uintptr_t>(v);
    const bool on_stack = address >= here_.region_low && address < here_.region_high;
    if (!on_stack || (address >= low && address < high))
      v->encode(v);
    else
      at = &v->next;
  }
}

void exposure::expose(spawn_slot* end, std::uint32_t float_control) noexcept {
  // What the parents wrote, before anybody can take them. A signal comes only when there is nothing to
  // release, and must not try: the code that it interrupts may hold locks.
  here_.release_writes();
  expose_all(end, float_control, false);
}

void exposure::prepare(spawn_slot& s, std::uint32_t float_control) noexcept {
  if (s.record == 0) s.record = records_.make_unexposed();
  GODWIT_ASSERT(transport::ref_worker(s.record) == here_.me, "the record of a slot is of its deque's owner");
  record* r = here_.home<record>(s.record);  // not by the alias: these pages have been touched
  base::happens_before(r);                   // what its child did until now: a thief goes on with the parent
  s.float_control = float_control;
  if (const ref scope = carried_.scope_of(&s); scope != 0) {
    put_carried(*r, {.scope = scope});
    s.float_control |= slot_carries;
  }
  r->spawned_at = spawned_at(s, here_.shape.lazy_spawns);
  s.bytes_end = ancestors_.needed_end((&s)[-1], (&s)[-1].sp, s.sp);
  GODWIT_ASSERT(r->kind == object_kind::record && r->references.load(std::memory_order_relaxed) != 0,
                "a slot's record has somebody who will join");
  if (here_.hooks.heap_in_use != nullptr) tell_heap_end();
}

void exposure::tell_heap_end() noexcept {
  word& end = here_.words->heap_end;
  if (base::planted("stay.heap_end_is_told_once") && end.load(std::memory_order_relaxed) != 0) return;
  end.store(here_.heap_in_use().high, std::memory_order_relaxed);
}

void exposure::expose_all(spawn_slot* end, std::uint32_t control, bool by_signal) noexcept {
  GODWIT_ASSERT(end > detail::hot().split, "there is something to expose");
  GODWIT_ASSERT(detail::hot().in_runtime != 0, "the expose signal keeps its hands off meanwhile");
  const auto count = static_cast<std::uint64_t>(end - detail::hot().split);
  context::flush_windows();
  const std::uintptr_t where = spawned_at(*detail::hot().split, here_.shape.lazy_spawns);
  deque_.expose(end, [&](spawn_slot& s) { prepare(s, control); });
  ++here_.words->stats.exposures;
  if (account_.traced() && here_.forced == choice::force_steal::none)
    account_.note(trace::kind::expose, base::fast_ns(), where, 0, 0, count, 0, by_signal);
}

/// @p float_control of the interrupted code: the kernel resets the register itself for signal handlers.
bool exposure::on_signal(std::uint32_t float_control) noexcept {
  detail::hot_words& hot = detail::hot();
  const auto at_next_spawn = [&] {
    hot.poll.store(1, std::memory_order_relaxed);
    return false;
  };
  if (hot.in_runtime != 0 || hot.pending != nullptr || here_.forced != choice::force_steal::none ||
      (here_.hooks.must_release != nullptr && here_.hooks.must_release())) {
    return at_next_spawn();
  }
  const base::unexposed inside;
  spawn_slot* end = deque_.next_split();
  if (end == hot.split) return false;
  // The newest may be one that takes its exceptions along, and has just been pushed.
  if (end == hot.bottom && !here_.exceptions.state->empty()) return at_next_spawn();
  expose_all(end, float_control, true);
  ++here_.words->stats.signals;
  return true;
}

}  // namespace godwit::sched
