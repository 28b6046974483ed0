// One suspension that several may want to end: an event, a deadline, a close. docs/protocols/events.md,
// "Waiting"; models/park.pml.
//
// The thread makes the wait known (to descriptors, to a timer) before it suspends; whoever is first ends it.
// Lives in the frame of the waiting thread, which takes it out of all places before it goes on; so end() may
// be called only while that cannot happen: with the lock of such a place held, or from the timer that the
// thread will stop.
#pragma once

#include "seams/park.hpp"

#include <atomic>
#include <cstdint>

namespace godwit::events {

class suspension;

/// A layer above that may want to disturb threads that wait for descriptors (the drop-in for pthreads:
/// cancellation, signals).
struct watcher {
  /// The calling thread is about to be suspended at @p s, which may be ended from now on. False: there is a
  /// reason not to wait already.
  bool (*begins)(suspension& s) noexcept;
  /// It goes on; from now on s must be left alone. False: because it was disturbed.
  bool (*ends)() noexcept;
};
inline const watcher* watcher_ = nullptr;  ///< W before a run

class suspension {
 public:
  /// Suspend the caller until end(); not at all if that was called already. False: disturbed by the watcher,
  /// there may be no other reason to go on. May migrate.
  bool suspend(const char* what, const detail::place& where = {}) noexcept {
    if (state_.load(std::memory_order_acquire) == ended) return true;
    if (watcher_ == nullptr) [[likely]] {
      detail::park(publish, this, detail::wakes::outside, what, where);
      return true;
    }
    if (!watcher_->begins(*this)) return false;
    if (state_.load(std::memory_order_acquire) != ended)
      detail::park(publish, this, detail::wakes::outside, what, where);
    return watcher_->ends();
  }
  /// The thread to unpark (wakes::outside), if it is the caller's task. The thread stays suspended until
  /// then, so no lock is needed any more.
  [[nodiscard]] detail::waiter* end() noexcept {
    const std::uintptr_t before = state_.exchange(ended, std::memory_order_acq_rel);  // SU1 (PK2)
    return before > ended ? reinterpret_cast<detail::waiter*>(before) : nullptr;
  }
  /// For another suspension, while nobody knows it.
  void reset() noexcept { state_.store(preparing, std::memory_order_relaxed); }

 private:
  static constexpr std::uintptr_t preparing = 0, ended = 1;  // else the suspended thread
  static bool publish(void* arg, detail::waiter* self) noexcept {
    std::uintptr_t expected = preparing;
    // SU1 (PK2)
    return static_cast<suspension*>(arg)->state_.compare_exchange_strong(
        expected, reinterpret_cast<std::uintptr_t>(self), std::memory_order_acq_rel,
        std::memory_order_acquire);
  }
  std::atomic<std::uintptr_t> state_{preparing};  ///< W the thread and its worker, then who ends it
};

inline void unpark(detail::waiter* w) noexcept {
  if (w != nullptr) detail::unpark(w, detail::wakes::outside);
}

}  // namespace godwit::events
