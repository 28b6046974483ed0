// run: the options, which substrate carries the run, and what becomes of its result. See
// include/godwit/runtime.hpp. The steps of a run are in substrate.hpp. Test: tests/api/run_test.cpp.
#include <godwit/detail/cancelled.hpp>
#include <godwit/runtime.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>

#include "base/check.hpp"
#include "base/fixed_layout.hpp"
#include "base/launcher.hpp"
#include "base/options.hpp"
#include "base/thread_sanitizer.hpp"
#include "base/valgrind.hpp"
#include "base/world.hpp"
#include "heap/mains_blocks.hpp"
#include "runtime/exception.hpp"
#include "runtime/forked.hpp"
#include "runtime/mpi_session.hpp"
#include "runtime/run_common.hpp"
#include "runtime/shared_objects.hpp"
#include "runtime/substrate.hpp"

namespace godwit {

namespace {

std::unique_ptr<runtime::substrate> make_substrate(choice::substrate which, const options& opts) {
  if (which == choice::substrate::threads) return runtime::make_threads(opts);
  if (which == choice::substrate::mpi) return runtime::make_mpi(opts);
  if (which == choice::substrate::sim) return runtime::make_sim(opts);
  GODWIT_CHECK(which == choice::substrate::processes, "substrate %s cannot be made", name_of(which));
  return runtime::make_processes(opts);
}

/// Why workers that are processes would not have one heap though nobody asked for heaps apart. Empty: they
/// would.
std::string why_heaps_apart(const options& opts) {
  if (opts.heap == choice::heap::separate) return {};
  const bool elsewhere = runtime::shared_objects::lie_elsewhere();
  if (runtime::shared_objects::exist() && !elsewhere) return {};
  std::string why = runtime::why_no_heap();
  if (why.empty() && elsewhere)
    why = "there was no heap for its shared objects (shared_scope, shared_global) when they were made";
  return why;
}

struct chosen_substrate {
  choice::substrate where;
  std::string not_processes;  ///< why it is not what programs usually have; else empty
};

chosen_substrate choose_substrate(const options& opts) {
  base::keep_fixed_layout();
  const base::launcher& l = base::detect_launcher();
  if (opts.substrate != choice::substrate::automatic) return {opts.substrate, {}};
  if (l.what == base::launcher::kind::slurm_without_mpi)
    throw std::invalid_argument(
        std::string("godwit: srun started several tasks, but without an MPI plugin (") + l.evidence +
        "): each would be a run of its own. Use srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list shows what "
        "there is), or set GODWIT_SUBSTRATE=processes if that is meant");
  if (l.what != base::launcher::kind::none && l.size > 1) return {choice::substrate::mpi, {}};
  std::string why = why_heaps_apart(opts);
  return {why.empty() ? choice::substrate::processes : choice::substrate::threads, std::move(why)};
}

/// For people; once in a process, then empty.
std::string notice_of_threads(const std::string& why) {
  static bool told = false;
  if (why.empty() || std::exchange(told, true)) return {};
  return "godwit: substrate threads: workers that are processes could not share what threads allocate: " +
         why +
         ". --godwit-substrate=threads (GODWIT_SUBSTRATE) does without this line, =processes has processes "
         "all the same (docs/heap.md)\n";
}

/// As long as it lives, descriptors 0, 1 and 2 are open, to /dev/null where the program closed them: a file
/// that a run opens must not become anybody's standard output.
class standard_descriptors {
 public:
  standard_descriptors() noexcept {
    for (int fd = 0; fd < 3; ++fd)
      opened_[fd] = fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) == fd;
  }
  ~standard_descriptors() {
    for (int fd = 0; fd < 3; ++fd)
      if (opened_[fd]) close(fd);
  }
  standard_descriptors(const standard_descriptors&) = delete;
  standard_descriptors& operator=(const standard_descriptors&) = delete;

 private:
  bool opened_[3] = {};
};

detail::run_result failed(int status, std::string message) {
  detail::run_result result;
  result.status = status;
  result.message = std::move(message);
  return result;
}

/// Options that cannot be had in this program are errors; those that can only be one way are set.
void fit_to_program(options& opts, const detail::root_task& root) {
  const bool in_one_process =
      opts.substrate == choice::substrate::threads ||
      (opts.substrate == choice::substrate::automatic && opts.heap != choice::heap::separate);
  if (base::on_thread_sanitizer() && (!in_one_process || base::detect_launcher().one_of_several()))
    throw std::invalid_argument(
        "godwit: this program is built with -fsanitize=thread, which can follow workers that are threads of "
        "one process only: run it without mpirun and with --godwit-substrate=threads "
        "(GODWIT_SUBSTRATE=threads), the default, or build it without (docs/debugging.md)");
  base::fit_to_valgrind(opts);
  if (!root.needs_threads()) return;
  if (opts.substrate == choice::substrate::automatic) opts.substrate = choice::substrate::threads;
  if (opts.substrate != choice::substrate::threads)
    throw std::invalid_argument("godwit: this program was compiled with GODWIT_ONLY_THREADS, so substrate=" +
                                std::string(name_of(opts.substrate)) +
                                " cannot be had: leave --godwit-substrate (GODWIT_SUBSTRATE) away");
}

/// What all ranks come to know is written by one of them.
bool speaks() noexcept { return is_first_process() || runtime::speaks_instead_of_first_rank(); }

}  // namespace

bool is_first_process() noexcept {
  return !base::detect_launcher().one_of_several() || base::detect_launcher().rank == 0;
}

namespace detail {

run_result run_workers(int argc, char** argv, const options& defaults, root_task& root) {
  if (detail::hot().workers != 0)  // the same on all substrates: the thread that asked for it hears of it
    return failed(base::status_failed, "godwit: run was called inside a run: use spawn or invoke there");
  static std::atomic<pid_t> busy{0};  // the process that is inside run, or has forked this one there
  if (pid_t inside = 0; !busy.compare_exchange_strong(inside, getpid(), std::memory_order_seq_cst))
    return failed(base::status_failed,
                  inside == getpid()
                      ? "godwit: another thread of this process is inside run: one run at a time"
                      : "godwit: run was called in a process that fork made while its parent was inside run: "
                        "fork before that, or call exec first");
  const struct release {
    ~release() { busy.store(0, std::memory_order_seq_cst); }
  } release_at_end;
  const runtime::shared_objects::pause in_no_scope;
  const heap::unrecorded allocations;
  try {
    options opts;
    std::string problem;
    try {
      opts = base::parse_options(argc, argv, defaults);
    } catch (const std::invalid_argument& e) {
      if (!base::detect_launcher().one_of_several()) throw;
      problem = e.what();  // all ranks end for it, and one says it
    }
    fit_to_program(opts, root);
    runtime::watch_forks();
    const standard_descriptors open_meanwhile;
    const auto [where, not_processes] = choose_substrate(opts);
    if (opts.check_heap && (where == choice::substrate::sim || where == choice::substrate::threads))
      throw std::invalid_argument(
          std::string("godwit: --godwit-check-heap (GODWIT_CHECK_HEAP) cannot be had on substrate ") +
          name_of(where) + ", where workers have the program's malloc: use valgrind or -fsanitize=address");
    if (where == choice::substrate::mpi && problem.empty())
      problem = runtime::shared_objects::refusal("under MPI");
    const std::unique_ptr<runtime::substrate> s = make_substrate(where, opts);
    s->notice = notice_of_threads(not_processes);
    return runtime::run_on(*s, opts, root, std::move(problem));
  } catch (const base::help_requested& help) {
    std::fputs(help.text.c_str(), stdout);
    std::exit(0);
  } catch (const std::invalid_argument& e) {
    return failed(2, e.what());
  } catch (const std::runtime_error& e) {
    // The launcher ends all ranks when the first has ended: let the one that writes the message do so.
    if (base::detect_launcher().one_of_several() && !speaks()) base::nap(1'000'000'000);
    return failed(base::status_failed, e.what());
  }
}

int report(const run_result& result) {
  if (result.status != 0) {
    if (speaks() || hot().workers != 0) std::fprintf(stderr, "%s\n", result.message.c_str());
    return result.status;
  }
  if (!result.threw) return 0;
  if (!is_first_process()) return 1;
  try {
    throw_failure(result);
  } catch (const std::bad_alloc& e) {
    std::fprintf(stderr, "godwit: the root thread ended with an exception: %s%s%s\n", what_of(e),
                 result.refused.empty() ? "" : ": ", result.refused.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "godwit: the root thread ended with an exception: %s\n", what_of(e));
  } catch (const cancelled&) {
    std::fprintf(
        stderr,
        "godwit: the root thread ended with godwit::cancelled: call what a cancel_scope is to stop in "
        "its run(f), which catches it (docs/cancel.md)\n");
  } catch (...) {
    std::fprintf(stderr, "godwit: the root thread ended with an exception that is not a std::exception\n");
  }
  return 1;
}

void throw_failure(const run_result& result) {
  if (result.status == 2) throw std::invalid_argument(result.message);
  if (result.status != 0) throw run_error(result.message, result.status);
  if (result.thrown) std::rethrow_exception(result.thrown);
  reader r(result.bytes.data(), result.bytes.size());
  throw_encoded(r);
}

}  // namespace detail
}  // namespace godwit
