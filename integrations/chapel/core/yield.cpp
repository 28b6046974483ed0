// Yields and sleep. See godwit-chapel.h.
//
// Chapel's programs wait for the tasks of a coforall, a cobegin or a sync block by reading a counter and
// yielding, over and over. A yield goes to the worker's own queue; while that is empty, the worker would
// neither take work from others nor let its CPU rest. So a task whose yields let nothing else go on goes by
// way of the scheduler now and then, which looks everywhere, and sleeps for a sixteenth of the time that it
// has waited, once that is a millisecond. After some seconds it looks whether anything is left that could end
// its wait.
#include "internal.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <godwit/task.hpp>
#include <godwit/thread.hpp>

#include "base/clock.hpp"
#include "base/world.hpp"
#include "seams/timer.hpp"

namespace godwit::chapel {

namespace {

constexpr std::uint32_t yields_per_look = 64;
constexpr std::uint64_t long_ns = 1'000'000, longest_nap_ns = 1'000'000;
// With more than that for each yield of its worker's tasks, the task does something else as well.
constexpr std::uint64_t busy_ns = 2'000;

/// How long nothing must go on until it counts as a deadlock. 0: for ever.
std::uint64_t patience_ns() noexcept {
  static const std::uint64_t ns = [] {
    const char* text = std::getenv("CHPL_RT_GODWIT_DEADLOCK_SECONDS");
    return static_cast<std::uint64_t>(std::clamp(text != nullptr ? std::atof(text) : 5.0, 0.0, 1e6) * 1e9);
  }();
  return ns;
}

std::uint64_t all_progress() noexcept {
  std::uint64_t n = 0;
  for (const counters& c : all_counters()) n += c.progress();
  return n;
}

void not_idle(task& me) noexcept {
  me.idle_yields = 0;
  if (me.listed) unlist(me.yielding);
  me.listed = false;
}

/// Nothing else has gone on at this worker for a number of yields.
void rest(task& me) noexcept {
  const std::uint64_t now = base::now_ns();
  const std::uint64_t before = me.yielded_ns.exchange(now, std::memory_order_relaxed);
  if (me.idle_yields == yields_per_look) {
    me.idle_since_ns = now;
    me.worker_yields = me.worker->yields.load(std::memory_order_relaxed);
    return;
  }
  const std::uint64_t yields = me.worker->yields.load(std::memory_order_relaxed) - me.worker_yields;
  if (now - before > std::max<std::uint64_t>(yields, yields_per_look) * busy_ns) {
    not_idle(me);
    return;
  }
  const std::uint64_t waited = now - me.idle_since_ns;
  std::uint64_t nap = 1;
  if (waited > long_ns) {
    nap = std::min(waited / 16, longest_nap_ns);
    if (!me.listed) {
      me.yielding = {};
      me.yielding.of = &me;
      me.all_progress = all_progress();
      me.listed = true;
      list(me.yielding);
    }
    if (patience_ns() != 0 && waited > patience_ns() && !outside::expected()) {
      if (all_progress() == me.all_progress)
        look_for_deadlock(me.idle_since_ns, now);
      else
        not_idle(me);  // at another worker something goes on: the time begins anew
    }
  }
  detail::sleep_until_ns(now + nap, {});
  me.yielded_ns.store(base::now_ns(), std::memory_order_relaxed);
  me.worker_yields = me.worker->yields.load(std::memory_order_relaxed);
}

}  // namespace

}  // namespace godwit::chapel

using namespace godwit::chapel;

extern "C" {

void gwchpl_yield(void) {
  task* me = self();
  if (me == nullptr) {
    ::sched_yield();
    return;
  }
  count(&counters::yields);
  godwit::yield();
  const counters& mine = my_counters();
  const std::uint64_t progress = mine.progress();
  const bool same = &mine == me->worker;
  const bool gone_on = same && progress != me->progress;
  if (!same) me->worker_yields = mine.yields.load(std::memory_order_relaxed);
  me->worker = &mine;
  me->progress = progress;
  if (gone_on) {
    not_idle(*me);
  } else if (++me->idle_yields % yields_per_look == 0) {
    rest(*me);
  }
}

void gwchpl_sleep(double seconds) {
  if (!(seconds > 0)) {
    gwchpl_yield();
    return;
  }
  const double ns = std::min(seconds * 1e9, 9e18);
  const std::uint64_t until = godwit::base::now_ns() + static_cast<std::uint64_t>(std::llround(ns));
  if (!godwit::detail::sleep_until_ns(until, {})) godwit::base::nap_until(until);
}

}  // extern "C"
