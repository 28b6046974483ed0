// What the program's environment and its omp_set_... calls ask for.
#pragma once

#include "thread.hpp"

namespace godwit::openmp {

/// OMP_... variables, read when the library is loaded.
struct environment {
  settings initial;
  unsigned threads_of_level[8];  ///< OMP_NUM_THREADS=4,2: of regions inside the first
  unsigned level_count;          ///< of these; 0: not given
  std::size_t stack_bytes;       ///< 0: not given
  bool cancellation;
};
extern environment environment_;
/// Of nested regions with more than one thread. As in libgomp, which shows it (OMP_DISPLAY_ENV).
constexpr unsigned supported_levels = 255;
/// OMP_NUM_TEAMS, omp_set_num_teams, and likewise. 0: not given.
extern unsigned default_teams_, teams_thread_limit_;

/// CPUs that the process may use.
unsigned usable_threads() noexcept;

inline const settings& settings_of(const task& k) noexcept { return *k.own; }
/// Equal ones at the same place, for ever: tasks that go by them may outlive the one that changed them.
const settings* keep(const settings& s) noexcept;
/// Those of the calling task; tasks that it has made before keep theirs.
template <class F>
void change_settings(thread& t, F change) noexcept {
  settings s = settings_of(*t.current);
  change(s);
  t.current->own = keep(s);
}

/// "godwit-openmp: ..." on standard error; fail ends the process with status 70.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) noexcept;
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...) noexcept;

}  // namespace godwit::openmp
