// run: start the workers, execute the root thread, stop the workers.
//
// run forks one worker per usable CPU from the calling process, which itself only supervises: it waits,
// passes on what happened, and ends the run when a worker dies. What the program made before run is there in
// every worker (as a copy of its own); what threads change in globals or heap stays in the worker that did
// it. Threads give back values through join, the root thread through run.
// Source: Uni-address threads, 5.1 (a process per worker). See docs/architecture.md. Tests:
// tests/api/run_test.cpp.
#pragma once

#include <godwit/detail/slow_path.hpp>
#include <godwit/detail/values.hpp>
#include <godwit/error.hpp>
#include <godwit/options.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace godwit {

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
  std::string refused;           ///< why a thread that allocated got nothing; empty: none did
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
  static_assert(
      std::is_void_v<R> || std::is_reference_v<R> || encodable<R>,
      "godwit: the result of the root thread goes to main as bytes: it must be trivially copyable or "
      "have a godwit::codec");
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

/// (Without <memory>, which is as long as all the rest.)
template <class T>
struct on_heap {
  T* p;
  ~on_heap() { delete p; }
};

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
  const detail::on_heap<task_type> task{new task_type(std::forward<F>(root))};
  const detail::run_result result = detail::run_workers(argc, argv, base, *task.p);
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
  const detail::on_heap<task_type> task{new task_type(std::forward<F>(root))};
  const detail::run_result result = detail::run_workers(argc, argv, base, *task.p);
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

}  // namespace godwit
