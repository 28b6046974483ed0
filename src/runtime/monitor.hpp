// The monitor of a run whose workers are threads: wakes a spare worker when all others are stuck, and sends
// it back.
//
// It is the OS thread that called run. Spare workers count as idle from the start; their OS threads are made
// when they are first needed. Nothing here is on the way of a thread: the monitor looks every few
// milliseconds while any worker has work, and sleeps while none has. docs/protocols/monitor.md;
// models/monitor.pml. Called by: run_threads.cpp. Test: tests/pthread (stuck), tests/threads/spare_test.cpp.
#pragma once

#include "sched/words.hpp"
#include "transport/shm/segment.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <pthread.h>
#include <vector>

namespace godwit::runtime {

/// What the monitor is given.
struct monitor_setup {
  const transport::shm::segment* memory = nullptr;
  std::uint32_t regular = 0;  ///< workers that are no spares
  std::uint32_t spares = 0;
  const std::atomic<std::uint32_t>* running = nullptr;  ///< OS threads that are workers
  /// Make the OS thread of worker `number`. False: it cannot be had.
  std::function<bool(std::uint32_t number)> start;
  /// Of a worker that has been started.
  std::function<pthread_t(std::uint32_t number)> handle;
};

class monitor {
 public:
  /// Before the workers start: spares count as idle.
  explicit monitor(const monitor_setup& setup);

  /// Look, then sleep: for @p limit_ms at most (-1: no limit), less while workers are busy or when one ends.
  void round(int limit_ms) noexcept;
  /// A worker has ended, and `running` says so. By that worker.
  static void worker_ended(sched::node_words& node) noexcept;

 private:
  /// What was seen of a worker.
  struct seen {
    std::uint64_t progress = 0;
    std::uint64_t cpu_ns = 0;  ///< that it has used; only while it makes no progress
    unsigned looks = 0;        ///< since it last made progress
  };

  sched::public_words& words(std::uint32_t number) const noexcept;
  sched::node_words& node() const noexcept;
  bool is_stuck(std::uint32_t number) noexcept;
  bool all_asleep() const noexcept;
  bool sees_work() const noexcept;
  void look() noexcept;
  void raise() noexcept;
  void lower(std::uint32_t by) noexcept;
  void sleep(std::uint32_t state, std::int64_t ns) noexcept;

  monitor_setup setup_;
  std::vector<seen> seen_;
  std::uint32_t up_ = 0;       // spares that are to work
  std::uint32_t started_ = 0;  // spares that have an OS thread
  std::uint32_t too_many_ =
      0;  // workers beyond the regular number that were free or busy at every look of this period
  unsigned period_looks_ = 0;
  std::uint64_t next_look_ns_ = 0;
};

}  // namespace godwit::runtime
