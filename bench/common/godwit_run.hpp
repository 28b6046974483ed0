// How a godwit run is timed: inside the root thread for the computation, outside for everything.
#pragma once

#include "clock.hpp"
#include "harness.hpp"

#include <godwit/godwit.hpp>

#include <algorithm>
#include <utility>

namespace bench {

/// The root's value with its time. Plain, so that it can leave the run.
template <class T>
struct timed {
  T value;
  std::uint64_t ns;
};

/// Counters of the last run in the form of the harness.
inline scheduler_counts last_counts() {
  scheduler_counts c;
  for (const auto& w : godwit::last_run_stats()) {
    c.steals += w.steals;
    c.suspends += w.suspends;
    c.stolen_bytes += w.stolen_bytes;
    c.stack_high_bytes = std::max(c.stack_high_bytes, w.stack_high_bytes);
  }
  return c;
}

/// Run root() on @p workers workers. Gives back its value and the sample (correct is left true).
template <class F>
auto run_godwit(unsigned workers, const F& root) -> std::pair<std::invoke_result_t<F>, sample> {
  using T = std::invoke_result_t<F>;
  godwit::options o;
  o.workers = workers;
  const std::uint64_t before = now_ns();
  const auto r = godwit::run<timed<T>>(
      [root] {
        const std::uint64_t start = now_ns();
        T value = root();
        return timed<T>{value, now_ns() - start};
      },
      o);
  sample s;
  s.total_seconds = static_cast<double>(now_ns() - before) * 1e-9;
  s.seconds = static_cast<double>(r.ns) * 1e-9;
  s.scheduled = true;
  s.counts = last_counts();
  return {r.value, s};
}

/// Time a plain computation.
template <class F>
auto run_plain(const F& f) -> std::pair<std::invoke_result_t<F>, sample> {
  const std::uint64_t start = now_ns();
  auto value = f();
  sample s;
  s.seconds = s.total_seconds = static_cast<double>(now_ns() - start) * 1e-9;
  return {value, s};
}

}  // namespace bench
