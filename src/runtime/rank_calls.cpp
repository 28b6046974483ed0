// See rank_calls.hpp. The second half runs in workers.
#include "runtime/rank_calls.hpp"

#include <godwit/detail/policy_facts.hpp>
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
#include "base/thread_sanitizer.hpp"
#include "base/world.hpp"
#include "runtime/forked.hpp"
#include "runtime/global.hpp"
#include "runtime/run_common.hpp"

namespace godwit {

namespace runtime {

using detail::rank_call;

/// By its address ThreadSanitizer knows that what a call did is over for who has waited: one call at a time.
constexpr char calls_ = 0;

/// One call, with what it needs for as long as it lasts: the run's memory may be gone before.
struct rank_calls::one {
  one(const transport::shm::segment& m, transport::worker_no w)
      : memory(m), first(w), answer(&words_of(m, w).worker.rank_call), here(answer->here), run(answer->run) {
    std::memcpy(closure, answer->closure, sizeof closure);
  }
  one(const one&) = delete;
  one& operator=(const one&) = delete;
  ~one() { base::happens_after(this); }  // of the other one that shared it

  void carry_out() noexcept {
    try {
      run(closure, here);
      finish("");
    } catch (const std::exception& e) {
      finish(e.what()[0] != '\0' ? e.what() : "an exception without words");
    } catch (...) {
      finish("something that is no std::exception was thrown");
    }
    base::happens_before(this);
  }
  void finish(const char* error) noexcept {
    const std::lock_guard guard(lock);
    if (answer == nullptr) return;
    std::snprintf(answer->error, sizeof answer->error, "%s", error);
    base::happens_before(&calls_);
    sched::mailbox::post(memory, &common_words(memory)->worker, host_words(memory), first, answer->letter);
    answer->now.store(rank_call::done, std::memory_order_release);  // the last access: the run may end now
  }
  void abandon() noexcept {
    const std::lock_guard guard(lock);
    answer = nullptr;
  }

  /// On an OS thread with main's signals: programs that it starts must not have those blocked that stop them.
  static std::thread begin(std::shared_ptr<one> call) noexcept {
    std::thread t;
    call->answer->now.store(rank_call::running, std::memory_order_relaxed);
    try {
      t = std::thread([call] {
        pthread_sigmask(SIG_SETMASK, &mask_of_run(), nullptr);
        call->carry_out();
      });
    } catch (const std::system_error& e) {
      call->finish(e.what());
    }
    return t;
  }

  const transport::shm::segment& memory;
  const transport::worker_no first;
  std::mutex lock;
  rank_call* answer;  ///< null: nobody waits any more, and memory is not there. Under lock
  const rank here;
  void (*const run)(void*, rank);
  alignas(64) std::byte closure[rank_call::closure_bytes];
};

rank_calls::~rank_calls() {
  if (call_ != nullptr) call_->abandon();
  if (called_.joinable()) called_.detach();
}

void rank_calls::look() {
  const std::uint64_t now = words_of(memory_, first_).worker.rank_call.now.load(std::memory_order_acquire);
  if (now != rank_call::running && called_.joinable()) called_.join();
  if (now != rank_call::asked) return;
  call_ = std::make_shared<one>(memory_, first_);
  called_ = one::begin(call_);
}

void rank_calls::begin_here(const transport::shm::segment& memory, transport::worker_no first) {
  if (std::thread t = one::begin(std::make_shared<one>(memory, first)); t.joinable()) t.detach();
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

/// Where the answers are counted.
constexpr transport::worker_no counter{0};

/// A rank has done a step: its first worker tells the thread that waits for all.
void answer(const sched::site& here, const rank_call& call) noexcept {
  if (call.error[0] != '\0') {
    const std::uint64_t mine = std::uint64_t{call.here.number} + 1;
    const sched::word* failed = &here.words->rank_failed;
    std::uint64_t first = here.net.remote_load(counter, failed, std::memory_order_relaxed);
    while ((first == 0 || mine < first) && !here.net.remote_compare_exchange(counter, failed, first, mine)) {
    }
  }
  here.net.remote_fetch_add(counter, &here.words->rank_answers, 1);
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
    answer(here, call);
  }
  static void begin(const void*) {
    const sched::site& here = sched::this_worker().here();
    rank_call& call = here.words->rank_call;
    call.letter = sched::this_worker().write_letter_for_later(ended);
    if (here.shape.in_process) {
      runtime::rank_calls::begin_here(*here.memory, here.me);
    } else {
      call.now.store(rank_call::asked, std::memory_order_release);
      runtime::wake_supervisor();
    }
  }
  static void ended(const void*) {
    const sched::site& here = sched::this_worker().here();
    rank_call& call = here.words->rank_call;
    for (base::spin_wait w; call.now.load(std::memory_order_acquire) != rank_call::done;) w.turn();
    call.now.store(rank_call::free, std::memory_order_relaxed);
    answer(here, call);
  }
};

/// Of the thread that waits, which may go on anywhere.
const sched::site& here() noexcept { return sched::this_worker().here(); }

/// Others run where it yields, unless that is on top of it: they might call on_rank as well, and wait for it.
/// A scope that is cancelled meanwhile does not stop it: ranks are at work.
void pause() noexcept {
  if (facts_of(here().opts).has_futures())
    yield_thread();
  else
    sched::this_worker().serve();
  base::nap(50'000);
}

/// Do @p step in all ranks, and wait until all have answered. Gives back the first one that failed, plus one.
std::uint64_t in_all_ranks(asking& a, void (*step)(const void*)) {
  here().net.remote_exchange(counter, &here().words->rank_failed, 0);
  here().net.remote_exchange(counter, &here().words->rank_answers, 0);  // there before anybody is asked
  for (std::uint32_t r = 0; r < a.here.count; ++r) {
    const auto to = transport::worker_no{ranks_workers(here(), r).first};
    a.here.number = r;
    if (to == here().me)
      step(&a);
    else
      sched::this_worker().send(to, 0, step, &a, sizeof a);
  }
  while (here().net.remote_load(counter, &here().words->rank_answers, std::memory_order_acquire) !=
         a.here.count)
    pause();
  base::happens_after(&runtime::calls_);
  return here().net.remote_load(counter, &here().words->rank_failed, std::memory_order_relaxed);
}

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
  a.here.count = here().shape.rank_count;
  for (std::uint32_t r = 0; r < a.here.count; ++r)
    if (ranks_workers(here(), r).count == 0)
      throw std::runtime_error("godwit: on_rank: rank " + std::to_string(r) +
                               " has no workers: raise --godwit-workers to one per rank at least");
  for (;;) {  // one call in the whole run
    std::uint64_t nobody = 0;
    if (here().net.remote_compare_exchange(counter, &here().words->rank_lock, nobody, 1)) break;
    pause();
  }
  here().release_writes();
  std::uint64_t failed = in_all_ranks(a, asking::prepare_here);
  if (failed == 0) failed = in_all_ranks(a, asking::begin);
  here().acquire_writes();  // what they wrote is new: GL3
  char error[sizeof(rank_call::error)];
  if (failed != 0)
    here().net.remote_get(
        transport::worker_no{ranks_workers(here(), static_cast<std::uint32_t>(failed - 1)).first}, error,
        &here().words->rank_call.error, sizeof error);
  here().net.remote_store(counter, &here().words->rank_lock, 0, std::memory_order_release);
  if (failed != 0)
    throw std::runtime_error("godwit: on_rank: rank " + std::to_string(failed - 1) + ": " + error);
}

}  // namespace detail
}  // namespace godwit
