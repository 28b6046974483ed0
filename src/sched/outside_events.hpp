// What threads wait for outside of the run -- descriptors, timers -- as a worker sees it: whichever worker
// has time collects for all, and delivers as one that counts as running. docs/protocols/events.md;
// models/events.pml. The source itself: src/io. Test:
// tests/sched/parts_test.cpp.
#pragma once

#include "sched/site.hpp"

namespace godwit::sched {

class outside_events {
 public:
  explicit outside_events(const site& here) noexcept : here_(here) {}

  /// Collected, not delivered.
  bool pending() const noexcept { return pending_; }
  bool somebody_waits() const noexcept { return here_.node->outside.load(std::memory_order_relaxed) != 0; }
  /// Look, and wait for so long. True if there are some to deliver.
  bool collect(std::int64_t wait_ns) noexcept {
    if (pending_) return true;
    if (here_.hooks.events == nullptr || !somebody_waits()) return false;
    turns_ = 0;
    return pending_ = here_.hooks.events->collect(wait_ns);
  }
  /// By a worker that counts as running. ID1, ID2
  void deliver() noexcept {
    pending_ = false;
    here_.hooks.events->deliver();
  }
  /// A busy worker looks every so many turns.
  bool is_due() noexcept { return ++turns_ >= turns_between_looks; }
  void count_turns(std::uint32_t n) noexcept { turns_ += n; }

 private:
  static constexpr std::uint32_t turns_between_looks = 64;
  const site& here_;
  bool pending_ = false;
  std::uint32_t turns_ = 0;
};

}  // namespace godwit::sched
