// The account of a worker: its counters and its events -- who had a thread when, what waiting cost.
//
// Clocks are read where a thread comes or goes, never at a spawn that nobody steals. The counters lie where
// the supervisor finds them (public_words::stats), the events in a ring (trace/ring.hpp). docs/tracing.md.
// Test: tests/sched/account_test.cpp.
#pragma once

#include "base/callers.hpp"
#include "sched/spawn_sample.hpp"
#include "sched/system_use.hpp"
#include "sched/words.hpp"
#include "trace/ring.hpp"

#include <godwit/detail/slow_path.hpp>

#include <vector>

namespace godwit::sched {

class account {
 public:
  /// @p events: null if nothing is traced.
  /// @p new_thread: the OS thread has been made for it, while the program may run on others. Its time begins
  /// at 0, so no file is opened: the program could see that (as a descriptor that it has just closed).
  void init(worker_stats& stats, trace::ring_memory* events, bool new_thread = false) noexcept;

  bool traced() const noexcept { return events_.on(); }
  /// Only if traced().
  void note(trace::kind what, std::uint64_t now, std::uint64_t a, std::uint64_t b = 0,
            std::uint64_t duration = 0, std::uint64_t bytes = 0, std::uint32_t other = 0,
            std::uint16_t detail = 0) noexcept;
  /// The calling thread is about to wait at @p where, a variable of its own; its stack ends at @p end. Only
  /// if traced().
  void waits_at(const detail::place& where, std::uintptr_t end) noexcept;
  /// It has been suspended there. @p what: see worker::park; null: it waits at a join.
  void note_wait(std::uint64_t now, const char* what, const detail::place& where) noexcept;

  // Where what was noted last happened.
  void note_place(std::uint64_t now, const detail::place& where) noexcept;
  void note_callers(std::uint64_t now, const base::callers& who) noexcept;

  /// The worker looks at its next spawns (samples_spawns) if it has not for a while. Only if traced().
  void sample_spawns(std::uint64_t now) noexcept;
  /// Every spawn is to be told.
  bool samples_spawns() const noexcept { return spawns_.on(); }
  void note_spawn(std::uintptr_t where) noexcept;

  /// The worker has no thread from now on, for this reason.
  void begin_idle(trace::idle_cause cause) noexcept;
  bool is_idle() const noexcept { return idle_from_ns_ != has_thread; }
  /// A thread is about to run, at @p now; that is not looked at while there is one.
  void end_idle(std::uint64_t now) noexcept;
  /// A request to another host, begun at @p since, has been answered: gives back the time now. @p brought: it
  /// found something to run; else there was none to be had meanwhile, however long that took.
  std::uint64_t count_transport(std::uint64_t since, worker_no target, trace::far_request what,
                                bool brought) noexcept;
  /// A thread that waited at an outstanding join goes on at @p now; @p ready_ns: since it could, 0: not
  /// known.
  void count_outstanding(std::uint64_t ready_ns, std::uint64_t now) noexcept;

  /// The worker ends, on the OS thread that called init.
  void finish() noexcept;

  // Seen by another OS thread of the process while the worker goes on.
  /// The counters as they would be if it ended at @p now.
  worker_stats as_of(std::uint64_t now) const noexcept;
  /// What would be written if a thread came at @p now. Nothing: it has one.
  std::vector<trace::event> idle_until(std::uint64_t now) const;

 private:
  // A thread that was running stops.
  void note_system(std::uint64_t now) noexcept;
  void note_spawns(std::uint64_t now) noexcept;

  worker_stats* stats_ = nullptr;
  std::uint64_t& idle_of(worker_stats& stats) const noexcept;
  std::uint64_t idle_ns(std::uint64_t now) const noexcept;

  trace::ring events_;
  std::uint64_t started_ns_ = 0, cpu_then_ns_ = 0, aside_then_ns_ = 0;
  static constexpr std::uint64_t has_thread = ~std::uint64_t{0};
  std::uint64_t idle_from_ns_ = has_thread;  ///< without a thread since; virtual time begins with 0
  std::uint64_t idle_transport_ns_ = 0;      ///< of that, waiting for what other hosts had
  trace::idle_cause idle_cause_ = trace::idle_cause::no_work;
  base::callers callers_;  ///< of who waits
  system_use system_;
  spawn_sample spawns_;
};

/// worker_stats::stayed_at: so many more at that place, if there is room for it.
inline void count_stay(worker_stats& stats, const worker_stats::stay& more) noexcept {
  if (more.count == 0) return;
  for (worker_stats::stay& s : stats.stayed_at) {
    if (s.count != 0 && (s.at != more.at || s.line != more.line)) continue;
    const std::uint32_t before = s.count;
    s = more;
    s.count += before;
    return;
  }
}

/// A counter that the monitor reads meanwhile.
[[gnu::always_inline]] inline void count_progress(std::uint64_t& n) noexcept {
  __atomic_store_n(&n, n + 1, __ATOMIC_RELAXED);
}

}  // namespace godwit::sched
