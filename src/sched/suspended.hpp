// The suspended threads of a host, as somebody sees them who only looks: for who decides that nothing can go
// on, and for what is said then. What others do meanwhile may tear an image.
#pragma once

#include "sched/site.hpp"

namespace godwit::sched {

/// f(image, number of its worker) for all, until it gives back true.
template <class F>
bool any_suspended(const site& here, F&& f) noexcept {
  if (here.shape.stacks != nullptr) {
    const std::uint64_t made = here.shape.stacks->made();
    for (std::uint64_t i = 0; i <= made; ++i) {
      const std::uintptr_t end =
          i < made ? here.shape.stacks->end_of_number(i) : here.shape.stacks->root_end();
      const auto* block = static_cast<detail::thread_block*>(here.shape.stacks->block_of(end - 1));
      if (block->suspended != nullptr &&
          f(*static_cast<const image*>(block->suspended),
            transport::index(transport::ref_worker(here.memory->ref_of_any(block->suspended)))))
        return true;
    }
    return false;
  }
  for (std::uint32_t v = here.near.first; v < here.near.first + here.near.count; ++v) {
    const std::byte* base = here.memory->at(worker_no{v}, here.memory->common());
    for (std::uint64_t i = here.words_of(worker_no{v})->live.load(std::memory_order_acquire); i != 0;) {
      const auto* o = reinterpret_cast<const object*>(base + i);
      i = o->next;
      // The lists may change under our eyes.
      std::atomic_thread_fence(std::memory_order_acquire);
      if (o->kind != object_kind::image || o->freed.load(std::memory_order_acquire) != 0) continue;
      if (f(*static_cast<const image*>(o), v)) return true;
    }
  }
  return false;
}

/// All workers are idle and the root thread waits: who waits for what.
void describe_deadlock(const site& here, char* text, std::size_t bytes) noexcept;

}  // namespace godwit::sched
