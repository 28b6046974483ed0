// What the events of a run say: who ran what when, what workers waited for, which chain of threads ended
// last.
//
// analyze() walks all events once in the order of time. It knows nothing of pages; page.cpp and summary.cpp
// read its result. Times are nanoseconds since the first event. Document: docs/report.md (what each number
// means). Test: tests/report/analysis_test.cpp.
#pragma once

#include "blame.hpp"
#include "input.hpp"
#include "moves.hpp"
#include "spawn_samples.hpp"
#include "system_times.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace godwit::report {

/// What a worker does with its time.
enum class state : std::uint8_t {
  busy,       ///< has a thread
  getting,    ///< a steal or a resume is under way that will succeed
  no_work,    ///< its last thread ended, nobody has anything to steal
  join,       ///< its last thread waits at an outstanding join, nobody has anything to steal
  transport,  ///< waits for an answer from another host that brings a thread
  unknown,    ///< before the first event that was kept; a spare worker that rests
  // None, and nobody has anything to steal, because threads wait (waits.hpp):
  lock,     ///< for a mutex or the like
  event,    ///< for what another thread does: a condition variable, a semaphore...
  outside,  ///< for time or descriptors, and no worker is busy
  /// has a thread, which waits for a single value of another host; estimated, and in no time line: there busy
  access,
  // Has a thread, but the operating system keeps it (system_times.hpp); in no time line either.
  blocked,  ///< it waits in a system call
  kernel,   ///< the kernel works for it
};
inline constexpr std::size_t states = 12;

/// What a thread waits for. nothing: it gave way.
enum class wait_for : std::uint8_t { nothing, join, lock, event, outside, access };

/// How a piece of busy time began, and how it ended.
enum class gain : std::uint8_t {
  none,
  start,
  steal,
  resume,
  task,
  left
};  // left: a thief took what was below
/// wait: but for a join; offered: it went on, and its parent's continuation could be taken from here on
enum class loss : std::uint8_t { none, end, end_waiter, join, yield, stolen, wait, offered };

/// A piece of a worker's time: one thread at the bottom, or one cause of idleness.
struct segment {
  std::uint64_t begin, end;
  std::uint32_t thread;  ///< busy: number of the bottom thread, from 0 in the order of appearance
  std::uint32_t other;   ///< the worker that it came from
  std::uint32_t place;   ///< busy that ends in a wait, idle behind it: index into analysis::places
  state what;
  gain begun;
  loss ended;
  std::uint32_t name = nothing;  ///< busy: what the program does then, index into analysis::names
  bool own_name = false;         ///< the name is one of the program's own (gw::annotate)
  bool offers = false;           ///< busy, and thieves could take something
};

/// A function of time that changes in steps, such as a number of threads.
class steps {
 public:
  struct step {
    std::uint64_t time;
    std::int32_t value;
  };
  void add(std::uint64_t time, std::int32_t change);  ///< times before the last one count as the last one
  const std::vector<step>& list() const noexcept { return list_; }
  double mean(std::uint64_t from, std::uint64_t to) const noexcept;
  std::int32_t most() const noexcept;
  std::int32_t at(std::uint64_t time) const noexcept;

 private:
  std::vector<step> list_;
};

/// Counts by logarithmic size: bin i holds values in [2^(i/4), 2^((i+1)/4)), the first also 0.
struct histogram {
  static constexpr int per_octave = 4;
  std::array<std::uint64_t, 64 * per_octave> bins{};
  static constexpr std::size_t few = 20;
  std::vector<std::uint64_t> samples;  ///< the first ones; if there are more, some
  std::uint64_t count = 0, most = 0;
  double sum = 0;
  void add(std::uint64_t value) noexcept;
  double mean() const noexcept { return count == 0 ? 0 : sum / static_cast<double>(count); }
  double quantile(double q) const noexcept;  ///< within a bin: 19 % apart
  static double lower_edge(std::size_t bin) noexcept;
};

/// A place in the program where threads waited, or from which they stayed on their host.
struct waiting_place {
  std::string file, function;
  std::uint32_t line = 0;  ///< 0: all is in `file`
  std::string what = {};   ///< that they waited for, as "mutex"; empty: the end of a thread
  wait_for kind = wait_for::join;
  std::uint64_t threads = 0;        ///< that ever waited here; only if it is no join
  std::uint64_t most_at_once = 0;   ///< of these
  std::uint32_t held_by = nothing;  ///< lock: the code that let go of it, mostly; index into analysis::names
  std::uint32_t owner = nothing;    ///< access: the worker whose memory it was, mostly
  std::uint64_t count = 0;          ///< times
  std::uint64_t wait_ns = 0;        ///< threads: from leaving to going on, summed
  std::uint64_t ready_ns = 0;       ///< of that, when both sides were there
  std::uint64_t idle_ns = 0;        ///< workers: idle because their last thread waited here
  std::uint64_t stays = 0;  ///< threads that had spawned or waited here, and named the heap of their host
};

/// Who took from whom. Workers are put together in groups where there are many.
struct matrix {
  std::uint32_t group = 1, size = 0;                  ///< workers per row, rows
  std::vector<std::uint64_t> steals, bytes, resumes;  ///< [taker * size + from]
};

/// A stretch of the chain of threads that ended last, read backwards.
struct path_piece {
  std::uint64_t begin, end;
  std::uint32_t worker;
  gain how;  ///< none: the thread runs; steal, resume, task: how long it took to get there
};
struct last_path {
  bool complete = false;  ///< reaches the start of the root thread
  std::uint64_t running_ns = 0, stealing_ns = 0, ready_ns = 0, outside_ns = 0;
  std::uint64_t steals = 0, joins = 0;
  std::vector<path_piece> pieces;  ///< the last first; at most 200,000
};

struct worker_totals {
  std::array<std::uint64_t, states> ns{};  ///< by state
  std::uint64_t sleep_ns = 0, sleeps = 0;
  std::uint64_t runs = 0, steals = 0, resumes = 0, suspends = 0, message_ns = 0, far_call_ns = 0;
  std::uint64_t fetches = 0, fetch_ns = 0, fetched_bytes = 0;  ///< of other hosts' global memory
  std::uint64_t write_backs = 0, write_back_ns = 0, written_bytes = 0, evictions = 0;
  std::uint64_t access_ns = 0;  ///< single accesses to other hosts, estimated from those that were timed
  std::uint64_t recorded_from = 0;
};

struct analysis {
  std::uint32_t workers = 0;
  std::uint64_t events = 0, dropped = 0;
  std::uint64_t end = 0;         ///< of the last event
  std::uint64_t whole_from = 0;  ///< from here on every worker's events are there; totals start here
  std::uint64_t odd = 0;         ///< events that contradict earlier ones
  std::vector<std::vector<segment>> timeline;  ///< per worker, without gaps from 0 to end
  std::vector<worker_totals> totals;
  std::vector<std::uint64_t> ns_by_busy;  ///< [n]: how long exactly n workers were busy
  steps busy;                             ///< workers with a thread
  steps ready;                            ///< threads at outstanding joins that could go on and do not
  std::uint64_t ready_while_idle_ns = 0;  ///< integral of min(ready, workers without a thread)
  histogram steal_ns, far_steal_ns, run_ns, left_ns, ready_ns, wait_ns, stolen_bytes;
  matrix from_whom;
  std::vector<waiting_place> places;
  /// What pieces of threads are called: "phase", or "visit at file.cpp:12": where the thread spawned, was
  /// spawned or waited before; else where it spawned or waited next
  std::vector<std::string> names;
  std::uint64_t longest_chain_ns = 0;  ///< of busy time that depended on each other as executed: >= T_inf
  last_path path;
  moves_analysis moves;  ///< of movable memory
  blame while_idle;
  system_times system;
  spawn_estimate spawns;
  std::uint32_t threads = 0;

  std::uint64_t wall() const noexcept { return end - whole_from; }
  std::uint64_t sum(state s) const noexcept;
};

/// Cost: one pass over all events, about 0.3 us each; about 100 bytes of memory per change of a worker's
/// state.
analysis analyze(const recording& r);

}  // namespace godwit::report
