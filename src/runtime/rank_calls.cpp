// See rank_calls.hpp. The second half runs in workers.
#include "runtime/rank_calls.hpp"

#include <godwit/on_rank.hpp>
#include <godwit/task.hpp>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/check.hpp"
#include "base/world.hpp"
#include "runtime/global.hpp"
#include "runtime/run_common.hpp"

namespace godwit {

namespace runtime {

using detail::rank_call;

/// One call, with what it needs for as long as it lasts: the run's memory may be gone before.
struct rank_calls::one {
  explicit one(rank_call& c) : here(c.here), run(c.run), answer(&c) {
    std::memcpy(closure, c.closure, sizeof closure);
  }

  void carry_out() noexcept {
    try {
      run(closure, here);
      finish("");
    } catch (const std::exception& e) {
      finish(e.what()[0] != '\0' ? e.what() : "an exception without words");
    } catch (...) {
      finish("something that is no std::exception was thrown");
    }
  }
  void finish(const char* error) noexcept {
    const std::lock_guard guard(lock);
    if (answer == nullptr) return;
    std::snprintf(answer->error, sizeof answer->error, "%s", error);
    answer->now.store(rank_call::done, std::memory_order_release);
  }
  void abandon() noexcept {
    const std::lock_guard guard(lock);
    answer = nullptr;
  }

  /// On an OS thread that stop signals and the like do not reach.
  static std::thread begin(std::shared_ptr<one> call) noexcept {
    sigset_t all, before;
    sigfillset(&all);
    for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, s);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread t;
    call->answer->now.store(rank_call::running, std::memory_order_relaxed);
    try {
      t = std::thread([call] { call->carry_out(); });
    } catch (const std::system_error& e) {
      call->finish(e.what());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return t;
  }

  const rank here;
  void (*const run)(void*, rank);
  alignas(64) std::byte closure[rank_call::closure_bytes];
  std::mutex lock;
  rank_call* answer;  ///< null: nobody waits any more. Under lock
};

rank_calls::~rank_calls() {
  if (call_ != nullptr) call_->abandon();
  if (called_.joinable()) called_.detach();
}

void rank_calls::look(rank_call& call) {
  const std::uint64_t now = call.now.load(std::memory_order_acquire);
  if (now != rank_call::running && called_.joinable()) called_.join();
  if (now != rank_call::asked) return;
  call_ = std::make_shared<one>(call);
  called_ = one::begin(call_);
}

void rank_calls::begin_here(rank_call& call) {
  if (std::thread t = one::begin(std::make_shared<one>(call)); t.joinable()) t.detach();
}

}  // namespace runtime

namespace detail {

namespace {

transport::shm::near_range ranks_workers(const sched::site& here, std::uint32_t number) noexcept {
  return here.shape.ranks != nullptr ? here.shape.ranks[number] : transport::shm::near_range{0, here.workers};
}

std::uint32_t own_rank(const sched::site& here) noexcept {
  std::uint32_t r = 0;
  while (!ranks_workers(here, r).holds(here.me)) ++r;
  return r;
}

/// Sent to the first worker of each rank: first to all of them, so that nothing is called anywhere if one
/// refuses -- the others would wait for it in MPI -- and then once more.
struct asking {
  static constexpr std::size_t most = 512;
  rank_prepare* prepare;
  rank here;
  alignas(16) std::byte closure[most];

  static void prepare_here(const void* at) {
    const auto& a = *static_cast<const asking*>(at);
    const sched::site& here = sched::this_worker().here();
    rank_call& call = here.words->rank_call;
    GODWIT_ASSERT(call.now.load(std::memory_order_relaxed) == rank_call::free, "one call at a time");
    call.here = a.here;
    call.error[0] = '\0';
    if (here.shape.no_rank_calls != nullptr)
      std::snprintf(call.error, sizeof call.error, "%s", here.shape.no_rank_calls);
    else
      a.prepare(a.closure, call);
  }
  static void begin(const void*) {
    const sched::site& here = sched::this_worker().here();
    rank_call& call = here.words->rank_call;
    if (here.shape.in_process) {
      runtime::rank_calls::begin_here(call);
    } else {
      call.now.store(rank_call::asked, std::memory_order_release);
      runtime::wake_supervisor();
    }
  }
};

}  // namespace

std::uint64_t part_of_rank(std::uint64_t at, std::uint64_t bytes, void** begin, rank_call& call) noexcept {
  const auto refuse = [&](const char* why) {
    std::snprintf(call.error, sizeof call.error, "%s", why);
    return std::uint64_t{0};
  };
  gas::memory& m = runtime::memory_of("on_rank");
  const sched::site& here = sched::this_worker().here();
  const transport::shm::near_range own = ranks_workers(here, own_rank(here));
  global_address low = 0, high = 0;
  bool whole = true, movable = false;
  const bool lives = bytes == 0 || m.directory.visit_pieces(at, bytes, [&](const gas::piece& p) {
    movable = movable || p.words != nullptr;
    if (!own.holds(transport::worker_no{p.owner})) return;
    whole = whole && (high == 0 || high == p.at);
    if (high == 0) low = p.at;
    high = p.at + p.bytes;
  });
  if (!lives) return refuse("a span given to on_rank does not lie in a live allocation");
  if (movable)
    return refuse(
        "a span given to on_rank lies in movable memory, which may leave meanwhile: copy it to "
        "memory that is not movable");
  if (!whole)
    return refuse(
        "what lies with this rank's workers of a span given to on_rank is not one range: allocate "
        "it with distribution::blocked()");
  *begin = high == 0 ? nullptr : global_raw<std::byte>(low);
  return high - low;
}

void run_on_ranks(rank_prepare* prepare, const void* closure, std::size_t bytes) {
  if (hot_workers() == 0)
    throw std::logic_error("godwit: on_rank was called outside godwit::run: there, call the function itself");
  asking a{prepare, {}, {}};
  if (bytes > sizeof a.closure)
    throw std::invalid_argument("godwit: on_rank: f and its arguments are larger than 512 bytes");
  std::memcpy(a.closure, closure, bytes);
  const auto here = []() -> const sched::site& { return sched::this_worker().here(); };
  a.here.count = here().shape.rank_count;
  for (std::uint32_t r = 0; r < a.here.count; ++r)
    if (ranks_workers(here(), r).count == 0)
      throw std::runtime_error("godwit: on_rank: rank " + std::to_string(r) +
                               " has no workers: raise --godwit-workers to one per rank at least");
  // Waiting is a thread's: others run where it yields, and it may go on anywhere.
  const auto pause = [] {
    yield();
    base::nap(50'000);
  };
  const auto word = [&](std::uint32_t r) { return ranks_workers(here(), r).first; };
  for (;;) {  // worker 0's counts calls in the whole run: 0 or 1
    std::uint64_t nobody = 0;
    if (here().net.remote_compare_exchange(transport::worker_no{0}, &here().words->rank_lock, nobody, 1))
      break;
    pause();
  }
  const auto tell = [&](std::uint32_t r, void (*call)(const void*)) {
    const auto to = transport::worker_no{word(r)};
    a.here.number = r;
    if (to == here().me) return call(&a);
    const ref done = sched::this_worker().records().make();
    sched::this_worker().send(to, done, call, &a, sizeof a);
    static_cast<void>(sched::this_worker().wait(done, {}));
    sched::this_worker().records().release(done);
  };
  std::uint32_t failed = a.here.count;  // the first one that did
  char error[sizeof(rank_call::error)];
  const auto look_for_error = [&](std::uint32_t r) {
    if (failed != a.here.count) return;
    here().net.remote_get(transport::worker_no{word(r)}, error, &here().words->rank_call.error, sizeof error);
    if (error[0] != '\0') failed = r;
  };
  here().release_writes();
  for (std::uint32_t r = 0; r < a.here.count; ++r) {
    tell(r, asking::prepare_here);
    look_for_error(r);
  }
  const bool refused = failed != a.here.count;
  for (std::uint32_t r = 0; r < a.here.count && !refused; ++r) tell(r, asking::begin);
  for (std::uint32_t r = 0; r < a.here.count && !refused; ++r) {
    const transport::worker_no w{word(r)};
    while (here().net.remote_load(w, &here().words->rank_call.now, std::memory_order_acquire) !=
           rank_call::done)
      pause();
    look_for_error(r);
    here().net.remote_store(w, &here().words->rank_call.now, rank_call::free, std::memory_order_release);
  }
  here().acquire_writes();  // what they wrote is new: GL3
  here().net.remote_store(transport::worker_no{0}, &here().words->rank_lock, 0, std::memory_order_release);
  if (failed != a.here.count)
    throw std::runtime_error("godwit: on_rank: rank " + std::to_string(failed) + ": " + error);
}

}  // namespace detail
}  // namespace godwit
