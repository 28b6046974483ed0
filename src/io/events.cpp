// The event source: who looks for events, how long, and what becomes of them. docs/protocols/events.md,
// "Collecting"; models/events.pml. Test: tests/io/.
#include "io/events.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/world.hpp"
#include "io/descriptors.hpp"
#include "io/system.hpp"
#include "io/timers.hpp"

namespace godwit::events {

namespace {

constexpr int most_events = 256;
constexpr std::uint64_t interrupt_tag = ~std::uint64_t{0};

// Both: a descriptor, from when it is made to after the run.
constexpr int not_made = -1, no_run = -2;  // no_run: none will be made
std::atomic<int> epoll_{no_run};           // W under making, and begin_run and close_ours; R all
std::atomic<int> wake_{not_made};          // an eventfd. W under making, before epoll_; R all
base::short_lock making;
std::uint32_t delay_us_ = 0;  // W before a run

// EV1: 1 from before a worker looks until it has found nothing or delivered all. W workers
std::atomic<std::uint32_t> collecting{0};
// EV4: where workers sleep while there is no epoll instance. A futex; 1: somebody interrupts. W all; 0: who
// holds collecting
std::atomic<std::uint32_t> early{0};
// EV2: somebody has written to wake_, and nobody has read it. W all
std::atomic<std::uint32_t> interrupted{0};
// What was found. W/R who holds collecting.
epoll_event found[most_events];
int found_count = 0;

/// epoll_wait with a time limit in nanoseconds; where the kernel has none, rounded up.
int wait_for_events(std::int64_t ns) noexcept {
#if defined(SYS_epoll_pwait2)
  static std::atomic<bool> have{true};
  if (ns > 0 && have.load(std::memory_order_relaxed)) {
    struct {
      std::int64_t s, ns;
    } limit{ns / 1'000'000'000, ns % 1'000'000'000};
    const long n = raw(SYS_epoll_pwait2, epoll(), found, most_events, &limit, nullptr, 0);
    if (n >= 0 || n == -EINTR) return static_cast<int>(n);
    // ENOSYS; EPERM: a filter of system calls that is older than this one. Anything else the older call says
    // as well.
    have.store(false, std::memory_order_relaxed);
  }
#endif
  return static_cast<int>(raw(SYS_epoll_pwait, epoll(), found, most_events,
                              static_cast<int>((ns + 999'999) / 1'000'000), nullptr, 0));
}

/// Nobody waits for a descriptor: for deadlines and interruptions a futex does.
void sleep_early(std::int64_t ns) noexcept {
  base::wait_on(early, 0, static_cast<std::uint64_t>(ns), base::reach::this_process);
  early.store(0, std::memory_order_seq_cst);  // afterwards, as EV2: an interruption until here found us awake
}
void interrupt_early() noexcept {
  if (early.exchange(1, std::memory_order_seq_cst) == 0) base::wake(early, 1, base::reach::this_process);
}

/// Look, and wait up to wait_ns. Found anything but an interruption?
bool look(std::int64_t wait_ns) noexcept {
  GODWIT_ASSERT(collecting.load(std::memory_order_relaxed) != 0, "EV1: one looks at a time");
  GODWIT_ASSERT(found_count == 0, "EV1: what was found has been delivered");
  found_count = 0;
  const bool waits = wait_ns > 0;
  if (waits) {
    const std::uint64_t now = base::now_ns();
    const std::uint64_t until = begin_sleep(now + static_cast<std::uint64_t>(wait_ns));  // TM1
    wait_ns = until > now ? static_cast<std::int64_t>(until - now) : 0;
  }
  const bool have = epoll_.load(std::memory_order_acquire) >= 0;
  if (!have && wait_ns > 0) sleep_early(wait_ns);
  const int n = have && (wait_ns > 0 || descriptors_waited_for()) ? wait_for_events(wait_ns) : 0;
  end_sleep();
  for (int i = 0; i < n; ++i) {
    if (found[i].data.u64 == interrupt_tag) {
      if (!waits) continue;  // EV2: it is for who waits, or is about to
      std::uint64_t count;
      raw(SYS_read, wake_.load(std::memory_order_relaxed), &count, sizeof count);
      interrupted.store(0, std::memory_order_seq_cst);  // EV2: after the read
    } else {
      found[found_count++] = found[i];
    }
  }
  return found_count != 0;
}

bool collect(std::int64_t wait_ns) noexcept {
  if (wait_ns == 0 && !descriptors_waited_for() && next_deadline() > base::now_ns()) return false;
  // EV1
  if (collecting.load(std::memory_order_relaxed) != 0 ||
      collecting.exchange(1, std::memory_order_acquire) != 0)
    return false;
  if (look(wait_ns)) return true;
  const std::uint64_t now = base::now_ns();
  if (next_deadline() <= now || descriptors_want_a_check(now)) return true;
  collecting.store(0, std::memory_order_release);
  return false;
}

void deliver() noexcept {
  GODWIT_ASSERT(collecting.load(std::memory_order_relaxed) != 0,
                "EV1: nobody else looks before all is delivered");
  GODWIT_ASSERT(found_count >= 0 && found_count <= most_events, "no more was found than there is room for");
  for (int i = 0; i < found_count; ++i) {
    delay();
    descriptor_event(found[i].data.u64, found[i].events);
  }
  found_count = 0;
  const std::uint64_t now = base::now_ns();
  if (descriptors_want_a_check(now)) check_descriptors(now);
  collecting.store(0, std::memory_order_release);  // EV1
  expire(now);                                     // may be done by several at a time
}

constexpr detail::event_source source_{collect, deliver, interrupt, hasten_timers};

}  // namespace

const detail::event_source& source() noexcept { return source_; }

int epoll() noexcept { return epoll_.load(std::memory_order_relaxed); }

/// To a number that programs do not come across: some count on getting the lowest, some close those that they
/// know of.
int moved_up(int fd) noexcept {
  rlimit limit{};
  constexpr rlim_t high = 1000;  // not higher: the kernel's table is as long as the highest number
  if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return fd;
  const long up = raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC,
                      static_cast<long>(std::min(high, limit.rlim_cur - limit.rlim_cur / 8)));
  if (up < 0) return fd;
  raw(SYS_close, fd);
  return static_cast<int>(up);
}

bool is_ours(int fd) noexcept {
  return fd >= 0 &&
         (fd == epoll_.load(std::memory_order_relaxed) || fd == wake_.load(std::memory_order_relaxed));
}

std::pair<int, int> ours() noexcept {
  return std::minmax({epoll_.load(std::memory_order_relaxed), wake_.load(std::memory_order_relaxed)});
}

void close_ours() noexcept {
  for (const int fd : {epoll_.exchange(no_run, std::memory_order_seq_cst),
                       wake_.exchange(not_made, std::memory_order_seq_cst)})
    if (fd >= 0) raw(SYS_close, fd);
  making.forget_holder();
}

none_in_the_making::none_in_the_making() noexcept
    : held_(epoll_.load(std::memory_order_acquire) == not_made),
      blocks_(held_ && !godwit::detail::on_worker()) {
  if (blocks_) {  // a handler may close descriptors, too
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  if (held_) making.lock();
}
none_in_the_making::~none_in_the_making() {
  if (held_) making.unlock();
  if (blocks_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void prepare() noexcept {
  if (epoll_.load(std::memory_order_acquire) >= 0) return;
  const std::lock_guard hold(making);
  if (epoll_.load(std::memory_order_relaxed) >= 0) return;
  const int wake = moved_up(static_cast<int>(raw(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK)));
  const int made = moved_up(static_cast<int>(raw(SYS_epoll_create1, EPOLL_CLOEXEC)));
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.u64 = interrupt_tag;
  long watched = std::min(wake, made);
  if (watched >= 0) watched = raw(SYS_epoll_ctl, made, EPOLL_CTL_ADD, wake, &e);
  if (watched < 0)
    base::fatal("cannot wait for timers and descriptors: %s: raise the limit on open files (ulimit -n)",
                std::strerror(static_cast<int>(-watched)));
  wake_.store(wake, std::memory_order_relaxed);
  epoll_.store(made, std::memory_order_seq_cst);
  interrupt_early();  // EV4: who sleeps there comes back, and sleeps in epoll from now on
}

void interrupt() noexcept {
  if (epoll_.load(std::memory_order_acquire) < 0) {
    interrupt_early();
    if (epoll_.load(std::memory_order_seq_cst) < 0) return;  // EV4: after the exchange
  }
  if (interrupted.exchange(1, std::memory_order_seq_cst) != 0) return;  // EV2
  constexpr std::uint64_t one = 1;
  raw(SYS_write, wake_.load(std::memory_order_relaxed), &one, sizeof one);
}

void delay() noexcept {
  if (delay_us_ == 0) [[likely]]
    return;
  thread_local base::small_random random(base::fresh_seed());
  const std::uint64_t until = base::now_ns() + random.below(delay_us_ * 1000);
  while (base::now_ns() < until) base::pause();
}

void begin_run(std::uint32_t delay_us) noexcept {
  end_run();
  epoll_.store(not_made, std::memory_order_seq_cst);
  delay_us_ = delay_us;
}

void end_run() noexcept {
  clear_timers();
  clear_descriptors();
  close_ours();
  found_count = 0;
  interrupted.store(0, std::memory_order_seq_cst);
  early.store(0, std::memory_order_seq_cst);
  collecting.store(0, std::memory_order_seq_cst);
}

}  // namespace godwit::events
