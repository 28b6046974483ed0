// Threads by the record that names them: their numbers, what they wait for, who waits for them.
//
// A record serves one thread after another: over() ends a name, the next use of the record is a new thread.
// Used by walker.hpp only.
#pragma once

#include "analysis.hpp"
#include "waits.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace godwit::report {

class thread_table {
 public:
  struct wait {
    bool valid = false, ready = false;
    wait_for kind = wait_for::nothing;
    std::uint64_t since = 0, depth = 0;  ///< when it left, its chain then
    std::uint32_t node = nothing, place = nothing;
    std::uint32_t name = nothing;                 ///< of what it does when it goes on
    std::uint64_t ready_at = 0, ready_depth = 0;  ///< when it could go on, the chain that made it so
    std::uint32_t ready_node = nothing, woken_by = nothing;
  };

  /// Number of the thread that the record names now.
  std::uint32_t number_of(std::uint64_t record) {
    if (record == 0) return nothing;
    return live(entries_[record]);
  }
  void over(std::uint64_t record) {
    entries_[record].thread = nothing;
    entries_[record].waiter = {};
  }
  std::uint32_t count() const noexcept { return next_; }

  wait* waiting(std::uint64_t thread) {
    const auto found = entries_.find(thread);
    return found != entries_.end() && found->second.waiter.valid ? &found->second.waiter : nullptr;
  }

  /// @p thread waits for the record @p awaited (0: none). True if it can go on at once.
  bool suspend(std::uint64_t thread, std::uint64_t awaited, wait waiter) {
    // Both ends of a join write their event around the same moment: the child's may carry the earlier time.
    constexpr std::uint64_t slack_ns = 100'000;
    bool ready = waiter.kind == wait_for::nothing;
    if (awaited != 0) {
      entry& target = entries_[awaited];
      if (target.thread == nothing && target.completed && target.completed_at + slack_ns >= waiter.since) {
        ready = true;
        waiter.ready_depth = target.depth;
      } else {
        target.waiters.push_back(thread);
      }
    }
    waiter.ready = ready;
    waiter.ready_at = waiter.since;
    entry& own = entries_[thread];
    live(own);
    own.waiter = waiter;
    return ready;
  }

  /// @p record has its result: calls @p each for every thread that could go on now.
  template <class Each>
  void complete(std::uint64_t record, std::uint64_t at, std::uint64_t depth, std::uint32_t node, Each each) {
    entry& done = entries_[record];
    done.completed = done.waiters.empty();  // else it has served, and a later wait for it is for its next use
    done.completed_at = at;
    done.depth = depth;
    // No entry is added below, so `done` stays where it is.
    for (const std::uint64_t thread : done.waiters) {
      wait& waiter = entries_.find(thread)->second.waiter;
      if (!waiter.valid || waiter.ready) continue;
      waiter.ready = true;
      waiter.ready_at = at;
      waiter.ready_depth = depth;
      waiter.ready_node = node;
      each(waiter);
    }
    done.waiters.clear();
  }
  /// A thread that waits for no record can go on. Null: it does not wait.
  wait* wake(std::uint64_t thread, std::uint64_t at) {
    wait* waiter = waiting(thread);
    if (waiter == nullptr || waiter->ready) return nullptr;
    waiter->ready = true;
    waiter->ready_at = at;
    return waiter;
  }
  /// Those that wait to the end.
  template <class Each>
  void each_waiting(Each each) const {
    for (const auto& [record, e] : entries_)
      if (e.waiter.valid) each(e.waiter);
  }
  void forget_waiter(std::uint64_t record, std::uint64_t thread) {
    if (const auto found = entries_.find(record); found != entries_.end())
      std::erase(found->second.waiters, thread);
  }

 private:
  struct entry {
    std::uint32_t thread = nothing;
    bool completed = false;
    std::uint64_t completed_at = 0, depth = 0;
    std::vector<std::uint64_t> waiters;
    wait waiter;
  };
  std::uint32_t live(entry& e) {
    if (e.thread == nothing) e.thread = next_++;
    return e.thread;
  }
  std::unordered_map<std::uint64_t, entry> entries_;
  std::uint32_t next_ = 0;
};

}  // namespace godwit::report
