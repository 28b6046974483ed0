// See ancestors.hpp.
#include "sched/ancestors.hpp"

#include "base/code_place.hpp"
#include "sched/frames.hpp"
#include "sched/lazy_spawns.hpp"

namespace godwit::sched {

std::uint64_t ancestors::needed_end(const spawn_slot& parent, std::uint64_t top,
                                    std::uint64_t low) const noexcept {
  if (!here_.opts.check_frames) return top;
  if (deque_.is_sentinel(&parent)) return parent.bytes_end;  // decided where it was spawned
  if (here_.shape.lazy_spawns)
    return lazy_refers_to(parent, low, top, here_.region_high) ? here_.region_high : top;
  // iso: the ancestors' stacks lie anywhere, and its own is not among what existed then.
  return refers_to(parent, here_.shape.own_stacks ? here_.region_low : top, here_.region_high,
                   here_.region_low, here_.region_high, !here_.shape.own_stacks)
             ? here_.region_high
             : top;
}

void ancestors::note_closure(spawn_slot& slot, const void* closure, std::size_t bytes) const noexcept {
  const auto low = reinterpret_cast<std::uintptr_t>(closure);
  const bool names_none = all_words(low, low + bytes / sizeof low * sizeof low, [&](std::uintptr_t word) {
    return word - here_.region_low >= here_.region_high - here_.region_low || word - low < bytes;
  });
  slot.closure[0] = names_none ? 0 : here_.region_low;
  slot.closure[1] = 0;
}

void ancestors::came(std::uint64_t top, std::uint64_t bytes_end) noexcept {
  spawn_slot& bottom = deque_.sentinel();
  bottom.sp = top;
  GODWIT_ASSERT(bytes_end >= top, "ancestors' frames lie above a thread's");
  bottom.bytes_end = bytes_end;
  if (bytes_end > top) bottom.frame_hash = frame_hash(top, bytes_end);
}

void ancestors::check_came(const spawn_slot& bottom) const noexcept {
  GODWIT_ASSERT(bottom.bytes_end <= here_.region_high, "ancestors' frames end with the region");
  if (bottom.bytes_end <= bottom.sp || bottom.frame_hash == frame_hash(bottom.sp, bottom.bytes_end)) return;
  std::uintptr_t at = 0;
  here_.net.remote_get(transport::ref_worker(bottom.record), &at,
                       &here_.home<record>(bottom.record)->spawned_at, sizeof at);
  lost_write(at);
}

void ancestors::lost_write(std::uintptr_t spawned_at) const noexcept {
  base::fatal(
      "worker %u: a thread that was spawned in %s wrote into a stack frame of the thread that spawned it, or "
      "of one further up, "
      "which had moved to another worker: the write is lost. Capture by value and give back results through "
      "join",
      transport::index(here_.me), base::code_place(spawned_at).c_str());
}

void ancestors::refuse_reference(std::uintptr_t spawned_at) const noexcept {
  base::fatal(
      "worker %u: policy %s: a thread that was spawned in %s had to move to another worker, and its closure "
      "refers to a local "
      "variable of the thread that spawned it, or of one further up, which stay behind: capture by value",
      transport::index(here_.me), name_of(here_.opts.policy), base::code_place(spawned_at).c_str());
}

}  // namespace godwit::sched
