// Members of continuation_worker: policy lazy, where spawns get their slots when somebody asks, and children
// come back by way of the runtime. docs/protocols/lazy.md. Included by continuation.cpp alone, which
// instantiates them.
#pragma once

#include "sched/continuation.hpp"

#include <godwit/detail/lazy_spawn.hpp>

namespace godwit::sched {

template <class P>
void continuation_worker<P>::find_spawns() noexcept {
  if constexpr (lazy) {
    const unexposed inside;
    lazy_spawns_.push_here();
  }
}

template <class P>
void continuation_worker<P>::find_spawns_of(const context::frame_registers& interrupted) noexcept {
  if constexpr (lazy) {
    // Exceptions are whose frames they are in: nobody can say that here (EX1).
    if (!here_.exceptions.state->empty()) return;
    const unexposed inside;
    static_cast<void>(lazy_spawns_.push(interrupted));
  }
}

/// What others look at where a child begins is looked at here, where one ends that has a slot.
template <class P>
void continuation_worker<P>::look_at_return() noexcept {
  if (detail::hot().poll.load(std::memory_order_relaxed) != 1 || !here_.exceptions.state->empty() ||
      here_.forced != choice::force_steal::none)
    return;
  static_cast<void>(look_at_spawn(detail::host_heap(), true));
}

/// Take the running child's entry off the deque. 0: the parent is still here; else the record to complete.
template <class P>
ref continuation_worker<P>::pop_lazy(spawn_slot*& mine) noexcept {
  look_at_return();
  detail::hot().in_runtime = 1;  // LZ2
  std::atomic_signal_fence(std::memory_order_seq_cst);
  mine = detail::hot().bottom - 1;
  detail::hot().bottom = mine;  // DQ1
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return mine < detail::hot().split ? pop_public(mine) : 0;  // LZ1: what find has published
}

template <class P>
lazy_way continuation_worker<P>::lazy_child_returned(std::uintptr_t value, std::uintptr_t give) noexcept {
  if constexpr (!lazy) return worker::lazy_child_returned(value, give);
  const auto give_to = reinterpret_cast<void (*)(ref, std::uintptr_t) noexcept>(give);
  spawn_slot* mine = nullptr;
  const ref r = pop_lazy(mine);
  if (r == 0) {
    const std::uintptr_t back = lazy_site_of(*mine)->return_address;
    if (must_stop() && (lazy_traits_of(*mine) & detail::lazy_begins) == 0) [[unlikely]] {  // CA4; LZ3; LZ5
      if (give_to != nullptr) give_to(0, value);
      return {back, detail::not_begun};
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    detail::hot().in_runtime = 0;
    return {back, 0};
  }
  if (give_to != nullptr)
    give_to(r, value);
  else
    records_.publish(r, detail::outcome::value, &value, sizeof value);
  complete(r);
  __builtin_unreachable();
}

template <class P>
lazy_way continuation_worker<P>::lazy_child_failed(ref error) noexcept {
  if constexpr (!lazy) return worker::lazy_child_failed(error);
  spawn_slot* mine = nullptr;
  const ref r = pop_lazy(mine);
  if (r == 0) return {lazy_site_of(*mine)->return_address, error};  // LZ3
  records_.publish_error(r, error);
  complete(r);
  __builtin_unreachable();
}

template <class P>
void continuation_worker<P>::lazy_spawn_point() noexcept {
  if constexpr (lazy) {
    find_spawns();
    static_cast<void>(look_at_spawn(detail::host_heap(), false));
  }
}

}  // namespace godwit::sched
