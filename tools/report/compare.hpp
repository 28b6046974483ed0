// Several runs of one program side by side: what they took, what they lost, how the speed-up grows with the
// number of workers.
//
// Either all runs have the same number of workers (versions against each other; the first one is the base),
// or all have different ones (how the program scales; the one with the fewest workers is the base). No pages
// here: compare_page.cpp and main.cpp (--text) show the result. Document: docs/report.md. Test:
// tests/report/compare_test.cpp.
#pragma once

#include "summary.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace godwit::report {

/// One of the runs, without its events. Times in ns; < 0: not known.
struct compared_run {
  std::string name;     ///< of its file
  std::string command;  ///< the program and its arguments, without options of godwit
  run_figures figures;  ///< of the whole run: from counters where events were dropped
  std::string verdict;  ///< the report's first sentence
  double steals = 0, steal_ns = 0;
  nlohmann::json stats;  ///< as in recording
};
/// @p a: null for counters only. Throws input_error if the run failed, or the file does not have its times.
compared_run compared(const recording& r, const analysis* a, const std::string& name);

struct comparison {
  std::vector<compared_run> runs;  ///< the base first; by workers if these differ
  bool scaling = false;            ///< the numbers of workers differ
  double base_time = 0;  ///< a speed-up of 1: what the base took, or its work if it had several workers
  double work = -1, span = -1;  ///< T1 and T_inf of the run with fewest workers that measured them

  double speed_up(std::size_t run) const noexcept;  ///< base_time over the run's time
  double bound(std::size_t run) const noexcept;     ///< the most that workers, CPUs and T1/T_inf allow
};
/// Throws input_error for fewer than two runs, runs of different programs, and runs of which only some have
/// the same number of workers.
comparison compare(std::vector<compared_run> runs);

/// What the comparison says first, and what a speed-up of 1 and the bound are.
std::string headline_of(const comparison& c);
std::string base_of(const comparison& c);
std::string bound_of(const comparison& c);

/// A table with a column for each run.
struct run_table {
  struct cell {
    std::string value, beside;  ///< beside: a share, a ratio to the base; may be empty
  };
  struct row {
    std::string label, what;  ///< what: an explanation; may be empty
    std::vector<cell> cells;
  };
  std::string title, note;
  std::vector<row> rows;
};
/// The runs; where their time went; their counters.
std::vector<run_table> tables_of(const comparison& c);

/// All of it as text.
void print(std::ostream& out, const comparison& c);

}  // namespace godwit::report
