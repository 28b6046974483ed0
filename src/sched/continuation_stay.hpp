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
      return names_heap(own, own.bytes_end, here_.shape.hosts_heaps);
    });
  }
}

/// Another host would have taken this thread, if it did not name the heap of this one.
template <class P>
void continuation_worker<P>::note_stay(const image& im) noexcept {
  ++here_.words->stats.threads_stayed;
  const bool waited = im.where.line != 0;
  const auto file = reinterpret_cast<std::uintptr_t>(im.where.file);
  spawn_slot slot{};
  slot.sp = im.sp;
  slot.extra = im.extra;
  count_stay(here_.words->stats, {waited ? file : spawned_at(slot), waited ? im.where.line : 0, 1});
}

}  // namespace godwit::sched
