// Threads of one worker that wait and are looked at in turn: the stalling join (003, III-A). Private to the
// worker.
#pragma once

#include "base/check.hpp"
#include "sched/record.hpp"

namespace godwit::sched {

/// FIFO of images in the own heap, linked by image::next.
class wait_queue {
 public:
  bool empty() const noexcept { return head_ == nullptr; }

  void push(image* im) noexcept {
    im->next = 0;
    if (head_ == nullptr)
      head_ = im;
    else
      tail_->next = reinterpret_cast<std::uintptr_t>(im);
    tail_ = im;
    ++size_;
  }
  image* pop() noexcept {
    image* im = head_;
    if (im == nullptr) return nullptr;
    head_ = reinterpret_cast<image*>(im->next);
    GODWIT_ASSERT(size_ != 0 && (size_ == 1) == (head_ == nullptr), "the queue is as long as it says");
    --size_;
    return im;
  }
  const image* front() const noexcept { return head_; }
  /// Is f(image) true for one of them?
  template <class F>
  bool any(F&& f) const noexcept {
    for (const image* im = head_; im != nullptr; im = reinterpret_cast<const image*>(im->next))
      if (f(*im)) return true;
    return false;
  }

 private:
  image* head_ = nullptr;
  image* tail_ = nullptr;
  std::uint32_t size_ = 0;
};

}  // namespace godwit::sched
