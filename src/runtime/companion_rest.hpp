// How long a companion rests between messages: they come in bursts, and it may share its CPU with a worker.
//
// Chosen by measuring steals between hosts (scripts/reproduce --only U13) where a companion and a computing
// worker share a CPU: spinning there uses up the right to be let in again, so the next message waits for
// milliseconds; short sleeps keep it. Not sched_yield: a computing neighbour would keep the CPU for
// milliseconds, whereas who sleeps is let in at once when it wakes. Called by: run_mpi.cpp, sim_hosts.cpp.
#pragma once

#include "transport/mpi/companion.hpp"

#include <algorithm>
#include <cstdint>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace godwit::runtime {

class companion_rest {
 public:
  static constexpr std::uint32_t shortest_us = 5;  // in practice 30

  /// @p alone: there are no other hosts, so only failures of others come by message.
  explicit companion_rest(bool alone) : longest_us_(alone ? 20'000 : 1000) {}

  /// A turn had something to do. @p waiting: requests of our workers are unanswered.
  void after_work(transport::mpi::companion::mood mood, bool waiting, std::uint64_t now_ns) noexcept {
    using enum transport::mpi::companion::mood;
    pause_us_ = shortest_us;
    if (mood == expects) eager_until_ns_ = now_ns + eager_ns;
    if (mood != quiet) spin_until_ns_ = std::max(spin_until_ns_, now_ns + spin_after_request_ns);
    if (waiting || mood == wrote) spin_until_ns_ = std::max(spin_until_ns_, now_ns + spin_while_waiting_ns);
  }

  /// A turn had nothing to do: sleep for so long; 0: look again at once. @p expecting: something is under
  /// way.
  std::uint32_t next_us(bool expecting, std::uint64_t now_ns) noexcept {
    if (now_ns < spin_until_ns_) return 0;
    const std::uint32_t most = expecting || now_ns < eager_until_ns_ ? shortest_us : longest_us_;
    return std::exchange(pause_us_, std::min(pause_us_ * 2, most));
  }

  /// Something has ended the sleep: it is worth looking for.
  void woken(std::uint64_t now_ns) noexcept {
    pause_us_ = shortest_us;
    spin_until_ns_ = std::max(spin_until_ns_, now_ns + spin_after_request_ns);
  }

  /// Until then it looks at once, unless there is more work.
  std::uint64_t looks_until_ns() const noexcept { return spin_until_ns_; }

 private:
  static constexpr std::uint64_t spin_after_request_ns = 5'000;
  static constexpr std::uint64_t spin_while_waiting_ns = 40'000;
  static constexpr std::uint64_t eager_ns = 500'000;  // after an answer that brings another request

  const std::uint32_t longest_us_;  // between hosts: what a first request may wait
  std::uint32_t pause_us_ = shortest_us;
  std::uint64_t spin_until_ns_ = 0;
  std::uint64_t eager_until_ns_ = 0;
};

/// Ask the kernel for short turns on the CPU while this object lives: then it lets us in when we wake beside
/// a computing worker, instead of at the end of that worker's turn, milliseconds later. Linux 6.12 and newer;
/// older ones refuse or ignore it, and prefer sleepers anyway. It is a hint: nothing depends on it but time.
class short_turns {
 public:
  short_turns() noexcept { set(100'000); }
  ~short_turns() { set(0); }
  short_turns(const short_turns&) = delete;
  short_turns& operator=(const short_turns&) = delete;

 private:
  struct attributes {  // struct sched_attr, first version
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  };
  static void set(std::uint64_t slice_ns) noexcept {
    attributes a{};
    if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0u) != 0 || a.policy != 0) return;  // SCHED_OTHER only
    a.size = sizeof a;
    a.runtime = slice_ns;
    syscall(SYS_sched_setattr, 0, &a, 0u);
  }
};

}  // namespace godwit::runtime
