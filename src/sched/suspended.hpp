// The suspended threads of a host, as somebody sees them who only looks: for who decides that nothing can go
// on, and for what is said then (of all hosts). What others do meanwhile may tear an image.
#pragma once

#include "sched/site.hpp"

namespace godwit::sched {

/// ID5: a look at the threads that wait, where they look for themselves, while all workers of the host are
/// idle.
class look_at_waiting {
 public:
  /// @p idle: node_words::idle, when they were.
  look_at_waiting(const node_words& node, std::uint64_t idle) noexcept : node_(node), idle_(idle) {}
  /// What has been read may be torn, and the record not be there any more: a worker has left idleness.
  bool is_void() const noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);
    return node_.idle.load(std::memory_order_seq_cst) != idle_;
  }
  /// Can @p im go on? Or the look is void. @p is_complete: of a record, which is there.
  template <class F>
  bool goes_on(const image& im, F&& is_complete) const noexcept {
    const ref r = im.waiting_for;
    const bool parked = im.parked_at != nullptr;
    return is_void() || (!parked && (r == 0 || is_complete(r)));
  }

 private:
  const node_words& node_;
  std::uint64_t idle_;
};

/// f(image, number of its worker) for those in the heaps of @p memory's host, until it gives back true.
template <class F>
bool any_image_in_heaps(const transport::shm::segment& memory, const public_words* words, F&& f) noexcept {
  const transport::shm::near_range& near = memory.near();
  const transport::shm::layout& l = memory.where();
  for (std::uint32_t v = near.first; v < near.first + near.count; ++v) {
    // The lists may change under our eyes, and something else lie where an object was.
    std::uint64_t most = l.heap_bytes / heap::grain;
    for (std::uint64_t i = memory.at(worker_no{v}, words)->live.load(std::memory_order_acquire);
         i - l.heap < l.heap_bytes && i % heap::grain == 0 && most != 0; --most) {
      const auto* o = memory.at<object>(transport::make_ref(worker_no{v}, i));
      i = o->next;
      std::atomic_thread_fence(std::memory_order_acquire);
      if (o->kind != object_kind::image || o->freed.load(std::memory_order_acquire) != 0) continue;
      if (f(*static_cast<const image*>(o), v)) return true;
    }
  }
  return false;
}

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
  return any_image_in_heaps(*here.memory, here.words, f);
}

/// All workers are idle and the root thread waits: who waits for what. With several hosts a round trip for
/// each object of the others.
void describe_deadlock(const site& here, char* text, std::size_t bytes) noexcept;

}  // namespace godwit::sched
