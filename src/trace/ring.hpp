// The events of one worker, in memory that outlives it: one writer, read by the supervisor after the worker's
// end.
//
//   written   W owner (release), R supervisor
//   events    slot (written % capacity): W owner. When the ring is full the oldest are overwritten. The slot
//             that is next may be half written when the owner was killed, so a full ring has capacity - 1
//             readable events; the reader counts the others as dropped
//   closed    W supervisor of workers that go on, R owner: what comes from then on is not written. One event
//             at most is under way then, in the slot that is next
// Not reentrant: emit() only where the expose signal keeps its hands off.
// Off (no memory given): emit() is one test of a private pointer. Test: tests/trace/ring_test.cpp.
#pragma once

#include "base/check.hpp"
#include "trace/events.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace godwit::trace {

struct ring_memory {
  std::atomic<std::uint64_t> written;  ///< events since the start. W owner, R supervisor
  std::atomic<bool> closed;            ///< no more events. W supervisor, R owner
  std::uint64_t capacity;              ///< events; W supervisor before the worker exists
  alignas(64) event events[1];

  static constexpr std::size_t bytes_for(std::uint64_t capacity) noexcept {
    return offsetof(ring_memory, events) + static_cast<std::size_t>(capacity) * sizeof(event);
  }
};

/// What a reader may look at: events [first, written), event i in slot i % capacity. first is also the number
/// dropped.
struct ring_range {
  std::uint64_t first;
  std::uint64_t written;
};
inline ring_range readable(const ring_memory& m) noexcept {
  const std::uint64_t written = m.written.load(std::memory_order_acquire);
  return {written >= m.capacity ? written - m.capacity + 1 : 0, written};
}

/// Calls each(slot, count) for the events of @p r in their order: pieces of @p most events at most that lie
/// side by side in a ring of @p capacity.
template <class Each>
void for_each_piece(const ring_range& r, std::uint64_t capacity, std::uint64_t most, Each&& each) {
  for (std::uint64_t at = r.first; at < r.written;) {
    const std::uint64_t slot = at % capacity;
    const std::uint64_t n = std::min({r.written - at, capacity - slot, most});
    each(slot, static_cast<std::size_t>(n));
    at += n;
  }
}

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
    GODWIT_ASSERT(memory_ != nullptr && memory_->capacity != 0, "events are written where there is room");
    GODWIT_ASSERT(memory_->written.load(std::memory_order_relaxed) == next_, "a ring has one writer");
    if (memory_->closed.load(std::memory_order_relaxed)) [[unlikely]]
      return;
    memory_->events[next_ % memory_->capacity] = e;
    ++next_;
    memory_->written.store(next_, std::memory_order_release);
  }

 private:
  ring_memory* memory_ = nullptr;
  std::uint64_t next_ = 0;
};

}  // namespace godwit::trace
