// How a godwit run is timed: inside the root thread for the computation, outside for everything.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <godwit/godwit.hpp>
#include <utility>

#include "clock.hpp"
#include "harness.hpp"

namespace bench {

/// The root's value with its time. Plain, so that it can leave the run.
template <class T>
struct timed {
  T value;
  std::uint64_t ns;
  std::uint64_t cpu_ns;  ///< of root's worker; meaningful if there was only one
};

/// CPU time of all ended child processes: the workers of past runs.
inline double children_cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_CHILDREN, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/// CPU time of this process, all its threads.
inline double process_cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/// Counters of the last run in the form of the harness.
inline scheduler_counts last_counts() {
  scheduler_counts c;
  for (const auto& w : godwit::last_run_stats()) {
    c.steals += w.steals;
    c.steals_failed += w.steals_failed;
    c.steals_timed += w.steals_timed;
    c.steal_ns += w.steal_ns;
    c.steal_copy_ns += w.steal_copy_ns;
    c.spawns += w.spawns;
    c.suspends += w.suspends;
    c.outstanding_joins += w.outstanding_joins;
    c.outstanding_resumed += w.outstanding_resumed;
    c.outstanding_ns += w.outstanding_ns;
    c.stolen_bytes += w.stolen_bytes;
    c.far_steals += w.far_steals;
    c.far_failed += w.far_failed;
    c.messages += w.messages;
    c.message_ns += w.message_ns;
    c.stack_high_bytes = std::max(c.stack_high_bytes, w.stack_high_bytes);
    c.heap_high_bytes = std::max(c.heap_high_bytes, w.heap_high_bytes);
  }
  return c;
}

/// Run root() on @p workers workers under @p policy, whose threads root must create, on @p substrate (empty:
/// what the options say). Gives back its value and the sample (correct is left true).
template <class F>
auto run_godwit(unsigned workers, const F& root, const std::string& policy = godwit::policies::greedy::name,
                const std::string& substrate = "") -> std::pair<std::invoke_result_t<F>, sample> {
  using T = std::invoke_result_t<F>;
  godwit::options o;
  o.workers = workers;
  o.policy = godwit::choice::named{policy};
  if (!substrate.empty()) o.substrate = godwit::choice::named{substrate};
  const std::uint64_t before = now_ns();
  const double children_before = children_cpu_seconds(), own_before = process_cpu_seconds();
  const auto r = godwit::run<timed<T>>(
      [root] {
        const std::uint64_t start = now_ns(), cpu_start = cpu_ns();
        T value = root();
        return timed<T>{value, now_ns() - start, cpu_ns() - cpu_start};
      },
      o);
  sample s;
  s.total_seconds = static_cast<double>(now_ns() - before) * 1e-9;
  s.seconds = static_cast<double>(r.ns) * 1e-9;
  s.cpu_seconds = workers == 1
                      ? static_cast<double>(r.cpu_ns) * 1e-9
                      : children_cpu_seconds() - children_before + process_cpu_seconds() - own_before;
  s.scheduled = true;
  s.counts = last_counts();
  return {r.value, s};
}

/// Time a plain computation.
template <class F>
auto run_plain(const F& f) -> std::pair<std::invoke_result_t<F>, sample> {
  const std::uint64_t start = now_ns(), cpu_start = cpu_ns();
  auto value = f();
  sample s;
  s.cpu_seconds = static_cast<double>(cpu_ns() - cpu_start) * 1e-9;
  s.seconds = s.total_seconds = static_cast<double>(now_ns() - start) * 1e-9;
  return {value, s};
}

}  // namespace bench
