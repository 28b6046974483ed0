// Idleness: back-off, sleep, wake-up, the end of the run, deadlock detection. docs/protocols/idle.md,
// models/idle.pml.
//
// The word: run_words::idle, the number of idle workers minus the letters on their way.
//   I1  empty, then count: a worker counts as idle only when its deque, ready queue and mailbox are empty;
//       count, then take: it counts as running again before it touches any work. Only running workers make
//       work
//   I2  a letter is counted before it is sent, until it has been answered
//   I3  who brings the count to the number of workers decides: nothing can ever happen again
// Lost wake-ups (publish, then look for sleepers, without a fence) cost at most one sleep period.
#include "sched/worker.hpp"

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

constexpr std::uint64_t signal_after_ns = 20'000;
constexpr std::uint64_t signal_every_ns = 50'000;
constexpr std::uint32_t longest_sleep_ms = 50;

long futex(std::atomic<std::uint32_t>* word, int op, std::uint32_t value, const timespec* timeout) noexcept {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), op, value, timeout, nullptr, 0);
}

}  // namespace

void worker::wake_one() noexcept {
  if (run_->sleepers.load(std::memory_order_relaxed) == 0) return;
  run_->wake.fetch_add(1, std::memory_order_release);
  futex(&run_->wake, FUTEX_WAKE, 1, nullptr);
}

void worker::wake_all() noexcept {
  run_->wake.fetch_add(1, std::memory_order_release);
  futex(&run_->wake, FUTEX_WAKE, INT_MAX, nullptr);
}

/// Anything that an idle worker should become running for? Cost: two lines of every worker.
bool worker::sees_work() noexcept {
  if (run_->shutdown.load(std::memory_order_acquire) != 0) hooks_.exit_worker();
  if (words_->mailbox.load(std::memory_order_relaxed) != 0) return true;
  for (std::uint32_t v = 0; v < workers_; ++v) {
    const public_words* p = seg_->at(worker_no{v}, words_);
    if (p->top.load(std::memory_order_relaxed) < p->split.load(std::memory_order_relaxed)) return true;
    if (p->ready_count.load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

void worker::become_running() noexcept {
  is_idle_ = false;
  run_->idle.fetch_sub(1);
}

void worker::become_idle() noexcept {
  // A thief may be holding the lock of our ready queue just now: then there is still work here.
  if (words_->ready_count.load() != 0 || words_->mailbox.load() != 0) return;
  is_idle_ = true;
  if (run_->idle.fetch_add(1) + 1 != workers_) return;  // I3
  if (run_->root_done.load(std::memory_order_acquire) == 0) report_deadlock();
  run_->shutdown.store(1, std::memory_order_release);
  wake_all();
  hooks_.exit_worker();
}

/// Somebody computes without spawning and sits on private continuations: interrupt it.
void worker::signal_hoarders() noexcept {
  auto* hot = reinterpret_cast<detail::hot_words*>(seg_->common());
  for (std::uint32_t v = 0; v < workers_; ++v) {
    if (worker_no{v} == me_) continue;
    detail::hot_words* theirs = seg_->at(worker_no{v}, hot);
    // A racy look at the owner's words: a wrong guess costs one signal.
    if (__atomic_load_n(&theirs->bottom, __ATOMIC_RELAXED) >
        __atomic_load_n(&theirs->split, __ATOMIC_RELAXED))
      kill(static_cast<pid_t>(seg_->at(worker_no{v}, words_)->pid.load(std::memory_order_relaxed)), SIGURG);
  }
}

/// An idle worker without visible work: ask for some, spin, in the end sleep.
void worker::wait_for_work() noexcept {
  auto* hot = reinterpret_cast<detail::hot_words*>(seg_->common());
  for (std::uint32_t v = 0; v < workers_; ++v) {
    auto& poll = seg_->at(worker_no{v}, hot)->poll;
    if (worker_no{v} != me_ && poll.load(std::memory_order_relaxed) == 0)
      poll.store(1, std::memory_order_relaxed);
  }
  if (crowded_)
    sched_yield();
  else
    for (int i = 0; i < 4; ++i) base::spin_pause();

  const std::uint64_t now = base::now_ns();
  if (idle_since_ns_ == 0) idle_since_ns_ = now;
  if (opts_.expose_signal && now - idle_since_ns_ > signal_after_ns &&
      now - last_signal_ns_ > signal_every_ns) {
    last_signal_ns_ = now;
    signal_hoarders();
  }
  if (now - idle_since_ns_ < std::uint64_t{opts_.spin_us} * 1000) return;

  run_->sleepers.fetch_add(1);
  const std::uint32_t seen = run_->wake.load();
  if (!sees_work()) {
    ++words_->stats.sleeps;
    const timespec period{0, static_cast<long>(sleep_ms_) * 1'000'000};
    futex(&run_->wake, FUTEX_WAIT, seen, &period);
    if (sleep_ms_ < longest_sleep_ms)
      sleep_ms_ = sleep_ms_ * 2 < longest_sleep_ms ? sleep_ms_ * 2 : longest_sleep_ms;
  }
  run_->sleepers.fetch_sub(1);
}

/// All workers are idle and the root thread waits: say who waits for what, and end the run.
void worker::report_deadlock() noexcept {
  char text[1600];
  int used = 0;
  unsigned found = 0;
  for (std::uint32_t v = 0; v < workers_; ++v) {
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
  base::fatal("deadlock: all %u workers are idle but the root thread is not done; outstanding joins: %u%s%s",
              workers_, found, text, found > 6 ? "\n  ..." : "");
}

}  // namespace godwit::sched
