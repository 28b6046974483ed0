// Iso-address stacks: every thread has a stack at an address of its own, the same in all workers (Uni-address
// threads, 4).
//
// The stack region of all workers is divided: part i belongs to worker i, which hands out its stacks. Whoever
// ends a thread gives the stack back: its owner into a private list, others by a mark at the owner's (as in
// local collection).
//   part:  | marks, a word per stack | stack 0 | stack 1 | ... | one large stack (root thread of worker 0) |
// Only virtual addresses are spent on stacks that are not touched -- but P workers need P parts in each one's
// memory.
#pragma once

#include "base/check.hpp"
#include "base/own_memory.hpp"
#include "transport/transport.hpp"

#include <cstdint>

namespace godwit::sched {

class stack_range {
 public:
  void init(std::uintptr_t region_low, std::uint64_t region_bytes, std::uint32_t workers, std::uint32_t me,
            std::uint64_t stack_bytes) noexcept {
    low_ = region_low;
    part_ = region_bytes / workers / stack_bytes * stack_bytes;
    me_ = me;
    stack_ = stack_bytes;
    const std::uint64_t all = part_ / stack_bytes;
    const std::uint64_t for_marks = (all * sizeof(transport::word) + stack_bytes - 1) / stack_bytes;
    const std::uint64_t for_root = all / 8 + 1;
    count_ = all > for_marks + for_root ? static_cast<std::uint32_t>(all - for_marks - for_root) : 0;
    first_ = for_marks * stack_bytes;
    free_.reserve(1024);
  }

  /// End of the stack that @p sp lies in.
  std::uintptr_t top_of(std::uintptr_t sp) const noexcept {
    const std::uintptr_t begin = low_ + (sp - low_) / part_ * part_;
    const std::uintptr_t large = begin + first_ + count_ * stack_;
    if (sp >= large) return begin + part_;
    return low_ + ((sp - low_) / stack_ + 1) * stack_;
  }
  std::uintptr_t root_top() const noexcept { return low_ + part_ * (me_ + 1); }

  /// Top of an unused stack, 0: there is none.
  std::uintptr_t take() noexcept {
    if (free_.empty() && (used_ == count_ || used_ >= next_sweep_)) sweep();
    std::uint32_t i;
    if (!free_.empty()) {
      i = free_.back();
      free_.pop_back();
    } else if (used_ < count_) {
      i = used_++;
    } else {
      return 0;
    }
    return low_ + part_ * me_ + first_ + (std::uint64_t{i} + 1) * stack_;
  }
  /// The owner of the stack that ends at @p top, and the word (common address) that others mark to give it
  /// back.
  std::uint32_t owner(std::uintptr_t top) const noexcept {
    return static_cast<std::uint32_t>((top - 1 - low_) / part_);
  }
  transport::word* mark(std::uintptr_t top) const noexcept {
    return reinterpret_cast<transport::word*>(low_ + part_ * owner(top)) + number(top);
  }
  /// Where the own marks are. (Simulated, the region is one for all, and each worker's marks are in its
  /// segment.) Before the first take.
  void keep_marks_at(transport::word* own) noexcept { marks_ = own; }
  transport::word* own_marks() const noexcept {
    return reinterpret_cast<transport::word*>(low_ + part_ * me_);
  }
  bool is_large(std::uintptr_t top) const noexcept { return (top - low_) % part_ == 0; }
  std::uintptr_t low_of(std::uintptr_t top) const noexcept {
    return is_large(top) ? top - part_ + first_ + count_ * stack_ : top - stack_;
  }
  void give_back(std::uintptr_t top) noexcept {
    GODWIT_ASSERT(owner(top) == me_ && number(top) < used_, "a stack goes back to its owner");
    GODWIT_ASSERT(free_.size() < used_, "no more stacks are free than were handed out");
    free_.push_back(number(top));
  }

 private:
  std::uint32_t number(std::uintptr_t top) const noexcept {
    return static_cast<std::uint32_t>(((top - 1 - low_) % part_ - first_) / stack_);
  }
  void sweep() noexcept {
    for (std::uint32_t i = 0; i < used_; ++i)
      if (marks_[i].load(std::memory_order_acquire) != 0) {  // JH1: whoever set it has read the stack before
        marks_[i].store(0, std::memory_order_relaxed);
        free_.push_back(i);
      }
    next_sweep_ = used_ + 64;
  }

  std::uintptr_t low_ = 0;
  transport::word* marks_ = nullptr;
  std::uint64_t part_ = 0, stack_ = 0, first_ = 0;
  std::uint32_t me_ = 0, count_ = 0, used_ = 0, next_sweep_ = 64;
  base::own_vector<std::uint32_t> free_;
};

}  // namespace godwit::sched
