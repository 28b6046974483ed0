// Members of continuation_worker: the stacks of threads that have one each (policy iso, and wherever workers
// are threads), and what the address sanitizer must hear of all stacks. Included by continuation.cpp alone,
// which instantiates them. See stack_range.hpp, stack/pool.hpp.
#pragma once

#include "sched/continuation.hpp"

#include <algorithm>
#include <utility>

namespace godwit::sched {

using transport::index;

template <class P>
void continuation_worker<P>::check_own_stack(std::uintptr_t sp, std::uintptr_t parents) const noexcept {
  if constexpr (iso) {
    if (own_stacks_.top_of(sp) == own_stacks_.top_of(parents))
      base::fatal(
          "worker %u: this run's policy is iso, but the program spawned with godwit::spawn or invoke, which "
          "do not "
          "give the thread a stack: take the policy of the run (godwit::with_policy), or do not set "
          "--godwit-policy (GODWIT_POLICY)",
          index(here_.me));
  }
}

template <class P>
void continuation_worker<P>::no_more_stacks() const noexcept {
  base::fatal(
      "worker %u: policy iso: its %zu MiB of addresses for stacks of %lu KiB are used up: raise "
      "--godwit-stack-bytes (GODWIT_STACK_BYTES)",
      index(here_.me), static_cast<std::size_t>((here_.region_high - here_.region_low) / here_.workers) >> 20,
      thread_stack_bytes >> 10);
}

template <class P>
void* continuation_worker<P>::new_stack(spawn_slot& slot, const void* closure, std::size_t bytes) noexcept {
  if constexpr (stacks_stay) {
    return nullptr;  // with stacks that stay fork_call has changed the stack already
  } else if constexpr (!iso) {
    return worker::new_stack(slot, closure, bytes);
  } else {
    ancestors_.note_closure(slot, closure, bytes);
    const std::uintptr_t top = own_stacks_.take();
    if (top == 0) no_more_stacks();
    const auto sp = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    const std::uintptr_t end = own_stacks_.top_of(sp);
    if (!own_stacks_.is_large(end) && sp - (end - thread_stack_bytes) < 4096)
      base::fatal(
          "worker %u: policy iso: a thread used up its stack of %lu KiB, which is fixed: move large local "
          "variables to the heap, or use policy greedy",
          index(here_.me), thread_stack_bytes >> 10);
    announce_stack(top - 1);  // the caller goes there next
    return reinterpret_cast<void*>(top);
  }
}

template <class P>
void continuation_worker<P>::free_stack(void* at_top) noexcept {
  if constexpr (!iso) {
    worker::free_stack(at_top);
  } else {
    const auto top = reinterpret_cast<std::uintptr_t>(at_top);
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (here - here_.region_low < here_.region_high - here_.region_low)
      announce_stack(here);  // we came back from there
    const worker_no owner{own_stacks_.owner(top)};
    GODWIT_ASSERT(index(owner) < here_.workers, "a stack belongs to a worker of the run");
    GODWIT_ASSERT(!own_stacks_.is_large(top), "the root thread's stack is not given back");
    if (owner == here_.me)
      own_stacks_.give_back(top);
    else
      here_.net.remote_store(owner, own_stacks_.mark(top), 1, std::memory_order_release);  // JH1
  }
}

/// The thread that ended at @p sp needs its stack no more; we are on another one.
template <class P>
bool continuation_worker<P>::end_own_stack(std::uintptr_t sp) noexcept {
  if constexpr (stacks_stay) {
    const std::uintptr_t end = here_.shape.stacks->end_of(sp);
    if (context::sanitized()) [[unlikely]]
      forget_frames(sp, end);
    if (here_.shape.stacks->is_root(sp)) return false;
    // only those have one, and they end here
    GODWIT_ASSERT(block_at(end)->suspended == nullptr, "a thread that ends is not suspended");
    const bool began_later = std::exchange(block_at(end)->number, 0) != 0;
    if (began_later) block_at(end)->high = 0;
    keep_stack(reinterpret_cast<void*>(here_.shape.stacks->top_before(end)));
    return began_later;
  } else {
    const std::uintptr_t top = own_stacks_.top_of(sp);
    if (!own_stacks_.is_large(top)) free_stack(reinterpret_cast<void*>(top));
    return false;
  }
}

/// In place: into the own list, and with too many that ended here, not begun here, to the others.
template <class P>
[[gnu::always_inline]] inline void continuation_worker<P>::keep_stack(void* top) noexcept {
  detail::hot_words& hot = detail::hot();
  [[maybe_unused]] const auto own = reinterpret_cast<std::uintptr_t>(top);
  GODWIT_ASSERT(here_.shape.stacks->owns(own) && here_.shape.stacks->top_of(own) == own,
                "a free stack is named by its top");
  *static_cast<void**>(top) = hot.free_stacks;
  hot.free_stacks = top;
  if (++kept_stacks_ < most_kept_stacks_) return;
  const unsigned batch = here_.shape.stacks->batch_size();
  // As many as a batch; the list is longer than that. The oldest would be better: but the list has one end.
  void* list = hot.free_stacks;
  void* last = list;
  unsigned n = 1;
  for (; n < batch && *static_cast<void**>(last) != nullptr; ++n) last = *static_cast<void**>(last);
  void* rest = *static_cast<void**>(last);
  if (rest == nullptr) return;
  *static_cast<void**>(last) = nullptr;
  hot.free_stacks = rest;
  kept_stacks_ -= n;
  here_.shape.stacks->give(list, n);
}

/// The last stack of the own list is about to be taken: the list must not get empty.
template <class P>
void continuation_worker<P>::more_stacks() noexcept {
  if constexpr (stacks_stay) {
    const unexposed inside;
    void* list = here_.shape.stacks->take();
    if (list == nullptr)
      base::fatal(
          "worker %u: %llu threads have stacks of %llu KiB, and the addresses for more are used up: lower "
          "--godwit-thread-stack-bytes (GODWIT_THREAD_STACK_BYTES), raise the limit on address space (ulimit "
          "-v) if there is "
          "one, or have fewer threads wait at a time",
          index(here_.me), static_cast<unsigned long long>(here_.shape.stacks->made()),
          static_cast<unsigned long long>(here_.shape.stacks->stack_bytes() >> 10));
    kept_stacks_ = 0;
    void* last = list;
    for (void* s = list; s != nullptr; s = *static_cast<void**>(s)) {
      last = s;
      // Where stacks of an earlier run lay, or something else.
      const std::uintptr_t end = here_.shape.stacks->end_of(reinterpret_cast<std::uintptr_t>(s));
      context::sanitizer_forget(
          std::max(here_.shape.stacks->low_of(end - 1), end - (std::uintptr_t{1} << 20)), end);
    }
    *static_cast<void**>(last) = detail::hot().free_stacks;
    detail::hot().free_stacks = list;
  }
}

template <class P>
const char* continuation_worker<P>::overflow_of_thread(std::uintptr_t address) const noexcept {
  if constexpr (stacks_stay) {
    if (here_.shape.stacks->in_guard(address)) return "threads";
  }
  return nullptr;
}

template <class P>
stack::range continuation_worker<P>::shared_stack_of(std::uintptr_t sp) const noexcept {
  const stack::range region = worker::shared_stack_of(sp);
  if constexpr (stacks_stay || !iso) return region;
  if (region.high == 0) return {};
  const std::uintptr_t top = own_stacks_.top_of(sp);
  return {own_stacks_.low_of(top), top};
}

template <class P>
void continuation_worker<P>::announce_stack_now(std::uintptr_t sp) noexcept {
  if constexpr (stacks_stay) {
    forget_frames(sp, sp);
    announce_thread(sp);
  } else if constexpr (!iso) {
    worker::announce_stack_now(sp);
  } else {
    const std::uintptr_t top = own_stacks_.top_of(sp);
    const std::uintptr_t low = own_stacks_.low_of(top);
    // What lies below are frames that were left without returning: the thunk of a child that went elsewhere.
    context::sanitizer_forget(std::max(low, sp - thread_stack_bytes) / 64 * 64, sp);
    context::sanitizer_on_stack(reinterpret_cast<void*>(low), top - low);
  }
}

template <class P>
void continuation_worker<P>::announce_thread(std::uintptr_t sp) noexcept {
  if constexpr (stacks_stay) {
    const std::uintptr_t low = here_.shape.stacks->low_of(sp);
    context::sanitizer_on_stack(reinterpret_cast<void*>(low), here_.shape.stacks->end_of(sp) - low);
  } else {
    announce_stack_now(sp);
  }
}

/// Address sanitizer, where stacks stay: the frames between @p sp and @p high are gone, and so are those
/// below, which were left without returning: the runtime's own, which go on elsewhere.
template <class P>
void continuation_worker<P>::forget_frames(std::uintptr_t sp, std::uintptr_t high) noexcept {
  constexpr std::uintptr_t below = 64 << 10;
  const std::uintptr_t low = here_.shape.stacks->low_of(sp);
  context::sanitizer_forget((sp - low > below ? sp - below : low) / 64 * 64, high / 64 * 64);
}

}  // namespace godwit::sched
