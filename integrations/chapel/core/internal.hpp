// What the files of this folder share. Interface: godwit-chapel.h.
#pragma once

#include "godwit-chapel.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <godwit/detail/park.hpp>

#include "seams/park.hpp"

namespace godwit::chapel {

/// A lock for some instructions. Nobody suspends with it.
class spin_lock {
 public:
  void lock() noexcept;
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};  // W, R all
};

struct task;

/// A task that waits. In a frame of it; gone as soon as it runs again.
struct waiting {
  waiting* next = nullptr;        ///< in the queue that it waits in, later of whoever wakes it
  detail::waiter* who = nullptr;  ///< W its own task when it is saved, R whoever wakes it
  std::uint32_t ticket = 0;       ///< who came first
  // What reports say (report.cpp). W its own task, before it is listed.
  const task* of = nullptr;
  const char* what = nullptr;  ///< null: it yields, and waits for something that we do not see
  gwchpl_place where{};
  waiting* older = nullptr;
  waiting* newer = nullptr;
};

/// A task that has begun; in the frame of its first function. thread_block::foreign points to it.
struct task {
  void* data;
  std::uint32_t nested = 0;  ///< it and how many more, each begun by the next, run on top of a worker
  // Yields in a row after which nothing else had gone on (yield.cpp).
  std::uint32_t idle_yields = 0;
  bool listed = false;  ///< yielding is in the list of those that wait
  std::uint64_t idle_since_ns = 0;
  const struct counters* worker = nullptr;   ///< whose progress that is
  std::uint64_t progress = 0;                ///< when it was last looked at
  std::uint64_t worker_yields = 0;           ///< of that worker, when this task came to rest last
  std::uint64_t all_progress = 0;            ///< of all, when it was listed
  std::atomic<std::uint64_t> yielded_ns{0};  ///< W the task, R all
  waiting yielding{};
};
task* self() noexcept;

const gwchpl_setup& setup() noexcept;

/// Of one worker; the first of all is for OS threads that are none.
struct alignas(64) counters {
  // W that worker (the first: all of these), R all
  std::atomic<std::uint64_t> created{0}, begun{0}, ended{0}, blocked{0}, woken{0}, yields{0};
  /// Changes whenever a task begins, ends, waits for a sync variable or goes on.
  std::uint64_t progress() const noexcept;
};
const std::vector<counters>& all_counters() noexcept;
const counters& my_counters() noexcept;
void count(std::atomic<std::uint64_t> counters::*which) noexcept;

/// Begin a task, by a task.
void begin_inside(void* data);

/// Enter it into the list of those that wait, and take it out of it.
void list(waiting& w) noexcept;
void unlist(waiting& w) noexcept;
/// If all tasks wait, and those that yield have done so lately: say who waits where, and end the process.
void look_for_deadlock(std::uint64_t since_ns, std::uint64_t now_ns) noexcept;

/// Make it ready to run. From any OS thread.
void wake(waiting& w) noexcept;

/// Where OS threads that are no workers leave what workers have to do (outside.cpp).
namespace outside {
void begin_later(void* data);
void wake_later(waiting& w) noexcept;
/// Begin what has been left. By a task.
void begin_those_left();
/// Before and after all tasks of a run, if gwchpl_outside was called.
void start();
void stop() noexcept;
/// gwchpl_outside was called.
bool expected() noexcept;
}  // namespace outside

}  // namespace godwit::chapel
