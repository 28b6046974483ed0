// Idleness: back-off, sleep, wake-up, the end of the run, deadlock detection. docs/protocols/idle.md and, for
// several hosts, idle_nodes.md; models/idle.pml, idle_nodes.pml.
//
// The words: node_words::idle, the idle workers of a host minus the letters between them;
// job_words::idle_nodes,
// the hosts that are idle minus the letters between hosts.
//   I1  empty, then count: a worker counts as idle only when its deque, ready queue and mailbox are empty;
//       count, then take: it counts as running again before it touches any work. Only running workers make
//       work
//   I2  a letter is counted before it is sent, until it has been answered
//   I3  who brings the count to the number of workers (hosts) decides: nothing can ever happen again
//   I5  policies whose waiting threads poll: who decides looks at all of them first; they are part of "empty" in I1
//   I4  a host announces itself before it looks whether all its workers are idle; a worker that leaves
// idleness
//       counts itself before it looks whether its host is announced
// Lost wake-ups (publish, then look for sleepers, without a fence) cost at most one sleep period.
#include "sched/worker.hpp"

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.hpp"

namespace godwit::sched {

namespace {

// Failed rounds before a worker counts as idle: some microseconds, so that short gaps cost no shared counter.
constexpr std::uint32_t rounds_before_idle = 256;
constexpr std::uint32_t rounds_before_idle_crowded = 16;
constexpr std::uint64_t signal_after_ns = 20'000;
constexpr std::uint64_t signal_every_ns = 50'000;
constexpr std::uint32_t longest_sleep_ms = 50;
constexpr std::uint64_t poll_every_ns = 100'000;  // own waiting threads, where they poll
constexpr std::uint32_t longest_sleep_between_hosts_ms = 4;  // nobody wakes us from another host

long futex(std::atomic<std::uint32_t>* word, int op, std::uint32_t value, const timespec* timeout) noexcept {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), op, value, timeout, nullptr, 0);
}

}  // namespace

void worker::wake_one() noexcept {
  if (node_->sleepers.load(std::memory_order_relaxed) == 0) return;
  node_->wake.fetch_add(1, std::memory_order_release);
  futex(&node_->wake, FUTEX_WAKE, 1, nullptr);
}

void worker::wake_all() noexcept { wake_all_of(*node_); }

/// Anything that an idle worker should become running for? Cost: two lines of every worker of this host, and
/// now and then a round trip to another.
bool worker::sees_work() noexcept {
  if (node_->shutdown.load(std::memory_order_acquire) != 0) hooks_.exit_worker();
  serve_inbox();
  if (words_->mailbox.load(std::memory_order_relaxed) != 0) return true;
  for (std::uint32_t i = 0; i < near_.count; ++i) {
    const public_words* p = seg_->at(worker_no{near_.first + i}, words_);
    if (p->top.load(std::memory_order_relaxed) < p->split.load(std::memory_order_relaxed)) return true;
    if (p->ready_count.load(std::memory_order_relaxed) != 0) return true;
  }
  if (polls() && sees_ready_waiter()) return true;
  return shape_.host_count > 1 && sees_far_work();
}

void worker::lock_gate() noexcept {
  lock_own(node_->gate, []() noexcept {
    this_worker().serve_inbox();
    sched_yield();
  });
}

void worker::become_running() noexcept {
  is_idle_ = false;
  node_->idle.fetch_sub(1);                        // I4
  if (polls()) node_->left_idleness.fetch_add(1);  // I5: after the count, before any thread is touched
  if (shape_.host_count == 1 || node_->announced.load() == 0) return;
  lock_gate();
  if (node_->announced.load(std::memory_order_relaxed) != 0) {
    // Wait until it has taken effect: from then on nobody can decide that the run is over.
    net_.remote_fetch_add(worker_no{0}, &job_->idle_nodes, ~std::uint64_t{0});
    node_->announced.store(0, std::memory_order_relaxed);
  }
  node_->gate.store(0, std::memory_order_release);
}

void worker::become_idle() noexcept {
  // Somebody may wait for what has not been answered yet. First, because what has been makes threads ready.
  if (serve_others()) return;
  // A thief may be holding the lock of our ready queue just now: then there is still work here.
  if (words_->ready_count.load() != 0 || words_->mailbox.load() != 0) return;
  if (polls() && sees_ready_waiter()) return;
  is_idle_ = true;
  if (node_->idle.fetch_add(1) + 1 != near_.count) return;
  if (shape_.host_count > 1) {
    bool last = false;
    lock_gate();
    if (node_->announced.load(std::memory_order_relaxed) == 0) {
      node_->announced.store(1);  // I4
      if (node_->idle.load() != near_.count)
        node_->announced.store(0);
      else
        last = net_.remote_fetch_add(worker_no{0}, &job_->idle_nodes, 1) + 1 == shape_.host_count;
    }
    node_->gate.store(0, std::memory_order_release);
    if (!last) return;
  }
  // I3
  if (polls() && !nothing_is_ready()) return;
  if (net_.remote_load(worker_no{0}, &job_->root_done, std::memory_order_acquire) == 0) report_deadlock();
  for (std::uint32_t h = 0; h < shape_.host_count; ++h)
    if (h != shape_.my_host)
      net_.far().call(worker_no{shape_.hosts[h].first}, static_cast<std::uint64_t>(call_no::shut_down), 0, 0);
  node_->shutdown.store(1, std::memory_order_release);
  wake_all();
  hooks_.exit_worker();
}

/// A look everywhere found nothing: let others use the CPU. Gives back whether there have been many such in a row.
bool worker::end_of_round() noexcept {
  if (crowded_)
    sched_yield();
  else
    base::spin_pause();
  return ++failed_rounds_ >= (crowded_ ? rounds_before_idle_crowded : rounds_before_idle);
}

/// Policies that poll (one host): all workers counted as idle -- but is perhaps some worker's waiting thread ready, which
/// that worker has not looked at yet? Then it will, and whoever reaches the count after that decides. I5
bool worker::nothing_is_ready() noexcept {
  const std::uint64_t epoch = node_->left_idleness.load();
  if (node_->idle.load() != near_.count) return false;  // I5: epoch, then count. They will bring it to N again
  for (std::uint32_t v = near_.first; v < near_.first + near_.count; ++v) {
    const std::byte* base = seg_->at(worker_no{v}, seg_->common());
    for (std::uint64_t i = seg_->at(worker_no{v}, words_)->live.load(std::memory_order_acquire); i != 0;) {
      const auto* o = reinterpret_cast<const object*>(base + i);
      i = o->next;
      // Somebody left idleness: the lists may change under our eyes.
      std::atomic_thread_fence(std::memory_order_acquire);
      if (node_->left_idleness.load() != epoch) return false;
      if (o->kind != object_kind::image || o->freed.load(std::memory_order_acquire) != 0) continue;
      const ref r = static_cast<const image*>(o)->waiting_for;
      if (r == 0 || is_complete(r)) return false;
    }
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return node_->idle.load() == near_.count && node_->left_idleness.load() == epoch;
}

/// An idle worker without visible work: ask for some, spin, in the end sleep.
void worker::wait_for_work() noexcept {
  for (std::uint32_t i = 0; i < near_.count; ++i)
    if (const worker_no v{near_.first + i}; v != me_) ask_for_work(*seg_, v);
  if (crowded_)
    sched_yield();
  else
    for (int i = 0; i < 4; ++i) base::spin_pause();

  const std::uint64_t now = base::fast_ns();
  if (idle_since_ns_ == 0) idle_since_ns_ = now;
  if (opts_.expose_signal && now - idle_since_ns_ > signal_after_ns &&
      now - last_signal_ns_ > signal_every_ns) {
    last_signal_ns_ = now;
    signal_hoarders_of(*seg_, words_, worker_no{near_.first}, worker_no{near_.first + near_.count}, me_);
  }
  if (now - idle_since_ns_ < std::uint64_t{opts_.spin_us} * 1000) return;

  node_->sleepers.fetch_add(1);
  const std::uint32_t seen = node_->wake.load();
  if (!sees_work()) {
    ++words_->stats.sleeps;
    std::uint64_t ns = std::uint64_t{sleep_ms_} * 1'000'000;
    if (shape_.host_count > 1) {  // in time for the next look at another host; the last one took a while itself
      const std::uint64_t asleep = base::fast_ns();
      ns = std::min(ns, next_far_ns_ > asleep ? next_far_ns_ - asleep : 1);
    }
    if (has_waiters()) ns = std::min(ns, poll_every_ns);
    const timespec period{0, static_cast<long>(ns)};
    const std::uint64_t before = trace_.on() ? base::fast_ns() : 0;
    futex(&node_->wake, FUTEX_WAIT, seen, &period);
    if (trace_.on()) {
      const std::uint64_t after = base::fast_ns();
      note(trace::kind::sleep, after, 0, 0, after - before);
    }
    const std::uint32_t longest = shape_.host_count > 1 ? longest_sleep_between_hosts_ms : longest_sleep_ms;
    if (sleep_ms_ < longest) sleep_ms_ = sleep_ms_ * 2 < longest ? sleep_ms_ * 2 : longest;
  }
  node_->sleepers.fetch_sub(1);
}

/// All workers are idle and the root thread waits: say who waits for what, and end the run.
void worker::report_deadlock() noexcept {
  char text[1600];
  int used = 0;
  unsigned found = 0;
  for (std::uint32_t v = near_.first; v < near_.first + near_.count; ++v) {
    const std::byte* base = seg_->at(worker_no{v}, seg_->common());
    for (std::uint64_t i = seg_->at(worker_no{v}, words_)->live.load(std::memory_order_acquire); i != 0;) {
      const auto* o = reinterpret_cast<const object*>(base + i);
      i = o->next;
      if (o->kind != object_kind::image || o->freed.load(std::memory_order_acquire) != 0) continue;
      const auto* im = static_cast<const image*>(o);
      if (++found > 6 || used > 1300) continue;
      used += std::snprintf(
          text + used, sizeof text - static_cast<std::size_t>(used),
          "\n  thread of %llu B, suspended on worker %u, waits at %s:%u (%s) for record %u:%llx",
          static_cast<unsigned long long>(im->top - im->low), v,
          im->where.file != nullptr ? im->where.file : "?", im->where.line,
          im->where.function != nullptr ? im->where.function : "?",
          transport::index(transport::ref_worker(im->waiting_for)),
          static_cast<unsigned long long>(transport::ref_offset(im->waiting_for)));
    }
  }
  text[used] = '\0';
  if (shape_.host_count > 1)
    base::fatal("deadlock: all %u workers are idle but the root thread is not done; outstanding joins on host %u "
                "(of %u hosts): %u%s%s",
                workers_, shape_.my_host, shape_.host_count, found, text, found > 6 ? "\n  ..." : "");
  base::fatal("deadlock: all %u workers are idle but the root thread is not done; outstanding joins: %u%s%s",
              workers_, found, text, found > 6 ? "\n  ..." : "");
}

}  // namespace godwit::sched
