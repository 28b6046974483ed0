// The stack on which a worker decides what to do next. It starts afresh each time: nothing on it outlives a
// decision. A guard page lies below, unless it is part of other memory.
#pragma once

#include "context/context.hpp"
#include "stack/stack.hpp"

namespace godwit::sched {

class scheduler_stack {
 public:
  scheduler_stack() = default;
  scheduler_stack(const scheduler_stack&) = delete;
  scheduler_stack& operator=(const scheduler_stack&) = delete;
  ~scheduler_stack() {
    if (is_mapped_) stack::unmap_private(low_, stack::scheduler_stack_bytes);
  }
  void init() noexcept {
    low_ = stack::map_private(stack::scheduler_stack_bytes);
    is_mapped_ = true;
  }
  /// The bytes below @p end are its memory.
  void init_below(std::byte* end) noexcept { low_ = end - stack::scheduler_stack_bytes; }

  /// As long as a thread runs, nobody is on it.
  std::byte* end() const noexcept { return low_ + stack::scheduler_stack_bytes; }
  std::uintptr_t low() const noexcept { return reinterpret_cast<std::uintptr_t>(low_); }
  stack::range bytes() const noexcept { return {low(), low() + stack::scheduler_stack_bytes}; }

  /// Sanitizers: the caller goes there next, and the frames in [left_low, left_high) are gone.
  void announce(std::uintptr_t left_low = 0, std::uintptr_t left_high = 0) const noexcept {
    if (context::sanitized()) [[unlikely]] {
      if (left_low != 0) context::sanitizer_forget(left_low / 64 * 64, left_high);
      context::sanitizer_forget(low(), reinterpret_cast<std::uintptr_t>(end()));
      context::sanitizer_on_stack(low_, stack::scheduler_stack_bytes, context::stack_of::os_thread);
    }
  }

 private:
  std::byte* low_ = nullptr;
  bool is_mapped_ = false;
};

}  // namespace godwit::sched
