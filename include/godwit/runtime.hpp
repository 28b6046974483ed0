// Runs: run (run.hpp), their counters, and who am I: worker_id, worker_count.
// Tests: tests/api/run_test.cpp.
#pragma once

#include <godwit/run.hpp>
#include <godwit/task.hpp>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace godwit {

/// Counters of one worker over one run. Times are sums over the worker's life.
struct worker_stats {
  std::uint64_t steals = 0;         ///< continuations taken from other workers
  std::uint64_t steals_failed = 0;  ///< looks at a victim that gave nothing
  std::uint64_t resumes = 0;        ///< suspended threads run again here
  std::uint64_t suspends = 0;       ///< outstanding joins and yields: threads copied out here
  std::uint64_t stolen_bytes = 0;   ///< stack bytes copied in by steals
  std::uint64_t exposures = 0;      ///< times queued continuations were made public
  std::uint64_t signals = 0;        ///< exposures asked for by signal
  std::uint64_t sleeps = 0;         ///< times the worker went to sleep
  std::uint64_t far_steals = 0;     ///< of the steals and resumes: threads taken from other hosts
  std::uint64_t far_failed = 0;     ///< attempts at other hosts that gave nothing
  std::uint64_t far_looks = 0;      ///< looks at other hosts while idle
  std::uint64_t far_steal_ns = 0;   ///< time of the successful ones, request to answer
  /// Successful ones by their time: [i] took from 2^(i/4) to 2^((i+1)/4) us, the last one more.
  std::uint32_t far_steal_times[64] = {};
  // Of far_steal_ns, steals by one call: what the companions needed, and of that the execution at the
  // victim's host; steals word by word: the steps of the papers (Uni-address threads, table 3).
  std::uint64_t far_carry_ns = 0;
  std::uint64_t far_serve_ns = 0;
  std::uint64_t far_check_ns = 0;   ///< empty check
  std::uint64_t far_lock_ns = 0;    ///< lock
  std::uint64_t far_entry_ns = 0;   ///< bounds, claim, entry
  std::uint64_t far_stack_ns = 0;   ///< stack transfer
  std::uint64_t far_unlock_ns = 0;  ///< unlock (handed over, not waited for)
  std::uint64_t messages = 0;       ///< way am: requests of other hosts carried out by this worker
  std::uint64_t message_ns = 0;     ///< time that took
  /// steals inside this host of which the time was taken (every 8th; with a trace all)
  std::uint64_t steals_timed = 0;
  std::uint64_t steal_ns = 0;             ///< their time, from looking to going on, of which
  std::uint64_t steal_copy_ns = 0;        ///< copying stacks
  std::uint64_t spawns = 0;               ///< threads created here; with greedy and its like only in
                                          ///< programs compiled with GODWIT_COUNT_SPAWNS
  std::uint64_t outstanding_joins = 0;    ///< joins that found their thread unfinished, and left
  std::uint64_t outstanding_resumed = 0;  ///< of these, resumed here
  std::uint64_t outstanding_ns = 0;       ///< of those: from when both sides were there to when they went on
  std::uint64_t evacuated_bytes = 0;      ///< stack bytes copied out by suspensions
  std::uint64_t idle_no_work_ns = 0;      ///< without a thread: the last one had ended
  std::uint64_t idle_join_ns = 0;         ///< without a thread: the last one waits at an outstanding join
  /// without a thread: the last one waits for something else, such as a mutex, time or a descriptor
  std::uint64_t idle_wait_ns = 0;
  std::uint64_t idle_transport_ns = 0;  ///< without a thread: waiting for an answer from another host
  std::uint64_t life_ns = 0;            ///< from this worker's start to its end
  std::uint64_t cpu_ns = 0;             ///< of that, it was on a CPU; 0: not known
  std::uint64_t aside_ns = 0;           ///< of the rest, it could have run, but others had its CPU
  std::uint64_t work_ns = 0;            ///< with options::span: time in threads; the sum over workers is T1
  /// with options::span: the longest chain that ended here; the maximum is T_inf
  std::uint64_t span_ns = 0;
  std::uint64_t trace_events = 0;      ///< events written
  std::uint64_t trace_dropped = 0;     ///< of these, overwritten by later ones
  std::uint64_t stack_high_bytes = 0;  ///< uni-address region touched, whole pages
  std::uint64_t heap_high_bytes = 0;   ///< shared heap in use at most
  // Global memory of other hosts; all zero on one host. Units are what the cache keeps: 16 KiB each.
  std::uint64_t global_hits = 0;           ///< units that a checkout or get found in the cache, new enough
  std::uint64_t global_fetches = 0;        ///< units that it had to fetch (misses)
  std::uint64_t global_fetched_bytes = 0;  ///< bytes these brought
  std::uint64_t global_fetch_ns = 0;       ///< time spent waiting for them
  std::uint64_t global_write_backs = 0;    ///< units of which changed bytes were written back to their homes
  std::uint64_t global_written_bytes = 0;  ///< bytes these took
  std::uint64_t global_write_back_ns = 0;  ///< time that took
  std::uint64_t global_evictions = 0;      ///< units thrown out to make room
  /// requests for single values of other hosts: get and gather, past the cache
  std::uint64_t far_gets = 0;
  std::uint64_t far_puts = 0;     ///< put and scatter
  std::uint64_t far_atomics = 0;  ///< atomics
  /// time in which threads waited for single gets, puts and atomics, estimated from every 8th
  std::uint64_t far_single_ns = 0;
  /// parts of movable memory that came to this worker's host, or to it inside the host
  std::uint64_t moves = 0;
  std::uint64_t move_calls = 0;     ///< calls of move that this worker carried out
  std::uint64_t moved_bytes = 0;    ///< of `moves`, bytes that came from other hosts
  std::uint64_t moves_busy = 0;     ///< parts that stayed: in use for too long, or moved by others
  std::uint64_t moves_no_room = 0;  ///< parts that stayed: this host's limit is reached
  std::uint64_t move_ns = 0;        ///< time of bringing parts from other hosts
  std::uint64_t move_wait_ns = 0;   ///< of that, while nothing came: others used a part, or moved it
  std::uint64_t part_waits = 0;     ///< accesses here that waited for parts on their way
  std::uint64_t part_wait_ns = 0;   ///< time that took
  // Movable memory of other hosts: whom to ask for it.
  std::uint64_t translations = 0;           ///< parts that were asked for; of these
  std::uint64_t translation_hits = 0;       ///< of whom it was known, rightly,
  std::uint64_t translation_stale = 0;      ///< who had been given away since,
  std::uint64_t translation_misses = 0;     ///< of whom nothing was known: their homes were asked
  std::uint64_t translation_evictions = 0;  ///< of a bounded table: forgotten for others
  std::uint64_t forwards = 0;  ///< how often requests were sent on by who had had the part, or was its home
  std::uint64_t letters = 0;   ///< calls that this worker asked others to carry out
  std::uint64_t threads_sent = 0;     ///< spawn_at, with: threads and calls sent from here
  std::uint64_t threads_sent_on = 0;  ///< of all that came here: to where their memory had gone
  std::uint64_t threads_fetched = 0;  ///< taken from another host with their memory, before they began
  std::uint64_t threads_left = 0;     ///< migrate_to, go_to: threads that left this worker
  std::uint64_t threads_kept = 0;     ///< that did not, because their stacks named its heap
  /// threads that went on here, and that another host would have taken if they did not name this one's heap
  std::uint64_t threads_stayed = 0;
  struct stay {
    std::uintptr_t at = 0;  ///< address of code; with a line: of the file's name
    std::uint32_t line = 0;
    std::uint32_t count = 0;
  };
  stay stayed_at[4];  ///< of these, where they had spawned, or waited; the first few
};

/// Counters of the last run that ended in this process, one entry per worker. Under MPI so in the first rank;
/// in the others one entry, which says what all workers have together.
const std::vector<worker_stats>& last_run_stats() noexcept;

/// Number of the worker that executes the caller, 0 ... worker_count()-1. May differ after any spawn, join or
/// yield. Local, one load.
inline std::uint32_t worker_id() noexcept {
  return detail::hot_load<offsetof(detail::hot_words, worker), std::uint32_t>();
}
/// Number of workers of this run; 0 outside run. Local, one load.
inline std::uint32_t worker_count() noexcept { return detail::hot_workers(); }

/// True in the one process whose main counts: always on one machine; under MPI, where every rank executes
/// main, in the first rank. For what main should do once, such as writing a file after run. Local, no
/// communication.
bool is_first_process() noexcept;

namespace detail {

struct broadcast_task {
  void (*call)(const void* closure);
  const void* closure;
  std::size_t bytes;
  bool checkable = false;  ///< there is no padding, which could look like an address
};
void run_on_each_worker(const broadcast_task& task, detail::place where);

}  // namespace detail

/// Call `f()` once on every worker, as soon as each one spawns or idles; returns when all calls are done. f
/// must be plain bytes and must not throw. It runs inside whatever thread the worker is executing, or between
/// two: a spawn, a yield or a wait in it ends the run with a line. (on_all makes threads instead.) References
/// to the caller's locals are refused between processes (check_frames), in programs compiled by gcc. Workers
/// hand the call on along a tree, to another host by way of the first worker there. Cost: one message per
/// worker; there and back, a round trip per level of the tree. Meant for per-worker set-up and for reading
/// per-worker state.
template <class F>
void on_each_worker(const F& f, detail::place where = detail::place::here()) {
  static_assert(plain<F>,
                "godwit::on_each_worker: the callable must be plain bytes: it is copied to every worker");
  detail::manual<F> copy;
  std::memcpy(static_cast<void*>(&copy), static_cast<const void*>(&f), sizeof(F));
  const bool cleared = detail::clear_padding(copy.value);
  detail::run_on_each_worker(
      {[](const void* c) { (*static_cast<const F*>(c))(); }, &copy, sizeof(F), cleared}, where);
}

/// Let the supervising process call @p f about every @p interval while a run is on (for live progress). It
/// runs outside the workers: it sees what they share with it, such as memory from mmap(MAP_SHARED). An empty
/// f ends it. Under MPI it is called in the first rank only, which shares memory with its own workers only.
void on_tick(std::chrono::milliseconds interval, std::function<void()> f);

}  // namespace godwit
