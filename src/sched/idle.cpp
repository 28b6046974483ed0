// Idleness: back-off, sleep, wake-up, the end of the run, deadlock detection. docs/protocols/idle.md and, for
// several hosts, idle_nodes.md; models/idle.pml, idle_nodes.pml. Events: events.md, models/events.pml.
//
// The words: node_words::idle, the idle workers of a host minus the letters between them;
// job_words::idle_nodes, the hosts that are idle minus the letters between hosts.
//   ID1  empty, then count: a worker counts as idle only when its deque, ready queue and mailbox are empty;
//        count, then take: it counts as running again before it touches any work. Only running workers make
//        work
//   ID2  a letter is counted before it is sent, until it has been answered
//   ID3  who brings the count to the number of workers (hosts) decides: nothing can ever happen again
//   ID5  policies whose waiting threads poll: who decides looks at all of them first; they are part of
//        "empty" in ID1
//   IN2  a host announces itself before it looks whether all its workers are idle; a worker that leaves
//        idleness counts itself before it looks whether its host is announced
// Lost wake-ups (publish, then look for sleepers, without a fence) cost at most one sleep period.
#include "sched/worker.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <unistd.h>

#include "base/check.hpp"
#include "base/world.hpp"

namespace godwit::sched {

namespace {

// Failed rounds before a worker counts as idle: some microseconds, so that short gaps cost no shared counter.
constexpr std::uint32_t rounds_before_idle = 256;
constexpr std::uint32_t rounds_before_idle_crowded = 16;
constexpr std::uint64_t signal_after_ns = 20'000;
constexpr std::uint64_t signal_every_ns = 50'000;
constexpr std::uint32_t longest_sleep_ms = 50;
constexpr std::uint64_t poll_every_ns = 100'000;             // own waiting threads, where they poll
constexpr std::uint32_t longest_sleep_between_hosts_ms = 4;  // nobody wakes us from another host

/// For assertions: a number of idle ones, less the letters between them, of @p all.
[[maybe_unused]] bool is_count(std::uint64_t n, std::uint32_t all) noexcept {
  return static_cast<std::int64_t>(n) <= static_cast<std::int64_t>(all);
}

}  // namespace

void worker::wake_one() noexcept {
  if (node_->sleepers.load(std::memory_order_relaxed) == 0) return;
  node_->wake.fetch_add(1, std::memory_order_release);  // MO3: a spare that it reaches passes it on
  // EV3: wake, then polling. (The kernel has a full barrier in between.)
  if (base::wake(node_->wake, 1) == 0 && node_->polling.load(std::memory_order_relaxed) != 0)
    hooks_.events->interrupt();
}

void worker::wake_all() noexcept {
  wake_all_of(*node_);
  if (node_->polling.load(std::memory_order_seq_cst) != 0) hooks_.events->interrupt();
}

/// Events from outside: true if there are some to deliver.
bool worker::collect_events(std::int64_t wait_ns) noexcept {
  if (has_events_) return true;
  if (hooks_.events == nullptr || node_->outside.load(std::memory_order_relaxed) == 0) return false;
  turns_ = 0;
  return has_events_ = hooks_.events->collect(wait_ns);
}

/// This worker counts as running. ID1, ID2
void worker::deliver_events() noexcept {
  GODWIT_ASSERT(!is_idle_, "ID1: events are delivered by a worker that counts as running");
  has_events_ = false;
  hooks_.events->deliver();
}

template <class F>
bool worker::any_image(F&& f) const noexcept {
  if (shape_.stacks != nullptr) {
    const std::uint64_t made = shape_.stacks->made();
    for (std::uint64_t i = 0; i <= made; ++i) {
      const std::uintptr_t end = i < made ? shape_.stacks->end_of_number(i) : shape_.stacks->root_end();
      const auto* block = static_cast<detail::thread_block*>(shape_.stacks->block_of(end - 1));
      if (block->suspended != nullptr &&
          f(*static_cast<const image*>(block->suspended),
            transport::index(transport::ref_worker(seg_->ref_of_any(block->suspended)))))
        return true;
    }
    return false;
  }
  for (std::uint32_t v = near_.first; v < near_.first + near_.count; ++v) {
    const std::byte* base = seg_->at(worker_no{v}, seg_->common());
    for (std::uint64_t i = seg_->at(worker_no{v}, words_)->live.load(std::memory_order_acquire); i != 0;) {
      const auto* o = reinterpret_cast<const object*>(base + i);
      i = o->next;
      // The lists may change under our eyes.
      std::atomic_thread_fence(std::memory_order_acquire);
      if (o->kind != object_kind::image || o->freed.load(std::memory_order_acquire) != 0) continue;
      if (f(*static_cast<const image*>(o), v)) return true;
    }
  }
  return false;
}

/// Anything that an idle worker should become running for? Cost: two lines of every worker of this host, and
/// now and then a round trip to another.
bool worker::sees_work() noexcept {
  if (node_->shutdown.load(std::memory_order_acquire) != 0) hooks_.exit_worker();
  serve_inbox();
  if (words_->mailbox.load(std::memory_order_relaxed) != 0 || collect_events(0)) return true;
  for (std::uint32_t i = 0; i < present(); ++i) {
    const public_words* p = seg_->at(worker_no{near_.first + i}, words_);
    if (p->top.load(std::memory_order_relaxed) < p->split.load(std::memory_order_relaxed)) return true;
    if (p->ready_count.load(std::memory_order_relaxed) != 0) return true;
  }
  if (polls() && sees_ready_waiter()) return true;
  return shape_.host_count > 1 && sees_far_work();
}

void worker::lock_gate() noexcept {
  base::lock(node_->gate, holder(), []() noexcept {
    this_worker().serve_inbox();
    base::give_way();
  });
}

void worker::become_running() noexcept {
  GODWIT_ASSERT(is_idle_, "who becomes running was idle");
  is_idle_ = false;
  [[maybe_unused]] const std::uint64_t idle_before =
      node_->idle.fetch_sub(1, std::memory_order_seq_cst);  // IN2
  GODWIT_ASSERT(is_count(idle_before, near_.count), "no more workers are idle than there are");
  if (node_->watch.load(std::memory_order_seq_cst) == until_work) call_monitor();  // MO1: asleep, then watch
  if (polls())
    // ID5: after the count, before any thread is touched
    node_->left_idleness.fetch_add(1, std::memory_order_seq_cst);
  if (shape_.host_count == 1 || node_->announced.load(std::memory_order_seq_cst) == 0) return;
  lock_gate();
  if (node_->announced.load(std::memory_order_relaxed) != 0) {
    // IN3: wait until it has taken effect: from then on nobody can decide that the run is over.
    [[maybe_unused]] const std::uint64_t idle_hosts =
        net_.remote_fetch_add(worker_no{0}, &job_->idle_nodes, ~std::uint64_t{0});
    GODWIT_ASSERT(is_count(idle_hosts, shape_.host_count), "no more hosts are idle than there are");
    node_->announced.store(0, std::memory_order_relaxed);
  }
  base::unlock(node_->gate, holder());  // IN3: the next one finds it done
}

void worker::become_idle() noexcept {
  // Somebody may wait for what has not been answered yet. First, because what has been makes threads ready.
  if (serve_others()) return;
  // A thief may be holding the lock of our ready queue just now: then there is still work here.
  if (words_->ready_count.load(std::memory_order_seq_cst) != 0 ||
      words_->mailbox.load(std::memory_order_seq_cst) != 0)
    return;
  if (polls() && sees_ready_waiter()) return;
  GODWIT_ASSERT(!is_idle_, "who becomes idle was running");
  GODWIT_ASSERT(deque_.empty(), "ID1: the deque of an idle worker is empty");
  is_idle_ = true;
  const std::uint64_t idle = node_->idle.fetch_add(1, std::memory_order_seq_cst) + 1;
  GODWIT_ASSERT(is_count(idle, near_.count), "no more workers are idle than there are");
  if (idle != near_.count) return;
  if (shape_.host_count > 1) {
    bool last = false;
    lock_gate();
    if (node_->announced.load(std::memory_order_relaxed) == 0) {
      node_->announced.store(1, std::memory_order_seq_cst);  // IN2
      if (node_->idle.load(std::memory_order_seq_cst) != near_.count) {
        node_->announced.store(0, std::memory_order_seq_cst);
      } else {
        const std::uint64_t hosts = net_.remote_fetch_add(worker_no{0}, &job_->idle_nodes, 1) + 1;  // IN1
        GODWIT_ASSERT(is_count(hosts, shape_.host_count), "no more hosts are idle than there are");
        last = hosts == shape_.host_count;
      }
    }
    base::unlock(node_->gate, holder());
    if (!last) return;
  }
  // ID3, IN1: nothing can happen any more
  if (polls() && !nothing_is_ready()) return;
  if (net_.remote_load(worker_no{0}, &job_->root_done, std::memory_order_acquire) == 0) report_deadlock();
  for (std::uint32_t h = 0; h < shape_.host_count; ++h)
    if (h != shape_.my_host)
      net_.far().call(worker_no{shape_.hosts[h].first}, static_cast<std::uint64_t>(call_no::shut_down), 0, 0);
  node_->shutdown.store(1, std::memory_order_release);
  wake_all();
  hooks_.exit_worker();
}

/// A look everywhere found nothing: let others use the CPU. Gives back whether there have been many such in a
/// row.
bool worker::end_of_round() noexcept {
  if (crowded_)
    base::give_way();
  else
    base::pause();
  return ++failed_rounds_ >= (crowded_ ? rounds_before_idle_crowded : rounds_before_idle);
}

/// Policies that poll (one host): all workers counted as idle -- but is perhaps some worker's waiting thread
/// ready, which that worker has not looked at yet? Then it will, and whoever reaches the count after that
/// decides. ID5
bool worker::nothing_is_ready() noexcept {
  const std::uint64_t epoch = node_->left_idleness.load(std::memory_order_seq_cst);
  // ID5: epoch, then count. They will bring it to N again
  if (node_->idle.load(std::memory_order_seq_cst) != near_.count) return false;
  if (any_image([&](const image& im, std::uint32_t) {
        // somebody left idleness: what we read may be torn
        if (node_->left_idleness.load(std::memory_order_seq_cst) != epoch) return true;
        const ref r = im.waiting_for;
        return im.parked_at == nullptr && (r == 0 || is_complete(r));
      }))
    return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  return node_->idle.load(std::memory_order_seq_cst) == near_.count &&
         node_->left_idleness.load(std::memory_order_seq_cst) == epoch;
}

/// An idle worker without visible work: ask for some, spin, in the end sleep.
void worker::wait_for_work() noexcept {
  GODWIT_ASSERT(is_idle_, "only idle workers sleep");
  for (std::uint32_t i = 0; i < present(); ++i)
    if (const worker_no v{near_.first + i}; v != me_) ask_for_work(*seg_, v);
  if (crowded_)
    base::give_way();
  else
    for (int i = 0; i < 4; ++i) base::pause();

  const std::uint64_t now = base::fast_ns();
  if (idle_since_ns_ == 0) idle_since_ns_ = now;
  if (opts_.expose_signal && now - idle_since_ns_ > signal_after_ns &&
      now - last_signal_ns_ > signal_every_ns) {
    last_signal_ns_ = now;
    signal_hoarders_of(*seg_, words_, worker_no{near_.first}, worker_no{near_.first + present()}, me_);
  }
  if (now - idle_since_ns_ < std::uint64_t{opts_.spin_us} * 1000) return;

  node_->sleepers.fetch_add(1, std::memory_order_seq_cst);
  words_->asleep.store(1, std::memory_order_seq_cst);
  const std::uint32_t seen = node_->wake.load(std::memory_order_seq_cst);
  if (!sees_work()) {
    ++words_->stats.sleeps;
    std::uint64_t ns = std::uint64_t{sleep_ms_} * 1'000'000;
    // in time for the next look at another host; the last one took a while itself
    if (shape_.host_count > 1) {
      const std::uint64_t asleep = base::fast_ns();
      ns = std::min(ns, next_far_ns_ > asleep ? next_far_ns_ - asleep : 1);
    }
    if (has_waiters()) ns = std::min(ns, poll_every_ns);
    const std::uint64_t before = account_.traced() ? base::fast_ns() : 0;
    bool waited = false;
    if (hooks_.events != nullptr && node_->outside.load(std::memory_order_relaxed) != 0 &&
        node_->polling.exchange(1, std::memory_order_seq_cst) == 0) {
      if (node_->wake.load(std::memory_order_seq_cst) == seen)  // EV3: polling, then wake
        static_cast<void>(collect_events(static_cast<std::int64_t>(ns)));
      node_->polling.store(0, std::memory_order_seq_cst);
      waited = true;
    }
    if (!waited) base::wait_on(node_->wake, seen, ns);
    if (account_.traced()) {
      const std::uint64_t after = base::fast_ns();
      account_.note(trace::kind::sleep, after, 0, 0, after - before);
    }
    const std::uint32_t longest = shape_.host_count > 1 ? longest_sleep_between_hosts_ms : longest_sleep_ms;
    if (sleep_ms_ < longest) sleep_ms_ = sleep_ms_ * 2 < longest ? sleep_ms_ * 2 : longest;
  }
  words_->asleep.store(0, std::memory_order_seq_cst);  // MO1
  node_->sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void worker::call_monitor() noexcept {
  std::uint32_t expected = until_work;
  if (node_->watch.compare_exchange_strong(expected, watching, std::memory_order_seq_cst))
    base::wake(node_->watch, 1);
}

/// A spare that counts as idle: sleep until the monitor calls.
void worker::rest() noexcept {
  GODWIT_ASSERT(is_idle_ && is_spare_, "only spares that count as idle rest");
  wake_one();  // MO3: one that came here was for a worker that looks for work
  node_->resting.fetch_add(1, std::memory_order_seq_cst);
  words_->asleep.store(1, std::memory_order_seq_cst);
  for (;;) {
    const std::uint32_t seen =
        node_->spare_wake.load(std::memory_order_seq_cst);  // MO2: spare_wake, then what it stands for
    if (node_->shutdown.load(std::memory_order_seq_cst) != 0) hooks_.exit_worker();
    if (node_->up.load(std::memory_order_seq_cst) > spare_number_) break;
    base::wait_for_bits(node_->spare_wake, seen, spare_bit(spare_number_));
  }
  words_->asleep.store(0, std::memory_order_seq_cst);
  node_->resting.fetch_sub(1, std::memory_order_seq_cst);
  idle_since_ns_ = 0;
  sleep_ms_ = 1;
}

/// All workers are idle and the root thread waits: say who waits for what, and end the run.
void worker::report_deadlock() noexcept {
  char text[1600];
  int used = 0;
  unsigned found = 0;
  any_image([&](const image& im, std::uint32_t v) {
    if (im.parked_at == nullptr && im.waiting_for == 0) return false;  // it yielded: there is no place
    if (++found > 6 || used > 1300) return false;
    used += std::snprintf(text + used, sizeof text - static_cast<std::size_t>(used),
                          "\n  thread of %llu B, suspended on worker %u, waits at %s:%u (%s) for ",
                          static_cast<unsigned long long>(im.top - im.low), v,
                          im.where.file != nullptr ? im.where.file : "?", im.where.line,
                          im.where.function != nullptr ? im.where.function : "?");
    if (im.parked_at != nullptr)
      used += std::snprintf(text + used, sizeof text - static_cast<std::size_t>(used), "a %s", im.parked_at);
    else
      used += std::snprintf(text + used, sizeof text - static_cast<std::size_t>(used), "record %u:%llx",
                            transport::index(transport::ref_worker(im.waiting_for)),
                            static_cast<unsigned long long>(transport::ref_offset(im.waiting_for)));
    return false;
  });
  text[used] = '\0';
  char message[sizeof text + 256];
  if (shape_.host_count > 1)
    std::snprintf(
        message, sizeof message,
        "deadlock: all %u workers are idle but the root thread is not done; outstanding joins on host %u "
        "(of %u hosts): %u%s%s",
        workers_, shape_.my_host, shape_.host_count, found, text, found > 6 ? "\n  ..." : "");
  else
    std::snprintf(
        message, sizeof message,
        "deadlock: all %u workers are idle but the root thread is not done; outstanding joins: %u%s%s",
        workers_ - shape_.spares, found, text, found > 6 ? "\n  ..." : "");
  fail_run(message);
}

void worker::fail_run(const char* text) noexcept {
  if (!shape_.in_process) base::fatal("%s", text);
  std::uint64_t expected = 0;
  if (node_->failed.compare_exchange_strong(expected, 1, std::memory_order_seq_cst)) {
    std::snprintf(node_->message, sizeof node_->message, "%s", text);
    node_->failed.store(2, std::memory_order_release);
  }
  node_->shutdown.store(1, std::memory_order_release);
  wake_all();
  hooks_.exit_worker();
  __builtin_unreachable();
}

}  // namespace godwit::sched
