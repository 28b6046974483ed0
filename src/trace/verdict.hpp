// The one sentence about a run, in words that its statistics (src/runtime/stats_output.cpp) and the report
// share.
//
// No other part of the library is used here: the report includes it. Test: tests/trace/verdict_test.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>

namespace godwit::trace {

/// Below that, lost time is nothing to speak of.
inline constexpr double much = 0.1;

/// "speed-up 3.90 on 4 workers". Work done, as a multiple of what one worker does in the same time.
inline std::string speed_up_text(double speed_up, std::size_t workers) {
  char text[96];
  std::snprintf(text, sizeof text, "speed-up %.*f on %zu worker%s", speed_up < 100 ? 2 : 0, speed_up, workers,
                workers == 1 ? "" : "s");
  return text;
}

/// What getting threads took: not all steals on the own host were timed, all from others.
inline double getting_ns(double steals, double far_steals, double timed, double steal_ns,
                         double far_steal_ns) {
  const double near = steals - std::min(steals, far_steals);
  return steal_ns * (timed > 0 ? std::max(1.0, near / timed) : 1.0) + far_steal_ns;
}

/// Of a worker's life, in ns, as its counters know it: its threads waited in the operating system. Where it
/// had no thread, it need not have had a CPU.
inline double blocked_ns(double life, double cpu, double aside, double idle, double far) {
  return cpu > 0 ? std::max(life - cpu - aside - idle - far, 0.0) : 0;
}

/// What workers did with their time instead of running threads; parts of all of it.
struct lost_shares {
  double no_work = 0, join = 0, wait = 0, transport = 0, getting = 0, access = 0;
  double blocked = 0;
  double kernel = 0;  // only a trace tells
};

/// The two largest of them, as counters alone know them: "nothing to steal for 70 % of the time, stealing for
/// 5 %".
inline std::string lost_text(const lost_shares& s) {
  std::array<std::pair<double, const char*>, 8> causes{
      {{s.no_work, "nothing to steal"},
       {s.join, "late joins"},
       {s.wait, "waits for locks, events, time or descriptors"},
       {s.transport, "answers of other hosts"},
       {s.getting, "stealing"},
       {s.access, "single values of other hosts"},
       {s.blocked, "waits in the operating system"},
       {s.kernel, "work of the operating system"}}};
  double all = 0;
  for (const auto& c : causes) all += c.first;
  if (all < much) return "nothing stands out";
  std::stable_sort(causes.begin(), causes.end(), [](auto& x, auto& y) { return x.first > y.first; });
  std::string text;
  constexpr std::size_t most = 2;
  for (std::size_t i = 0; i < most; ++i) {
    const auto& [share, what] = causes[i];
    if (i > 0 && share < 0.05) break;
    char part[96];
    std::snprintf(part, sizeof part, "%s%s for %.0f %%%s", text.empty() ? "" : ", ", what, 100 * share,
                  text.empty() ? " of the time" : "");
    text += part;
  }
  return text;
}

}  // namespace godwit::trace
