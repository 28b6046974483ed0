// Idleness: back-off, sleep, wake-up, the end of the run. docs/protocols/idle.md and, for several hosts,
// idle_nodes.md; models/idle.pml, idle_nodes.pml. Spare workers: monitor.md. Tests:
// tests/sched/idleness_test.cpp, tests/sched/world_test.cpp.
//
// The word: node_words::idle, the idle workers of a host minus the letters for them, and an epoch. Whether
// all hosts are idle: waves.hpp.
//   ID1  empty, then count: a worker counts as idle only when its deque, ready queue and mailbox are empty;
//        count, then take: it counts as running again before it touches any work. Only running workers make
//        work
//   ID2  a letter is counted before it is sent, until it has been answered
//   ID3  who brings the count to the number of workers decides: nothing can ever happen again
//   ID5  policies whose waiting threads poll: who decides looks at all of them first; they are part of
//        "empty" in ID1. Between hosts: each host, before it lets a wave pass
//   IN2  who leaves idleness changes the count and the epoch in one step
// Lost wake-ups (publish, then look for sleepers, without a fence) cost at most one sleep period.
#pragma once

#include "sched/account.hpp"
#include "sched/far_thief.hpp"
#include "sched/first_touches.hpp"
#include "sched/inbox.hpp"
#include "sched/mailbox.hpp"
#include "sched/outside_events.hpp"
#include "sched/site.hpp"
#include "sched/wait_queue.hpp"
#include "sched/waves.hpp"

namespace godwit::sched {

class idleness {
 public:
  /// What an idle worker looks at.
  struct sources {
    far_inbox& inbox;
    mailbox& mail;
    outside_events& events;
    far_thief& far;
    const join_records& records;
  };
  idleness(const site& here, account& counts, const sources& from) noexcept
      : here_(here), account_(counts), from_(from), waves_(here), touches_(here) {}

  void init() noexcept;
  /// Policies that poll: threads of this worker that nobody wakes when what they wait for is there.
  void poll(wait_queue& waiting) noexcept { polled_ = &waiting; }

  bool is_idle() const noexcept { return is_idle_; }
  /// Counts as running from here on.
  void become_running() noexcept;
  /// Unless there is something to do after all. Does not come back if the run is over.
  void become_idle() noexcept;
  /// A thread runs: nothing of what was in vain before counts.
  void thread_came() noexcept;
  /// It has gone to another host, and may come back.
  void thread_left() noexcept;
  /// A look everywhere found nothing: let others use the CPU. Gives back whether there have been many such in
  /// a row.
  bool end_of_round() noexcept;

  /// Workers of this host that are looked at in a round, however many there are: the next round looks at
  /// others.
  static constexpr std::uint32_t looks_in_round = 8;
  /// Before a worker sleeps, likewise. Together, those that sleep have looked at all.
  static constexpr std::uint32_t looks_before_sleep = 64;

  /// Anything that an idle worker should become running for? Cost: two lines of each of @p most workers of
  /// this host, and now and then a round trip to another. Does not come back if the run is over.
  bool sees_work(std::uint32_t most = looks_in_round) noexcept;
  /// An idle worker without visible work: ask for some, spin, in the end sleep.
  void wait_for_work() noexcept;
  /// Of a running worker that can do nothing: a short sleep, since nobody may wake it.
  void nap() noexcept;

  void wake_one() noexcept;
  void wake_all() noexcept;

  /// Workers that may have something to take: all but spares that have never been up.
  std::uint32_t present() const noexcept {
    return here_.shape.spares == 0
               ? here_.near.count
               : static_cast<std::uint32_t>(here_.node->present.load(std::memory_order_relaxed));
  }
  /// Spares: the monitor has sent this one back.
  bool is_to_rest() const noexcept {
    return is_spare_ && here_.node->up.load(std::memory_order_relaxed) <= spare_number_;
  }
  /// A spare that counts as idle: sleep until the monitor calls.
  void rest() noexcept;

 private:
  bool sees_ready_waiter() noexcept;
  void carry_wave() noexcept;
  void decide() noexcept;
  bool nothing_is_ready(std::uint64_t idle) noexcept;
  [[noreturn]] void end_run() noexcept;
  void leave_run() noexcept;
  void tell_hosts() noexcept;
  void report_failure(const char* text) noexcept;
  void ask_others(std::uint32_t most) noexcept;
  void sleep(std::uint64_t most_ns) noexcept;
  void wait_in_sleep(std::uint32_t seen, std::uint64_t most_ns) noexcept;
  void call_monitor() noexcept;
  void give_way(int pauses) noexcept;

  const site& here_;
  account& account_;
  sources from_;
  waves waves_;
  first_touches touches_;
  wait_queue* polled_ = nullptr;
  bool is_idle_ = false;
  bool is_spare_ = false;
  bool has_sent_ = false;  ///< its last thread has gone to another host
  std::uint32_t spare_number_ = 0;
  std::uint32_t next_look_ = 0;  ///< of this host's workers, where the next round of looks begins
  /// Failed rounds before a worker counts as idle: some microseconds, so that short gaps cost no shared
  /// counter.
  std::uint32_t rounds_before_idle_ = 256;
  std::uint32_t failed_rounds_ = 0;
  std::uint32_t first_sleep_ms_ = 1, longest_sleep_ms_ = 50;  ///< the first one after a thread came
  std::uint32_t sleep_ms_ = 1;
  std::uint64_t idle_since_ns_ = 0;
  std::uint64_t last_signal_ns_ = 0;
};

}  // namespace godwit::sched
