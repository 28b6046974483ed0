// See shared_objects.hpp and include/godwit/shared.hpp.
#include "runtime/shared_objects.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/check.hpp"
#include "heap/heap.hpp"
#include "heap/reach.hpp"
#include "heap/waits.hpp"
#include "runtime/forked.hpp"
#include "runtime/libraries.hpp"
#include "runtime/run_common.hpp"

#include <godwit/shared.hpp>

namespace godwit {

namespace runtime::shared_objects {

namespace {

constexpr std::uint32_t most_workers = 4096;  // of a run

enum class state : std::uint32_t {
  none,
  whole,
  elsewhere,  ///< in main's own memory
  mixed,      ///< partly there
  torn,       ///< a run ended by force
  copied      ///< in a process that main forked: a worker, or a child with a copy
};
std::atomic<state> state_{state::none};
std::mutex making_;
// Never destroyed: objects may be used until the process ends.
alignas(transport::shm::window) std::byte window_place_[sizeof(transport::shm::window)];
transport::shm::window& window() noexcept {
  return *std::launder(reinterpret_cast<transport::shm::window*>(window_place_));
}
char why_elsewhere_[512];

// Of the calling OS thread of main.
thread_local std::uint32_t depth_ = 0;
thread_local heap::part* part_ = nullptr;  // in a scope, where there is a heap

void make() noexcept {
  const std::lock_guard l(making_);
  if (state_.load(std::memory_order_relaxed) != state::none) return;
  state made = state::elsewhere;
  auto* const w = new (window_place_) transport::shm::window(transport::shm::of_shared_objects);
  try {
    const std::uint64_t bytes = possible_heap_bytes(options{});
    if (bytes == 0)
      throw std::runtime_error(
          "godwit: shared objects (shared_scope, shared_global): there is no heap for them: " +
          why_no_heap() + ": use --godwit-substrate=threads (GODWIT_SUBSTRATE)");
    w->create(bytes, true);
    heap::begin(w->base(), bytes, 0, most_workers);
    watch_forks();
    made = state::whole;
  } catch (const std::runtime_error& e) {
    w->destroy();
    std::strncpy(why_elsewhere_, e.what(), sizeof why_elsewhere_ - 1);
  }
  state_.store(made, std::memory_order_release);
}

}  // namespace

bool lie_elsewhere() noexcept { return state_.load(std::memory_order_acquire) == state::elsewhere; }

bool exist() noexcept { return state_.load(std::memory_order_acquire) != state::none; }

std::string refusal(const std::string& where) {
  if (!exist()) return {};
  return "godwit: this program made objects in a shared_scope or as shared_global, and " + where +
         " each process would have its own: start it on one host without mpirun, or keep what threads "
         "share in global memory";
}

transport::shm::window* for_run(const options& opts, std::uint32_t workers) {
  switch (state_.load(std::memory_order_acquire)) {
    case state::none:
      return nullptr;
    case state::elsewhere:
      throw std::invalid_argument(why_elsewhere_);
    case state::mixed:
      throw std::invalid_argument(
          "godwit: shared objects (shared_scope, shared_global) may have parts in memory that workers of "
          "an earlier run, on substrate threads or sim, have allocated in this process: use one substrate "
          "for all runs of the program");
    case state::torn:
      throw std::invalid_argument(
          "godwit: shared objects (shared_scope, shared_global) may be torn since workers of an earlier "
          "run were killed: start the program again");
    case state::copied:
      throw std::invalid_argument(
          "godwit: this process was forked from one that made shared objects (shared_scope, shared_global) "
          "and has a copy of them, which its workers would not share: call run in that process, or fork "
          "before the first of them is made");
    case state::whole:
      break;
  }
  if (opts.heap == choice::heap::separate)
    throw std::invalid_argument(
        "godwit: --godwit-heap=private (GODWIT_HEAP) cannot be had: the program made objects in a "
        "shared_scope or as shared_global, which lie in a heap that all workers share: leave the option "
        "away");
  if (opts.check_heap)
    throw std::invalid_argument(
        "godwit: --godwit-check-heap (GODWIT_CHECK_HEAP) cannot be had with shared objects (shared_scope, "
        "shared_global), whose heap began before the run: look for leaks without them");
  heap::watch_waits();  // also in objects that were loaded since the first scope
  if (!heap::add_workers(workers))
    throw std::invalid_argument("godwit: with shared objects (shared_scope, shared_global) a run has " +
                                std::to_string(most_workers) + " workers at most: lower --godwit-workers");
  return &window();
}

void after_run(bool in_order) noexcept {
  if (!in_order) {
    heap::forget();
    state_.store(state::torn, std::memory_order_release);
  } else if (has_one_thread()) {
    heap::free_unreachable(window());
  }
}

void before_run_here() noexcept {
  state now = state::whole;
  state_.compare_exchange_strong(now, state::mixed, std::memory_order_acq_rel, std::memory_order_relaxed);
}

void after_fork() noexcept {
  if (const state now = state_.load(std::memory_order_acquire);
      now == state::none || now == state::elsewhere || now == state::copied)
    return;
  heap::leave();
  part_ = nullptr;
  heap::forget();
  if (!window().make_private())
    base::fatal(
        "fork: no private memory for a copy of shared objects: %s: raise the limit on memory (ulimit -v)",
        std::strerror(errno));
  state_.store(state::copied, std::memory_order_release);
}

// Main's parts of the heap are in memory that all share, and which of them are taken each process counts for
// itself: a worker would allocate from one that main has.
void in_worker() noexcept { state_.store(state::copied, std::memory_order_release); }

pause::pause() noexcept : part_(heap::leave()) {}
pause::~pause() {
  if (state_.load(std::memory_order_acquire) == state::whole) heap::go_on(part_);
}

}  // namespace runtime::shared_objects

namespace shared = runtime::shared_objects;

shared_scope::shared_scope() : counts_(detail::hot().workers == 0) {
  if (!counts_ || shared::depth_++ != 0) return;
  shared::make();
  if (shared::state_.load(std::memory_order_acquire) != shared::state::whole) return;
  if (shared::part_ = heap::enter_main(); shared::part_ == nullptr) {
    --shared::depth_;
    throw std::runtime_error(
        "godwit: shared_scope: 16 other threads of main are in one: let one of them end its scope first");
  }
}

shared_scope::~shared_scope() {
  if (!counts_ || --shared::depth_ != 0 || shared::part_ == nullptr) return;
  heap::leave_main(std::exchange(shared::part_, nullptr));
}

namespace detail {
bool are_shared_objects_mains() noexcept {
  const shared::state now = shared::state_.load(std::memory_order_acquire);
  return now != shared::state::torn && now != shared::state::copied;
}
void need_main(const char* what) {
  if (hot().workers == 0) return;
  throw std::logic_error(
      std::string("godwit: ") + what +
      " was made in a thread: make it in main before run, or each worker would have its own");
}
}  // namespace detail

}  // namespace godwit
