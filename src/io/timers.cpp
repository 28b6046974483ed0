// Timers: a heap of deadlines under one lock. docs/protocols/events.md, "Timers"; models/park.pml,
// events.pml. Test: tests/io/timer_test.cpp.
//
// A 4-ary heap: most timers are stopped before they expire, from anywhere in the middle, and entries carry
// their deadline so that sifting touches no frames of other threads but to tell a timer its new place.
#include "io/timers.hpp"

#include "seams/timer.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/check.hpp"
#include "io/events.hpp"
#include "base/lock.hpp"
#include "base/world.hpp"

namespace godwit::events {

namespace {

using detail::timer;

// timer::state_. W under the lock, but TM2.
enum : std::uint32_t { idle, running, expiring, done };

struct entry {
  std::uint64_t deadline;
  timer* t;
};

/// Never destroyed: the drop-in's workers go on while exit destroys what is global.
union kept {
  constexpr kept() noexcept : heap() {}
  ~kept() {}
  std::vector<entry> heap;
};
constinit kept kept_;

base::short_lock lock;
constinit std::vector<entry>& heap = kept_.heap;  // W/R under lock
std::atomic<std::uint64_t> next{never};           // deadline of heap[0]. W under lock, R all
std::size_t cancellable = 0;                      // of those in the heap. W/R under lock
std::atomic<std::uint64_t> hastenings{0};         // W under lock, R all. CA5
// of who waits for events; 0: nobody. W it (0 without the lock), who interrupts it
std::atomic<std::uint64_t> sleeps_until{0};

void put(std::size_t at, entry e) noexcept {
  heap[at] = e;
  e.t->place_ = at;
}

void sift_up(std::size_t at, entry e) noexcept {
  for (; at != 0 && e.deadline < heap[(at - 1) / 4].deadline; at = (at - 1) / 4) put(at, heap[(at - 1) / 4]);
  put(at, e);
}

void sift_down(std::size_t at, entry e) noexcept {
  for (std::size_t first; (first = at * 4 + 1) < heap.size();) {
    std::size_t least = first;
    for (std::size_t i = first + 1; i < first + 4 && i < heap.size(); ++i)
      if (heap[i].deadline < heap[least].deadline) least = i;
    if (e.deadline <= heap[least].deadline) break;
    put(at, heap[least]);
    at = least;
  }
  put(at, e);
}

void take_out(std::size_t at) noexcept {
  GODWIT_ASSERT(at < heap.size() && heap[at].t->place_ == at, "a timer knows its place");
  GODWIT_ASSERT(next.load(std::memory_order_relaxed) == heap[0].deadline, "the earliest is known");
  if (heap[at].t->hastens) --cancellable;
  const entry last = heap.back();
  heap.pop_back();
  if (at < heap.size()) {
    if (at != 0 && last.deadline < heap[(at - 1) / 4].deadline)
      sift_up(at, last);
    else
      sift_down(at, last);
  }
  next.store(heap.empty() ? never : heap[0].deadline, std::memory_order_relaxed);
}

std::atomic_ref<std::uint32_t> state(timer* t) noexcept { return std::atomic_ref(t->state_); }

/// The heap has changed. True: a worker sleeps too long.
bool note_earliest() noexcept {
  const std::uint64_t earliest = heap[0].deadline;
  next.store(earliest, std::memory_order_relaxed);
  if (earliest >= sleeps_until.load(std::memory_order_relaxed)) return false;  // TM1
  sleeps_until.store(earliest, std::memory_order_relaxed);
  return true;
}

/// @p hastenings_seen: when it was found out that @p t may wait.
void start(timer* t, std::uint64_t hastenings_seen) noexcept {
  bool wake;
  {
    const std::lock_guard hold(lock);
    GODWIT_ASSERT(
        state(t).load(std::memory_order_relaxed) == idle || state(t).load(std::memory_order_relaxed) == done,
        "a timer is started once at a time");
    GODWIT_ASSERT(t->expired != nullptr, "a timer has a function");
    state(t).store(running, std::memory_order_relaxed);
    const bool at_once = t->hastens && hastenings.load(std::memory_order_relaxed) != hastenings_seen;  // CA5
    if (t->hastens) ++cancellable;
    heap.push_back({});
    sift_up(heap.size() - 1, {at_once ? 0 : t->deadline_ns, t});
    wake = note_earliest();
  }
  if (wake) interrupt();
}

void end_wait(timer* t) noexcept { unpark(static_cast<suspension*>(t->arg)->end()); }

}  // namespace

std::uint64_t next_deadline() noexcept { return next.load(std::memory_order_relaxed); }

std::uint64_t begin_sleep(std::uint64_t until) noexcept {
  const std::lock_guard hold(lock);
  if (!heap.empty() && heap[0].deadline < until) until = heap[0].deadline;
  sleeps_until.store(until, std::memory_order_relaxed);
  return until;
}

void end_sleep() noexcept { sleeps_until.store(0, std::memory_order_relaxed); }

void expire(std::uint64_t now) noexcept {
  constexpr std::size_t at_a_time = 64;
  timer* due[at_a_time];
  std::size_t count;
  do {
    count = 0;
    if (next_deadline() > now) return;
    {
      const std::lock_guard hold(lock);
      while (count < at_a_time && !heap.empty() && heap[0].deadline <= now) {
        timer* t = heap[0].t;
        GODWIT_ASSERT(state(t).load(std::memory_order_relaxed) == running, "what is in the heap runs");
        take_out(0);
        state(t).store(expiring, std::memory_order_relaxed);
        due[count++] = t;
      }
    }
    delay();
    for (std::size_t i = 0; i < count; ++i) {
      due[i]->expired(due[i]);
      delay();
      GODWIT_ASSERT(state(due[i]).load(std::memory_order_relaxed) == expiring,
                    "TM2: an expiring timer stays");
      state(due[i]).store(done, std::memory_order_release);  // TM2: gone, from here on
    }
  } while (count == at_a_time);
}

bool suspend_until(suspension& s, std::uint64_t deadline_ns, const char* what, bool& expired) noexcept {
  timer limit{deadline_ns, end_wait, &s};
  if (deadline_ns != 0) detail::start_timer(&limit);
  const bool undisturbed = s.suspend(what);
  expired = deadline_ns != 0 && !detail::stop_timer(&limit);
  return undisturbed;
}

void hasten_timers() noexcept {
  bool wake;
  {
    const std::lock_guard hold(lock);
    hastenings.store(hastenings.load(std::memory_order_relaxed) + 1, std::memory_order_release);  // CA5
    if (cancellable == 0) return;
    for (entry& e : heap)
      if (e.t->hastens) e.deadline = 0;
    for (std::size_t at = heap.size(); at-- != 0;) sift_down(at, heap[at]);
    wake = note_earliest();
  }
  if (wake) interrupt();
}

void clear_timers() noexcept {
  cancellable = 0;
  heap.clear();
  heap.shrink_to_fit();
  next.store(never, std::memory_order_relaxed);
  end_sleep();
}

}  // namespace godwit::events

namespace godwit::detail {

using namespace events;

void start_timer(timer* t) noexcept {
  GODWIT_ASSERT(!t->hastens, "a timer is cancellable by start_cancellable_timer");
  start(t, 0);
}

void start_cancellable_timer(timer* t) noexcept {
  const std::uint64_t seen = hastenings.load(std::memory_order_acquire);  // CA5: before the question
  const stop_time stop = when_to_stop();
  t->hastens = stop.may_come;
  t->deadline_ns = std::min(t->deadline_ns, stop.at_ns);
  start(t, seen);
}

bool stop_timer(timer* t) noexcept {
  if (state(t).load(std::memory_order_acquire) == done) return false;  // TM2
  {
    const std::lock_guard hold(lock);
    if (state(t).load(std::memory_order_relaxed) == running) {
      GODWIT_ASSERT(t->place_ < heap.size() && heap[t->place_].t == t, "a timer knows its place");
      take_out(t->place_);
      state(t).store(idle, std::memory_order_relaxed);
      return true;
    }
  }
  GODWIT_CHECK(state(t).load(std::memory_order_relaxed) != idle, "stop_timer: the timer was started");
  for (base::spin_wait w; state(t).load(std::memory_order_acquire) != done;) w.turn();  // TM2
  return false;
}

namespace {
bool sleep_by(void (*start)(timer*) noexcept, std::uint64_t deadline_ns, const place& where) noexcept {
  if (!on_worker()) return false;
  suspension w;
  timer t{deadline_ns, end_wait, &w};
  start(&t);
  w.suspend("sleep", where);
  stop_timer(&t);  // it has expired; but `expired` may not have come back yet
  return true;
}
}  // namespace

bool sleep_until_ns(std::uint64_t deadline_ns, const place& where) noexcept {
  return sleep_by(start_timer, deadline_ns, where);
}
bool doze_until_ns(std::uint64_t deadline_ns, const place& where) noexcept {
  return sleep_by(start_cancellable_timer, deadline_ns, where);
}

}  // namespace godwit::detail
