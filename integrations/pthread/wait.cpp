// See wait.hpp.
#include "wait.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seams/park.hpp"
#include "seams/timer.hpp"

#include "foreign.hpp"
#include "signals.hpp"
#include "thread.hpp"
#include "tls.hpp"

GODWIT_REAL(pthread_setcancelstate);
GODWIT_REAL(pthread_setcanceltype);

namespace godwit::pthread {

namespace {

struct queue;

/// One who waits. In its frame; gone as soon as it runs again.
struct node {
  node* next = nullptr;  // in its queue; later in who takes it out
  node* prev = nullptr;
  const void* address = nullptr;
  queue* in = nullptr;
  detail::waiter* who = nullptr;  // lightweight; W before the queue's lock opens
  const void* of = nullptr;       // a lightweight thread, or the block of an OS thread
  bool light = false, cancellable = false, interruptible = false;
  waited why = waited::woken;
  std::atomic<std::uint32_t> done{0};  // OS threads: futex
};

struct alignas(64) queue {
  std::atomic<std::uint32_t> locked{0};
  node* first = nullptr;
  node* last = nullptr;

  void lock() noexcept {
    for (unsigned spins = 0; locked.exchange(1, std::memory_order_acquire) != 0;)
      if (++spins % 64 == 0)
        ::sched_yield();
      else
        __builtin_ia32_pause();
  }
  void unlock() noexcept { locked.store(0, std::memory_order_release); }
  void push(node& n) noexcept {
    n.prev = last;
    n.next = nullptr;
    (last != nullptr ? last->next : first) = &n;
    last = &n;
  }
  void remove(node& n) noexcept {
    (n.prev != nullptr ? n.prev->next : first) = n.next;
    (n.next != nullptr ? n.next->prev : last) = n.prev;
    n.in = nullptr;
  }
};

constexpr unsigned queue_bits = 10;
queue queues_[1 << queue_bits];

queue& queue_of(const void* address) noexcept {
  return queues_[(reinterpret_cast<std::uintptr_t>(address) * 0x9E3779B97F4A7C15ull) >> (64 - queue_bits)];
}

/// Taken out of its queue, whose lock is open again.
void go_on(node* n) noexcept {
  if (n->light) {
    resume_waiter(n->who);
    return;
  }
  std::atomic<std::uint32_t>* word = &n->done;
  word->store(1, std::memory_order_release);
  // It may be gone already: then this wakes nobody, or somebody who looks again.
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void expired(detail::timer* t) noexcept {
  node& n = *static_cast<node*>(t->arg);
  queue& q = queue_of(n.address);
  q.lock();
  const bool waits = n.in != nullptr;
  if (waits) {
    q.remove(n);
    n.why = waited::timed_out;
  }
  q.unlock();
  if (waits) go_on(&n);
}

bool publish(void* arg, detail::waiter* self) noexcept {
  node& n = *static_cast<node*>(arg);
  n.who = self;
  n.in->unlock();
  return true;
}

/// n is in its queue, which is locked.
waited wait_light(node& n, const wait_options& how) noexcept {
  detail::timer t;
  if (how.deadline_ns != no_deadline) {
    t.deadline_ns = how.deadline_ns;
    t.expired = expired;
    t.arg = &n;
    detail::start_timer(&t);
  }
  on_own_stack([&] { detail::park(publish, &n, detail::wakes::inside, how.what, {}); });
  // also if it has expired: it may not have come back yet
  if (how.deadline_ns != no_deadline) detail::stop_timer(&t);
  return n.why;
}

waited wait_heavy(queue& q, node& n, const wait_options& how) noexcept {
  while (n.done.load(std::memory_order_acquire) == 0) {
    timespec limit{};
    if (how.deadline_ns != no_deadline)
      limit = {static_cast<time_t>(how.deadline_ns / 1'000'000'000),
               static_cast<long>(how.deadline_ns % 1'000'000'000)};
    const long r =
        ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&n.done), FUTEX_WAIT_BITSET_PRIVATE, 0,
                  how.deadline_ns != no_deadline ? &limit : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
    if (r == 0 || (errno != ETIMEDOUT && !(errno == EINTR && how.interruptible))) continue;
    const waited why = errno == EINTR ? waited::interrupted : waited::timed_out;
    const all_blocked none;
    q.lock();
    const bool waits = n.in != nullptr;
    if (waits) q.remove(n);
    q.unlock();
    if (waits) return why;
  }
  return n.why;
}

/// What a wait asks about the caller's cancellation.
class cancellation {
 public:
  cancellation() noexcept : t_(is_light() ? self() : nullptr) {
    if (t_ != nullptr)
      type_ = t_->cancel_type;
    else  // not while its node is in a queue, where it would stay
      REAL(pthread_setcanceltype)(PTHREAD_CANCEL_DEFERRED, &type_);
  }
  ~cancellation() {
    if (t_ == nullptr) REAL(pthread_setcanceltype)(type_, nullptr);
  }
  cancellation(const cancellation&) = delete;
  bool asynchronous() const noexcept { return type_ == PTHREAD_CANCEL_ASYNCHRONOUS; }
  bool enabled() const noexcept {
    if (t_ != nullptr) return t_->cancel_enabled && !t_->ending;
    int state = 0;
    REAL(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, &state);
    REAL(pthread_setcancelstate)(state, nullptr);
    return state == PTHREAD_CANCEL_ENABLE && !of_os_thread().ends;
  }
  bool asked() const noexcept {
    return t_ != nullptr ? t_->cancel_asked.load(std::memory_order_seq_cst) : of_os_thread().asked;
  }

 private:
  static tls::cancel_bits of_os_thread() noexcept {
    return tls::cancel_bits_of(reinterpret_cast<const char*>(::pthread_self()));
  }
  thread* t_;
  int type_ = PTHREAD_CANCEL_DEFERRED;
};

waited wait_once(const void* address, const std::uint32_t* word, std::uint32_t expected,
                 const wait_options& how) noexcept {
  const int before = errno;
  thread* t = is_light() ? self() : nullptr;
  const cancellation cancels;
  node n;
  n.address = address;
  n.light = t != nullptr;
  n.of = n.light ? t : reinterpret_cast<const void*>(::pthread_self());
  // Asynchronous cancellation: every wait is a place for it.
  n.cancellable = (how.cancellable || cancels.asynchronous()) && cancels.enabled();
  n.interruptible = n.light || how.interruptible;
  // Before the look at what would disturb us: who disturbs sets its word first and looks here then (disturb).
  if (t != nullptr) t->waits_under.store(address, std::memory_order_seq_cst);
  queue& q = queue_of(address);
  waited result = waited::woken;
  {
    const all_blocked none;
    q.lock();
    if (n.cancellable && cancels.asked())
      result = waited::cancelled;
    else if (t != nullptr && n.interruptible && t->has_signals())
      result = waited::interrupted;
    else if (word != nullptr && __atomic_load_n(word, __ATOMIC_SEQ_CST) != expected)
      result = waited::changed;
    if (result == waited::woken) {
      n.in = &q;
      q.push(n);
    }
    if (result != waited::woken || !n.light) q.unlock();  // else when it is saved: publish
  }
  if (result == waited::woken) result = n.light ? wait_light(n, how) : wait_heavy(q, n, how);
  if (t != nullptr) t->waits_under.store(nullptr, std::memory_order_relaxed);
  errno = before;
  return result;
}

waited wait_in_turns(const std::uint32_t* word, std::uint32_t expected, const wait_options& how) noexcept {
  bool first = true;
  for (std::uint64_t pause_ns = 20'000;;
       pause_ns = pause_ns < 1'000'000 ? pause_ns * 2 : pause_ns, first = false) {
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != expected) return first ? waited::changed : waited::woken;
    const std::uint64_t now = now_ns();
    if (how.deadline_ns != no_deadline && now >= how.deadline_ns) return waited::timed_out;
    wait_options turn = how;
    turn.deadline_ns =
        how.deadline_ns != no_deadline ? std::min(how.deadline_ns, now + pause_ns) : now + pause_ns;
    // Under the word: who is in this process, and wakes (syscall), is heard at once.
    if (const waited w = wait_once(word, word, expected, turn);
        w != waited::timed_out && w != waited::changed)
      return w;
  }
}

/// Signals are handled in every wait: those that they do not interrupt go on.
waited wait_in_queue(const void* address, const std::uint32_t* word, std::uint32_t expected,
                     const wait_options& how) {
  for (;;) {
    const waited w =
        how.shared ? wait_in_turns(word, expected, how) : wait_once(address, word, expected, how);
    if (w == waited::cancelled && !how.cancellable) end_by_cancel();
    if (w == waited::interrupted && how.interruptible) return w;
    // Also those that came when it was about to go on anyway: before the program's next step.
    if (const thread* t = self(); t != nullptr && t->has_signals()) {
      const int before = errno;
      handle_signals();
      errno = before;
    }
    if (w != waited::interrupted) return w;
  }
}

}  // namespace

waited wait_while(const std::uint32_t* word, std::uint32_t expected, const wait_options& how) {
  return wait_in_queue(word, word, expected, how);
}
waited wait_under(const void* address, const wait_options& how) {
  return wait_in_queue(address, nullptr, 0, how);
}

unsigned wake(const void* address, unsigned most) noexcept {
  queue& q = queue_of(address);
  node* taken = nullptr;
  node** end = &taken;
  unsigned count = 0;
  const all_blocked none;
  q.lock();
  for (node* n = q.first; n != nullptr && count < most;) {
    node* next = n->next;
    if (n->address == address) {
      q.remove(*n);
      n->why = waited::woken;
      n->next = nullptr;
      *end = n;
      end = &n->next;
      ++count;
    }
    n = next;
  }
  q.unlock();
  while (taken != nullptr) {
    node* next = taken->next;  // it is gone once it goes on
    go_on(taken);
    taken = next;
  }
  return count;
}

namespace {
/// The thread @p of goes on, if it waits there and may be disturbed; @p sent as for disturb, null: false.
bool end_wait(queue& q, const void* of, waited why, const thread* sent) noexcept {
  q.lock();
  node* n = q.first;
  while (n != nullptr && n->of != of) n = n->next;
  if (n != nullptr && sent != nullptr && sent->signals.load(std::memory_order_seq_cst) == 0) n = nullptr;
  if (n != nullptr && !(why == waited::cancelled ? n->cancellable : n->interruptible)) n = nullptr;
  if (n != nullptr) {
    q.remove(*n);
    n->why = why;
  }
  q.unlock();
  if (n != nullptr) go_on(n);
  return n != nullptr;
}
}  // namespace

bool disturb(thread& t, waited why, bool sent) noexcept {
  const all_blocked none;
  if (disturb_io(t, why == waited::cancelled, sent)) return true;
  const void* address = t.waits_under.load(std::memory_order_seq_cst);  // it set its word before: wait_once
  return address != nullptr && end_wait(queue_of(address), &t, why, sent ? &t : nullptr);
}

void disturb_os_thread(pthread_t th) noexcept {
  const all_blocked none;
  // It may end at any time, so that nothing of it can be asked: not even where it waits.
  for (queue& q : queues_)
    if (end_wait(q, reinterpret_cast<const void*>(th), waited::cancelled, nullptr)) return;
}

void forget_waiters() noexcept {
  for (queue& q : queues_) {
    q.locked.store(0, std::memory_order_relaxed);
    q.first = q.last = nullptr;
  }
}

namespace {
std::uint64_t read_clock(int clock) noexcept {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}
}  // namespace

std::uint64_t now_ns() noexcept { return read_clock(CLOCK_MONOTONIC); }

when deadline_of(int clock, const timespec* at) noexcept {
  if (at->tv_nsec < 0 || at->tv_nsec >= 1'000'000'000) return {false, 0};
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME && clock != CLOCK_TAI)
    return {false, 0};
  if (at->tv_sec < 0) return {true, 1};  // long ago
  constexpr std::int64_t far = std::int64_t{1} << 61;
  const std::int64_t then = at->tv_sec < far / 1'000'000'000 ? at->tv_sec * 1'000'000'000 + at->tv_nsec : far;
  if (clock == CLOCK_MONOTONIC) return {true, then > 0 ? static_cast<std::uint64_t>(then) : 1};
  const auto left = then - static_cast<std::int64_t>(read_clock(clock));
  return {true, left > 0 ? now_ns() + static_cast<std::uint64_t>(left) : 1};
}

}  // namespace godwit::pthread
