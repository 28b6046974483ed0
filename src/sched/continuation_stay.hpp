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

/// No word of [low, high) names memory of this host's heap that is in use, as far as this worker can tell.
/// What ends where a word points to counts: that word may be all that its thread has of it.
template <class P>
bool continuation_worker<P>::owns_nothing(std::uintptr_t low, std::uintptr_t high) const noexcept {
  const stack::range heap = here_.heap_in_use();
  if (!names(low, high, heap)) return true;
  const auto unused = [&](std::uintptr_t word) { return !heap.holds(word) || here_.hooks.is_free(word); };
  return all_words(low, high, [&](std::uintptr_t word) { return unused(word) && unused(word - 1); });
}

/// A thread that is put aside, and owns something, is for no other host.
template <class P>
void continuation_worker<P>::hold_owner(image& im) const noexcept {
  if (here_.one_host() || im.bound || base::planted("stay.images_are_not_searched")) return;
  const std::uintptr_t more[] = {im.fp, im.extra};
  const auto at = reinterpret_cast<std::uintptr_t>(more);
  const auto low = own_stack ? im.low : reinterpret_cast<std::uintptr_t>(im.bytes());
  im.owner = !owns_nothing(at, at + sizeof more) || !owns_nothing(low, low + (im.bytes_end - im.low));
  im.bound = im.owner;
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
  count_stay(here_.words->stats, {.at = at, .line = im.where.line, .count = 1});
  if (!account_.traced()) return;
  const std::uint64_t now = base::fast_ns();
  account_.note(kind::stay, now, im.own_record, 0, 0, 0, 0);
  if (waited)
    account_.note_place(now, im.where);
  else
    account_.note(kind::callers, now, at);
}

}  // namespace godwit::sched
