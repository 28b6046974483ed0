// Members of continuation_worker: threads that name the heap of their host, and stay there. Who finds them is
// far_calls.cpp and far_thief.cpp. docs/protocols/far.md (Stay). Included by continuation.cpp alone, which
// instantiates them.
#pragma once

#include "sched/continuation.hpp"
#include "sched/frames.hpp"

namespace godwit::sched {

/// Called at the start of a child, when another host has found that the oldest continuation, which is public,
/// names this one's heap: it makes way for those above it, which may go there.
template <class P>
void continuation_worker<P>::put_aside() noexcept {
  here_.words->put_aside.store(0, std::memory_order_relaxed);
  if constexpr (!stacks_stay) {
    constexpr unsigned most = 4;
    const unexposed inside;
    oldest_leave(most, false, true, [&](const spawn_slot& own) {
      const stack::range heap = here_.heap_in_use();
      return names_heap(own, own.bytes_end, heap) || (lazy && names_heap(*lazy_site_of(own), heap));
    });
  }
}

/// All that a thread that stays names of the heap has been freed, as far as this worker can tell. Its stack
/// is in its place.
template <class P>
bool continuation_worker<P>::names_freed_only(const image& im) const noexcept {
  const stack::range heap = here_.heap_in_use();
  const auto nobodys = [&](std::uintptr_t word) { return !heap.holds(word) || here_.hooks.is_free(word); };
  return nobodys(im.fp) && nobodys(im.extra) && all_words(im.low, im.bytes_end, nobodys);
}

/// Another host would have taken this thread, if it did not name the heap of this one.
template <class P>
void continuation_worker<P>::note_stay(const image& im) noexcept {
  ++here_.words->stats.threads_stayed;
  const bool waited = im.where.line != 0;
  spawn_slot slot{};
  slot.sp = im.sp + (lazy ? bytes_below : 0);
  slot.extra = im.extra;
  const std::uintptr_t at = waited ? reinterpret_cast<std::uintptr_t>(im.where.file) : spawned_at(slot);
  const bool stale = im.stale_words || names_freed_only(im);
  count_stay(here_.words->stats, {.at = at, .line = im.where.line, .stale = stale, .count = 1});
  if (!account_.traced()) return;
  const std::uint64_t now = base::fast_ns();
  account_.note(kind::stay, now, im.own_record, 0, 0, 0, 0, stale ? trace::stays_by_stale_words : 0);
  if (waited)
    account_.note_place(now, im.where);
  else
    account_.note(kind::callers, now, at);
}

}  // namespace godwit::sched
