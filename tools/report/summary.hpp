// What a run's numbers mean, in sentences: what was gained, what was lost and why, what to try.
//
// figures_of() brings traces and files of counters to one form; explain() writes. No pages here. Called by
// page.cpp and main.cpp (--text). Document: docs/report.md. Test: tests/report/summary_test.cpp.
#pragma once

#include "analysis.hpp"

#include <array>
#include <string>
#include <vector>

namespace godwit::report {

/// The run in numbers. Times in ns; < 0: not known.
struct run_figures {
  std::string program, policy;
  std::uint32_t workers = 0, hosts = 1;
  double cpus = -1;                                   ///< usable by the run, if it was written down
  double wall = -1;                                   ///< what the totals cover
  double whole_run = -1;                              ///< of the run as it measured itself
  std::vector<std::array<double, states>> by_worker;  ///< empty: not known
  std::vector<double> sleep;
  std::array<double, states> total{};
  double total_sleep = 0;
  double span = -1;           ///< T_inf, measured with GODWIT_SPAN
  double work = -1;           ///< T1, measured with GODWIT_SPAN
  double longest_chain = -1;  ///< from events: T_inf is at most that

  double busy() const noexcept { return total[0]; }
  double known() const noexcept;  ///< time of all workers of which the state is known
  double lost() const noexcept { return known() - busy(); }
  double speed_up() const noexcept { return wall > 0 ? busy() / wall : 0; }
  /// T1: measured, else the time that workers had threads.
  double t1() const noexcept { return work > 0 ? work : busy(); }
};
run_figures figures_of(const recording& r, const analysis* a);

/// One thing to know.
struct finding {
  enum class level { good, cause, hint, caveat };
  level what;
  std::string title, text, advice;
};
/// The first finding is the headline. Always at least one. @p a: null for counters only.
std::vector<finding> explain(const run_figures& f, const recording& r, const analysis* a);

std::string format_time(double ns);                ///< "1.23 ms"
std::string format_percent(double part);           ///< of 1: "62 %"
std::string format_count(double n);                ///< "1,234,567"
std::string format_bytes(double n);                ///< "3.1 KiB"
std::string format_place(const waiting_place& p);  ///< "file.cpp:12", or "an unknown place"

}  // namespace godwit::report
