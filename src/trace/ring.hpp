// The events of one worker, in memory that outlives it: one writer, read by the supervisor after the worker's end.
//
//   written   W owner (release), R supervisor
//   events    slot (written % capacity): W owner. When the ring is full the oldest are overwritten; the reader counts
//             max(0, written - capacity) as dropped
// Off (no memory given): emit() is one test of a private pointer. Test: tests/trace/ring_test.cpp.
#pragma once

#include "trace/events.hpp"

#include <atomic>
#include <cstddef>

namespace godwit::trace {

struct ring_memory {
  std::atomic<std::uint64_t> written;  ///< events since the start
  std::uint64_t capacity;              ///< events; W supervisor before the worker exists
  alignas(64) event events[1];

  static constexpr std::size_t bytes_for(std::uint64_t capacity) noexcept {
    return offsetof(ring_memory, events) + static_cast<std::size_t>(capacity) * sizeof(event);
  }
};

/// The owner's handle. Local, no locks, no system calls.
class ring {
 public:
  void init(ring_memory* memory) noexcept {
    memory_ = memory;
    next_ = memory != nullptr ? memory->written.load(std::memory_order_relaxed) : 0;
  }
  bool on() const noexcept { return memory_ != nullptr; }

  /// Callers test on() before they read clocks for it.
  void emit(const event& e) noexcept {
    memory_->events[next_ % memory_->capacity] = e;
    ++next_;
    memory_->written.store(next_, std::memory_order_release);
  }

 private:
  ring_memory* memory_ = nullptr;
  std::uint64_t next_ = 0;
};

}  // namespace godwit::trace
