// Threads by the record that names them: their numbers, what they wait for, who waits for them; and places.
//
// A record serves one thread after another: over() ends a name, the next use of the record is a new thread.
// Used by analyze.cpp only.
#pragma once

#include "analysis.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace godwit::report {

class thread_table {
 public:
  struct wait {
    bool valid = false, is_join = false, ready = false;
    std::uint64_t since = 0, depth = 0;  ///< when it left, its chain then
    std::uint32_t node = nothing, place = nothing;
    std::uint64_t ready_at = 0, ready_depth = 0;  ///< when it could go on, the chain that made it so
    std::uint32_t ready_node = nothing;
  };

  /// Number of the thread that the record names now.
  std::uint32_t number_of(std::uint64_t record) {
    if (record == 0) return nothing;
    return live(entries_[record]);
  }
  void over(std::uint64_t record) { entries_[record].thread = nothing; }
  std::uint32_t count() const noexcept { return next_; }

  wait* waiting(std::uint64_t thread) {
    const auto found = entries_.find(thread);
    return found != entries_.end() && found->second.waiter.valid ? &found->second.waiter : nullptr;
  }

  /// @p thread waits for @p awaited (0: for nothing). True if it can go on at once.
  bool suspend(std::uint64_t thread, std::uint64_t awaited, wait waiter) {
    // Both ends of a join write their event around the same moment: the child's may carry the earlier time.
    constexpr std::uint64_t slack_ns = 100'000;
    bool ready = awaited == 0;
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
    done.completed = true;
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

/// Places by their addresses and line.
class place_table {
 public:
  std::uint32_t index_of(std::uint64_t file, std::uint64_t function, std::uint32_t line,
                         const std::unordered_map<std::uint64_t, std::string>& strings,
                         std::vector<waiting_place>& places) {
    if (known_ != nothing && file == last_file_ && function == last_function_ && line == last_line_)
      return known_;
    last_file_ = file, last_function_ = function, last_line_ = line;
    const auto text = [&](std::uint64_t address) {
      const auto found = strings.find(address);
      return found == strings.end() ? std::string() : found->second;
    };
    const std::string name = text(file) + '\0' + text(function) + '\0' + std::to_string(line);
    const auto [at, is_new] = index_.try_emplace(name, static_cast<std::uint32_t>(places.size()));
    if (is_new) places.push_back({.file = text(file), .function = text(function), .line = line});
    return known_ = at->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> index_;
  std::uint64_t last_file_ = 0, last_function_ = 0;
  std::uint32_t last_line_ = 0, known_ = nothing;
};

}  // namespace godwit::report
