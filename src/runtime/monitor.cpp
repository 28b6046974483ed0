// See monitor.hpp. MO1, MO2: docs/protocols/monitor.md.
#include "runtime/monitor.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/world.hpp"
#include "runtime/run_common.hpp"
#include "sched/far_calls.hpp"

namespace godwit::runtime {

namespace {

constexpr std::uint64_t look_every_ns = 5'000'000;
constexpr unsigned looks_blocked = 2;     // without progress and without CPU time: it waits in a system call
constexpr unsigned looks_computing = 10;  // without progress: it computes, or spins
constexpr unsigned looks_before_lower = 40;

}  // namespace

monitor::monitor(const monitor_setup& setup) : setup_(setup), seen_(setup.regular + setup.spares) {
  node().idle.store(setup_.spares, std::memory_order_relaxed);
  node().present.store(setup_.regular, std::memory_order_relaxed);
}

sched::public_words& monitor::words(std::uint32_t number) const noexcept {
  return words_of(*setup_.memory, transport::worker_no{number}).worker;
}

sched::node_words& monitor::node() const noexcept { return host_words(*setup_.memory); }

void monitor::worker_ended(sched::node_words& node) noexcept {
  if (node.watch.exchange(sched::watching, std::memory_order_seq_cst) != sched::watching)
    base::wake(node.watch, 1);
}

/// In a system call, or computing for long. Else it is free, or threads come and go there.
bool monitor::is_stuck(std::uint32_t number) noexcept {
  sched::public_words& w = words(number);
  seen& s = seen_[number];
  const std::uint64_t progress = __atomic_load_n(&w.stats.resumes, __ATOMIC_RELAXED) +
                                 __atomic_load_n(&w.stats.steals, __ATOMIC_RELAXED);
  if (w.asleep.load(std::memory_order_seq_cst) != 0 || progress != s.progress) {
    s.progress = progress;
    s.looks = 0;
    return false;
  }
  const std::uint64_t cpu_ns = base::cpu_ns_of(setup_.handle(number));
  const bool used_none = cpu_ns == s.cpu_ns;
  s.cpu_ns = cpu_ns;
  ++s.looks;
  return (s.looks >= looks_blocked && used_none) || s.looks >= looks_computing;
}

bool monitor::all_asleep() const noexcept {
  for (std::uint32_t i = 0; i < setup_.regular + up_; ++i)
    if (words(i).asleep.load(std::memory_order_seq_cst) == 0) return false;
  return true;
}

/// Would a spare have anything to do? Threads that are ready, or some that wait for what only a worker sees.
bool monitor::sees_work() const noexcept {
  if (node().outside.load(std::memory_order_seq_cst) != 0) return true;
  for (std::uint32_t i = 0; i < setup_.regular + started_; ++i) {
    const sched::public_words& w = words(i);
    if (w.ready_count.load(std::memory_order_seq_cst) != 0 ||
        w.top.load(std::memory_order_seq_cst) < w.split.load(std::memory_order_seq_cst))
      return true;
  }
  return false;
}

void monitor::raise() noexcept {
  if (up_ == setup_.spares) return;
  const std::uint32_t number = setup_.regular + up_;
  if (up_ == started_) {
    node().present.store(number + 1, std::memory_order_seq_cst);
    if (!setup_.start(number)) return;  // not now: it will be tried again
    ++started_;
  }
  seen_[number] = {};
  node().up.store(++up_, std::memory_order_seq_cst);
  sched::wake_spares_of(node(), sched::spare_bit(up_ - 1));
}

void monitor::lower(std::uint32_t by) noexcept {
  up_ -= std::min(by, up_);
  node().up.store(up_, std::memory_order_seq_cst);
}

void monitor::look() noexcept {
  std::uint32_t active = 0;
  for (std::uint32_t i = 0; i < setup_.regular + up_; ++i) active += is_stuck(i) ? 0 : 1;
  if (active == 0 && sees_work()) raise();
  if (period_looks_ == 0) too_many_ = up_;
  too_many_ = std::min(too_many_, active > setup_.regular ? active - setup_.regular : 0);
  if (++period_looks_ < looks_before_lower) return;
  period_looks_ = 0;
  lower(too_many_);
}

/// Until the time is over (-1: never) or somebody calls. @p state: already said in `watch`.
void monitor::sleep(std::uint32_t state, std::int64_t ns) noexcept {
  if (setup_.running->load(std::memory_order_seq_cst) != 0)
    base::wait_on(node().watch, state, ns < 0 ? base::no_limit : static_cast<std::uint64_t>(ns));
  node().watch.store(sched::watching, std::memory_order_seq_cst);
}

void monitor::round(int limit_ms) noexcept {
  const std::uint64_t now = base::now_ns();
  if (now >= next_look_ns_) {
    look();
    next_look_ns_ = now + look_every_ns;
  }
  const std::int64_t limit_ns = limit_ms < 0 ? -1 : std::int64_t{limit_ms} * 1'000'000;
  if (up_ == 0) {
    node().watch.store(sched::until_work, std::memory_order_seq_cst);  // MO1: watch, then asleep
    if (all_asleep()) return sleep(sched::until_work, limit_ns);
  }
  node().watch.store(sched::for_a_while, std::memory_order_seq_cst);
  const auto pause = static_cast<std::int64_t>(next_look_ns_ - std::min(now, next_look_ns_));
  sleep(sched::for_a_while, limit_ns < 0 ? pause : std::min(pause, limit_ns));
}

}  // namespace godwit::runtime
