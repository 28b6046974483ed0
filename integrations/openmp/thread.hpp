// What an OpenMP program consists of at run time: threads, teams of them, and their tasks.
//
// An OpenMP thread is a POSIX thread, so under godwit-pthread a lightweight thread with thread-local storage
// of its own. Every task runs from its begin to its end on the thread that began it (untied ones too, which
// the standard allows): threadprivate variables and omp_get_thread_num are right without any further care.
// A thread that has to wait runs tasks on top of its stack. docs/openmp.md.
//
// Objects of these types are used again and never given back to the system: a late look at one that has
// ended reads old values, but memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "deque.hpp"

namespace godwit::openmp {

struct thread;
struct team;
struct share;
struct task;
struct dependences;
struct dependence_node;

enum class schedule_kind : std::uint32_t { run_time = 0, fixed = 1, dynamic = 2, guided = 3, automatic = 4 };

/// Internal control variables that a task goes by.
struct settings {
  unsigned threads;  ///< of a parallel region that does not say how many
  unsigned most_active_levels;
  schedule_kind schedule;
  std::int64_t chunk;  ///< 0: not given
  bool dynamic;
  unsigned thread_limit;
  unsigned team_number, team_count;  ///< in the league of teams: GOMP_teams_reg
  bool operator==(const settings&) const = default;
};

/// Tasks to wait for together: taskgroup.
struct group {
  group* outer;
  const task* by;  ///< whose it is; null: a region's, which is for reductions
  std::uintptr_t* reductions;
  thread* waiter;                   ///< who will wait, on whose stack it lies
  std::atomic<std::uint64_t> open;  ///< tasks that have not ended. W who makes and ends them, R the waiter
  std::atomic<bool> cancelled;      ///< W its tasks, R all
};

struct task {
  std::atomic<task*> parent;  ///< W who makes it, R who knows it; meaningless if it has `gone`
  task* next;                 ///< in a list of free ones, or of those handed to a team
  thread* home;               ///< whose lists it belongs to
  thread* runs_on;            ///< W who begins it, R who ends a child of it
  void (*function)(void*);
  void* data;
  group* in;            ///< the group that it belongs to, and while it has one of its own, that one
  const settings* own;  ///< its parent's until it changes them
  team* of;
  std::uint32_t depth;
  bool final;
  bool ended;              ///< its function has returned, and children are left
  std::atomic<bool> gone;  ///< the same, and its parent may be in use again. W who ends it, R thieves

  // From here on as written here while it is not in use.
  /// Detached: it ends when its function has returned and its event is fulfilled, whichever comes second.
  bool detached = false;
  /// Twice how many that were detached it has been, and 1: one of these has been. W and R both. task.cpp
  std::atomic<std::uint32_t> event{0};
  dependences* of_children = nullptr;
  dependence_node* node = nullptr;  ///< what it depends on, and what on it
  // Its children. It has waited for all of them when open_here == ended_elsewhere.
  // Of 64 bits: a region may make tasks for days.
  std::uint64_t open_here = 0;  ///< that have not ended on its own thread. W and R that
  /// W threads that end a child, and it at its own end: then less those that it leaves behind. R all
  std::atomic<std::int64_t> ended_elsewhere{0};

  // Room for what the function is given; the block is kept when the task is used again.
  static constexpr std::size_t room_bytes = 96;
  alignas(16) char room[room_bytes];
  char* block = nullptr;
  std::size_t block_bytes = 0;

  bool waits_for_children() const noexcept {
    return open_here != static_cast<std::uint64_t>(ended_elsewhere.load(std::memory_order_acquire));
  }
};

/// A thread in a team.
struct alignas(64) member {
  deque tasks;
  std::uint64_t floor = 0;  ///< tasks from here on are descendants of the one that runs
  // Over the region, for the barrier (all_done). W the thread, R all.
  std::atomic<std::uint64_t> made{0}, ended{0};

  thread* who = nullptr;
  team* of = nullptr;
  unsigned number = 0;
  task implicit;

  // Where it is in worksharing constructs: share.hpp.
  std::uint64_t shares = 0;   ///< so many it has met
  std::uint64_t singles = 0;  ///< likewise
  share* in = nullptr;
  share* ordered = nullptr;                      ///< whose `ordered` it is in
  std::uint64_t trips = 0;                       ///< chunks that it had of a fixed schedule
  std::uint64_t chunk_begin = 0, chunk_end = 0;  ///< that it works on now
};

/// What sleeps and is woken: a thread, each time with a reason to be awake of its own.
struct thread {
  member* me = nullptr;
  task* current = nullptr;
  task* free_tasks = nullptr;
  team* unused_teams = nullptr;  ///< of which it was and will be the first member; the innermost last
  thread* next = nullptr;        ///< of those without a program's thread

  // In lines that it has no need of for each task.
  alignas(64) std::atomic<task*> returned{nullptr};  ///< free ones. W other threads, R it
  std::uint32_t event = 0;                           ///< atomic; raised to wake it
  enum sleep : std::uint32_t { awake, asleep, asleep_for_any_task };
  std::atomic<std::uint32_t> sleeps{awake};  ///< W it, who wakes it; R all

  // Threads that a team has hired. team.cpp
  std::atomic<member*> job{nullptr};   ///< W who leads the team, then it; R both
  std::atomic<bool> dismissed{false};  ///< W who led its team, R it
};

extern __thread thread* self_ __attribute__((tls_model("initial-exec")));
thread& make_self() noexcept;
/// The calling OpenMP thread; a thread of the program becomes one by asking.
inline thread& self() noexcept {
  thread* t = self_;
  return t != nullptr ? *t : make_self();
}

/// The event of @p t: it looks again at what it waits for.
void wake(thread& t) noexcept;

}  // namespace godwit::openmp
