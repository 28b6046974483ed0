// run: start the workers, execute the root thread, stop the workers. And who am I: worker_id, worker_count.
//
// run forks one worker per usable CPU from the calling process, which itself only supervises: it waits,
// passes on what happened, and ends the run when a worker dies. What the program made before run is there in
// every worker (as a copy of its own); what threads change in globals or heap stays in the worker that did
// it. Threads give back values through join, the root thread through run.
// Source: Uni-address threads, 5.1 (a process per worker). See docs/architecture.md. Tests:
// tests/api/run_test.cpp.
#pragma once

#include <godwit/error.hpp>
#include <godwit/options.hpp>
#include <godwit/task.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
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
  std::uint64_t idle_transport_ns = 0;    ///< without a thread: waiting for an answer from another host
  std::uint64_t life_ns = 0;              ///< from this worker's start to its end
  std::uint64_t work_ns = 0;              ///< with options::span: time in threads; the sum over workers is T1
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
};

/// Counters of the last run that ended in this process, one entry per worker.
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

/// The root thread, type-erased. The object lives in the calling process and is inherited by the workers.
struct root_task {
  virtual ~root_task() = default;
  /// Runs in the root thread. The value goes into @p out.
  virtual void operator()(writer& out) = 0;
  /// The program was compiled with GODWIT_ONLY_THREADS.
  virtual bool needs_threads() const noexcept = 0;
};

/// What became of a run.
struct run_result {
  int status = 0;                ///< 0, or 128 + signal, 70, 2 (bad options)
  bool threw = false;            ///< bytes hold an exception
  std::string message;           ///< what went wrong with the run itself
  std::vector<std::byte> bytes;  ///< the encoded value or exception
  std::exception_ptr thrown;     ///< the exception itself, where workers are threads
};

run_result run_workers(int argc, char** argv, const options& base, root_task& root);
/// Print and turn into an exit status.
int report(const run_result& result);
[[noreturn]] void throw_failure(const run_result& result);

template <class F>
struct root_of final : root_task {
  using R = std::invoke_result_t<F&>;
  static_assert(!std::is_reference_v<R>,
                "godwit: root must not return a reference: what it refers to stays in a worker. Return a "
                "value");
  static_assert(std::is_void_v<R> || std::is_reference_v<R> || encodable<R>,
                "godwit: the result of the root thread must be migratable: trivially copyable or with a "
                "godwit::codec");
  F f;
  explicit root_of(F&& fn) : f(std::move(fn)) {}
  explicit root_of(const F& fn) : f(fn) {}
  bool needs_threads() const noexcept override { return only_threads; }
  void operator()(writer& out) override {
    if constexpr (plain<F> && std::is_copy_constructible_v<F>) {
      F own(f);  // on the root thread's stack: it migrates with the thread
      call(own, out);
    } else {
      call(f, out);
    }
  }
  static void call(F& fn, writer& out) {
    if constexpr (std::is_void_v<R>) {
      fn();
    } else {
      R value = fn();
      out.put(value);
    }
  }
};

struct broadcast_task {
  void (*call)(const void* closure);
  const void* closure;
  std::size_t bytes;
};
void run_on_each_worker(const broadcast_task& task, detail::place where);

}  // namespace detail

/// Start the workers, execute `root()` as the first thread, wait until it and every thread it created are
/// done. Gives back an exit status: what root returned if it returns int, else 0; 1 if an exception left root
/// (its what() is printed); 2 for bad options; 128+N if a worker died of signal N or N interrupted the run
/// (130 for SIGINT); 70 if the runtime stopped the run (stack overflow, deadlock...). The reason is printed
/// in one line. --godwit-* flags in argv and GODWIT_* variables are obeyed; argv is left as it is.
/// Can be called any number of times, not from inside a run (then 70, or run_error, at once). Cost: forks,
/// some milliseconds. Under MPI: collective. Every rank calls run equally often and with the same roots; root
/// is executed once, in worker 0 of the first rank, whose options count; all ranks get the same result.
/// docs/cluster.md
template <class F>
int run(int argc, char** argv, F&& root, const options& base = {}) {
  using task_type = detail::root_of<std::decay_t<F>>;
  using R = typename task_type::R;
  static_assert(std::is_void_v<R> || std::is_integral_v<R>,
                "godwit: with run(argc, argv, root) the root returns void or an exit status; for other "
                "results use run<T>(argc, argv, root)");
  // On the heap: the workers may write to their copies of it, not to this function's frame.
  const auto task = std::make_unique<task_type>(std::forward<F>(root));
  const detail::run_result result = detail::run_workers(argc, argv, base, *task);
  if (const int status = detail::report(result); status != 0) return status;
  if constexpr (std::is_void_v<R>)
    return 0;
  else
    return static_cast<int>(reader(result.bytes.data(), result.bytes.size()).get<R>());
}

/// The same without a command line: environment and @p base only. `run({}, root)` takes all defaults.
template <class F>
int run(const options& base, F&& root) {
  return run(0, nullptr, std::forward<F>(root), base);
}

/// The same, but gives back root's value, which must be migratable. Throws what root threw (see error.hpp),
/// std::invalid_argument for bad options, run_error when the run itself failed; under MPI in all ranks.
template <class T, class F>
T run(int argc, char** argv, F&& root, const options& base = {}) {
  using task_type = detail::root_of<std::decay_t<F>>;
  using R = typename task_type::R;
  static_assert(std::same_as<T, R>, "godwit: run<T>: root must return exactly T");
  // On the heap: the workers may write to their copies of it, not to this function's frame.
  const auto task = std::make_unique<task_type>(std::forward<F>(root));
  const detail::run_result result = detail::run_workers(argc, argv, base, *task);
  if (result.threw || result.status != 0) detail::throw_failure(result);
  if constexpr (!std::is_void_v<T>) return reader(result.bytes.data(), result.bytes.size()).get<T>();
}

/// The same without a command line: environment and @p base only.
template <class T, class F>
requires std::invocable<F&> T run(F&& root, const options& base = {}) {
  return run<T>(0, nullptr, std::forward<F>(root), base);
}
template <class T, class F>
T run(const options& base, F&& root) {
  return run<T>(0, nullptr, std::forward<F>(root), base);
}

/// Call `f()` once on every worker, as soon as each one spawns or idles; returns when all calls are done. f
/// must be plain bytes and must not throw; it runs inside whatever thread the worker is executing. Collective
/// in cost: one message per worker. Meant for per-worker set-up and for reading per-worker state.
template <class F>
void on_each_worker(const F& f, detail::place where = detail::place::here()) {
  static_assert(plain<F>,
                "godwit::on_each_worker: the callable must be plain bytes: it is copied to every worker");
  detail::run_on_each_worker({[](const void* c) { (*static_cast<const F*>(c))(); }, &f, sizeof(F)}, where);
}

/// Let the supervising process call @p f about every @p interval while a run is on (for live progress). It
/// runs outside the workers: it sees what they share with it, such as memory from mmap(MAP_SHARED). An empty
/// f ends it. Under MPI it is called in the first rank only, which shares memory with its own workers only.
void on_tick(std::chrono::milliseconds interval, std::function<void()> f);

}  // namespace godwit
