// See idleness.hpp. Events: events.md, models/events.pml.
#include "sched/idleness.hpp"

#include <algorithm>
#include <cstdio>

#include "base/thread_sanitizer.hpp"
#include "base/world.hpp"
#include "sched/suspended.hpp"

namespace godwit::sched {

using transport::index;

namespace {

// Failed rounds before a worker counts as idle where others need its CPU, and where each round takes a turn.
constexpr std::uint32_t rounds_before_idle_crowded = 1, rounds_before_idle_in_turns = 16;
// Where a look takes a turn, who would look on waits instead, again and again, each time half as long as it
// has been idle, for as long as a worker looks elsewhere before it sleeps.
constexpr std::uint64_t rounds_in_turns_ns = 130'000, look_in_turns_ns = 3'000,
                        longest_look_in_turns_ns = 50'000;
// Before a worker takes part in a wave: who gets the next thread soon makes it an unclean one.
constexpr std::uint64_t wave_after_ns = 100'000;
constexpr std::uint64_t signal_after_ns = 20'000;
constexpr std::uint64_t signal_every_ns = 50'000;
// Where workers share CPUs, all of a host that sleep wake so often in a millisecond, together.
constexpr std::uint32_t wakes_a_ms_crowded = 8;
constexpr std::uint64_t poll_every_ns = 100'000;             // own waiting threads, where they poll
constexpr std::uint32_t longest_sleep_between_hosts_ms = 4;  // nobody wakes us from another host

/// For assertions: node_words::idle of @p all workers.
[[maybe_unused]] bool is_count(std::uint64_t idle, std::uint32_t all) noexcept {
  return idle_in(idle) <= static_cast<std::int32_t>(all);
}

}  // namespace

void idleness::init() noexcept {
  const std::uint32_t regular = here_.workers - here_.shape.spares;
  GODWIT_ASSERT(here_.one_host() || here_.shape.spares == 0, "spare workers are for one host");
  is_spare_ = index(here_.me) >= regular;
  is_idle_ = is_spare_;  // counted from the start
  spare_number_ = is_spare_ ? index(here_.me) - regular : 0;
  if (here_.crowded) rounds_before_idle_ = rounds_before_idle_crowded;
  if (here_.shape.takes_turns) rounds_before_idle_ = rounds_before_idle_in_turns;
  if (here_.crowded && here_.one_host())
    first_sleep_ms_ = std::max(here_.regular() / wakes_a_ms_crowded, first_sleep_ms_);
  longest_sleep_ms_ = std::max(first_sleep_ms_, longest_sleep_ms_);
  sleep_ms_ = first_sleep_ms_;
  touches_.init();
}

// ---- waking others ----

void idleness::wake_one() noexcept {
  if (here_.node->sleepers.load(std::memory_order_relaxed) == 0) return;
  here_.node->wake.fetch_add(1, std::memory_order_release);  // MO3: a spare that it reaches passes it on
  // EV3: wake, then polling. (The kernel has a full barrier in between.)
  if (base::wake(here_.node->wake, 1) == 0 && here_.node->polling.load(std::memory_order_relaxed) != 0)
    here_.hooks.events->interrupt();
}

void idleness::wake_all() noexcept {
  wake_all_of(*here_.node);
  if (here_.node->polling.load(std::memory_order_seq_cst) != 0) here_.hooks.events->interrupt();
}

void idleness::call_monitor() noexcept {
  std::uint32_t expected = until_work;
  if (here_.node->watch.compare_exchange_strong(expected, watching, std::memory_order_seq_cst))
    base::wake(here_.node->watch, 1);
}

// ---- between idle and running ----

void idleness::thread_came() noexcept {
  has_sent_ = false;
  failed_rounds_ = 0;
  idle_since_ns_ = 0;
  sleep_ms_ = first_sleep_ms_;
  from_.far.thread_came();
}

/// The companion must have the CPU at once: it may be the very one that this worker spins on, and without it
/// the thread neither leaves nor comes back.
void idleness::thread_left() noexcept {
  has_sent_ = true;
  failed_rounds_ = rounds_before_idle_;
  from_.far.thread_left();
}

void idleness::give_way(int pauses) noexcept {
  if (here_.crowded || has_sent_) return base::give_way();
  for (int i = 0; i < pauses; ++i) base::pause();
}

bool idleness::end_of_round() noexcept {
  if (touches_.more()) touches_.next();
  give_way(1);
  return ++failed_rounds_ >= rounds_before_idle_;
}

void idleness::become_running() noexcept {
  GODWIT_ASSERT(is_idle_, "who becomes running was idle");
  is_idle_ = false;
  node_words& node = *here_.node;
  [[maybe_unused]] const std::uint64_t idle_before =
      base::planted("idle.who_runs_is_not_counted")
          ? node.idle.load(std::memory_order_seq_cst)
          : node.idle.fetch_add(left_idleness, std::memory_order_seq_cst);  // IN2, ID5
  GODWIT_ASSERT(is_count(idle_before, here_.near.count), "no more workers are idle than there are");
  if (node.watch.load(std::memory_order_seq_cst) == until_work) call_monitor();  // MO1: asleep, then watch
  if (polled_ != nullptr)
    std::atomic_thread_fence(std::memory_order_release);  // ID5: before it touches a thread
}

void idleness::become_idle() noexcept {
  // Somebody may wait for what has not been answered yet. First, because what has been makes threads ready.
  if (here_.serve_others()) return;
  // A thief may be holding the lock of our ready queue just now: then there is still work here.
  if (!base::planted("idle.own_queue_is_not_looked_at") &&
      (here_.words->ready_count.load(std::memory_order_seq_cst) != 0 ||
       !from_.mail.empty(std::memory_order_seq_cst)))
    return;
  if (sees_ready_waiter()) return;
  GODWIT_ASSERT(!is_idle_, "who becomes idle was running");
  is_idle_ = true;
  base::happens_before(&here_.node->idle);
  const std::uint64_t idle = here_.node->idle.fetch_add(1, std::memory_order_seq_cst) + 1;
  GODWIT_ASSERT(is_count(idle, here_.near.count), "no more workers are idle than there are");
  if (here_.one_host() && is_full(idle, here_.near.count))
    if (polled_ == nullptr || nothing_is_ready(idle)) decide();
}

/// Several hosts: this worker's part in a wave, if one is here. IN1
void idleness::carry_wave() noexcept {
  if (!waves_.has_step() || !waves_.try_enter()) return;
  const waves::outcome now = waves_.advance([this](std::uint64_t idle) {
    return polled_ == nullptr || nothing_is_ready(idle) ||
           (here_.shape.my_host != 0 && base::planted("nodes.waiting_elsewhere_is_not_seen"));
  });
  if (now == waves::outcome::unclean) waves_.begin();
  waves_.leave();
  if (now == waves::outcome::clean) decide();
}

/// All count as idle, and this worker was the one to find out: nothing can happen any more. ID3, IN1
void idleness::decide() noexcept {
  if (here_.net.remote_load(worker_no{0}, &here_.job->root_done, std::memory_order_acquire) == 0) {
    char text[1856];
    describe_deadlock(here_, text, sizeof text);
    report_failure(text);
  }
  end_run();
}

/// Several hosts: one look each time, as the record may be a round trip away.
bool idleness::sees_ready_waiter() noexcept {
  if (polled_ == nullptr || polled_->empty()) return false;
  const auto is_ready = [&](const image& im) {
    return im.waiting_for == 0 || from_.records.is_complete(im.waiting_for);
  };
  if (here_.one_host()) return polled_->any(is_ready);
  if (is_ready(*polled_->front())) return true;
  polled_->push(polled_->pop());
  return false;
}

/// Policies that poll: all workers of this host count as idle, and node_words::idle is @p idle -- but is
/// perhaps some worker's waiting thread ready, which that worker has not looked at yet? Then it will. ID5
bool idleness::nothing_is_ready(std::uint64_t idle) noexcept {
  const look_at_waiting look(*here_.node, idle);
  const bool one_goes_on = any_suspended(here_, [&](const image& im, std::uint32_t) {
    return look.goes_on(im, [&](ref r) { return from_.records.is_complete(r); });
  });
  return !one_goes_on && (!look.is_void() || base::planted("nodes.waiting_may_be_seen_early"));
}

void idleness::end_run() noexcept {
  if (here_.hooks.on_end != nullptr) here_.hooks.on_end();
  if (!here_.one_host()) tell_hosts();
  here_.node->shutdown.store(shutdown_passed_on, std::memory_order_release);
  wake_all();
  base::happens_after(&here_.node->idle);
  here_.hooks.exit_worker();
  __builtin_unreachable();
}

/// The run is over, as this host has been told. Does not come back if so.
void idleness::leave_run() noexcept {
  word& shutdown = here_.node->shutdown;
  if (shutdown.load(std::memory_order_acquire) == 0) return;
  if (!here_.one_host())  // IN7: one of this host tells others
    if (shutdown.exchange(shutdown_passed_on, std::memory_order_acq_rel) == shutdown_told) tell_hosts();
  base::happens_after(&here_.node->idle);
  here_.hooks.exit_worker();
}

/// IN7: those below this host. Nobody waits for an answer: companions stay until all hosts' workers have
/// left.
void idleness::tell_hosts() noexcept {
  const job_shape& job = here_.shape;
  job.each_host_below(0, [&](std::uint32_t host) {
    if (base::planted("nodes.one_is_not_told") && host == (job.my_host + 1) % job.host_count) return;
    here_.net.far().cast(worker_no{job.hosts[host].first}, call_no::shut_down, 0);
  });
}

/// The run is about to end, with this message. Where workers are threads they all leave; else the process
/// ends here.
void idleness::report_failure(const char* text) noexcept {
  if (!here_.shape.in_process) base::fatal("%s", text);
  node_words& node = *here_.node;
  std::uint64_t expected = 0;
  if (node.failed.compare_exchange_strong(expected, 1, std::memory_order_seq_cst)) {
    std::snprintf(node.message, sizeof node.message, "%s", text);
    node.failed.store(2, std::memory_order_release);
  }
}

// ---- without work ----

bool idleness::sees_work(std::uint32_t most) noexcept {
  leave_run();
  from_.inbox.serve();
  if (!from_.mail.empty() || from_.events.collect(0)) return true;
  const std::uint32_t all = present(), count = std::min(all, most);
  for (std::uint32_t i = 0; i < count; ++i) {
    const public_words* p = here_.words_of(worker_no{here_.near.first + (next_look_ + i) % all});
    if (p->shares_work() || p->ready_count.load(std::memory_order_relaxed) != 0) return true;
  }
  if (sees_ready_waiter()) return true;
  return !here_.one_host() && from_.far.sees_work(idle_since_ns_);
}

void idleness::wait_for_work() noexcept {
  GODWIT_ASSERT(is_idle_, "only idle workers sleep");
  ask_others(looks_in_round);
  give_way(4);

  if (here_.hooks.on_idle != nullptr) here_.hooks.on_idle();
  const std::uint64_t now = base::fast_ns();
  if (idle_since_ns_ == 0) idle_since_ns_ = now;
  if (here_.opts.expose_signal && now - idle_since_ns_ > signal_after_ns &&
      now - last_signal_ns_ > signal_every_ns) {
    last_signal_ns_ = now;
    const std::uint32_t all = present(), count = std::min(all, looks_before_sleep);
    const std::uint32_t from = here_.near.first + std::min(next_look_, all - count);
    signal_hoarders_of(*here_.memory, here_.words, worker_no{from}, worker_no{from + count}, here_.me,
                       here_.shape.lazy_spawns);
  }
  const std::uint64_t idle_ns = now - idle_since_ns_, spin_ns = std::uint64_t{here_.opts.spin_us} * 1000;
  if (!here_.one_host() && idle_ns >= std::min(wave_after_ns, spin_ns)) carry_wave();
  if (here_.shape.takes_turns && idle_ns < spin_ns + rounds_in_turns_ns)
    sleep(std::clamp(idle_ns / 2, look_in_turns_ns, longest_look_in_turns_ns));
  else if (idle_ns >= spin_ns)
    sleep(base::no_limit);
}

/// The next ones of this host, @p most of them.
void idleness::ask_others(std::uint32_t most) noexcept {
  const std::uint32_t all = present(), count = std::min(all, most);
  for (std::uint32_t i = 0; i < count; ++i)
    if (const worker_no v{here_.near.first + (next_look_ + i) % all}; v != here_.me)
      ask_for_work(*here_.memory, v);
  next_look_ = (next_look_ + count) % all;
}

void idleness::sleep(std::uint64_t most_ns) noexcept {
  ask_others(looks_before_sleep);  // else who has not been asked shares nothing meanwhile
  here_.node->sleepers.fetch_add(1, std::memory_order_seq_cst);
  here_.words->asleep.store(1, std::memory_order_seq_cst);
  const std::uint32_t seen = here_.node->wake.load(std::memory_order_seq_cst);
  const bool wave_waits = most_ns == base::no_limit && !here_.one_host() && waves_.has_step();
  if (!wave_waits && !sees_work(looks_before_sleep)) {  // whoever made it public before that has woken nobody
    ++here_.words->stats.sleeps;
    wait_in_sleep(seen, most_ns);
    const std::uint32_t longest = here_.one_host() ? longest_sleep_ms_ : longest_sleep_between_hosts_ms;
    if (most_ns == base::no_limit && sleep_ms_ < longest) sleep_ms_ = std::min(sleep_ms_ * 2, longest);
  }
  here_.words->asleep.store(0, std::memory_order_seq_cst);  // MO1
  here_.node->sleepers.fetch_sub(1, std::memory_order_seq_cst);
  if (most_ns == base::no_limit && !here_.one_host()) carry_wave();  // it may have been woken for that
}

/// Until node_words::wake is not @p seen any more, for a while, @p most_ns at most; among those who sleep,
/// one in the source of events.
void idleness::wait_in_sleep(std::uint32_t seen, std::uint64_t most_ns) noexcept {
  node_words& node = *here_.node;
  std::uint64_t ns = std::min(std::uint64_t{sleep_ms_} * 1'000'000, most_ns);
  // in time for the next look at another host; the last one took a while itself
  if (!here_.one_host()) {
    const std::uint64_t now = base::fast_ns(), next = from_.far.next_look_ns();
    ns = std::min(ns, next > now ? next - now : 1);
  }
  if (polled_ != nullptr && !polled_->empty()) ns = std::min(ns, poll_every_ns);
  const std::uint64_t before = account_.traced() ? base::fast_ns() : 0;
  if (here_.hooks.events != nullptr && from_.events.somebody_waits() &&
      node.polling.exchange(1, std::memory_order_seq_cst) == 0) {
    if (node.wake.load(std::memory_order_seq_cst) == seen)  // EV3: polling, then wake
      static_cast<void>(from_.events.collect(static_cast<std::int64_t>(ns)));
    node.polling.store(0, std::memory_order_seq_cst);
  } else if (most_ns != base::no_limit) {
    base::made_world->look_on(node.wake, seen, ns);  // only where looks take turns
  } else {
    base::wait_on(node.wake, seen, ns);
  }
  if (account_.traced()) {
    const std::uint64_t after = base::fast_ns();
    account_.note(trace::kind::sleep, after, 0, 0, after - before);
  }
}

void idleness::nap() noexcept {
  const std::uint32_t seen = here_.node->wake.load(std::memory_order_seq_cst);
  here_.node->sleepers.fetch_add(1, std::memory_order_seq_cst);
  base::wait_on(here_.node->wake, seen, poll_every_ns);
  here_.node->sleepers.fetch_sub(1, std::memory_order_seq_cst);
  ++here_.words->stats.sleeps;
}

void idleness::rest() noexcept {
  GODWIT_ASSERT(is_idle_ && is_spare_, "only spares that count as idle rest");
  node_words& node = *here_.node;
  wake_one();  // MO3: one that came here was for a worker that looks for work
  node.resting.fetch_add(1, std::memory_order_seq_cst);
  here_.words->asleep.store(1, std::memory_order_seq_cst);
  for (;;) {
    const std::uint32_t seen =
        node.spare_wake.load(std::memory_order_seq_cst);  // MO2: spare_wake, then what it stands for
    leave_run();
    if (node.up.load(std::memory_order_seq_cst) > spare_number_) break;
    base::wait_for_bits(node.spare_wake, seen, spare_bit(spare_number_));
  }
  here_.words->asleep.store(0, std::memory_order_seq_cst);
  node.resting.fetch_sub(1, std::memory_order_seq_cst);
  idle_since_ns_ = 0;
  sleep_ms_ = first_sleep_ms_;
}

}  // namespace godwit::sched
