// Options of a run. One table (src/base/options.cpp) feeds the struct, GODWIT_* variables, --godwit-* flags,
// range
// checks, --godwit-help and docs/options.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace godwit {

/// What a run can be told. Defaults < struct given to run < environment < command line.
struct options {
  std::uint32_t workers = 0;             ///< 0: one per CPU that this process may use
  std::uint64_t stack_bytes = 1ull << 30;  ///< uni-address region of each worker (virtual until touched)
  std::uint64_t heap_bytes = 4ull << 30;   ///< suspended stacks, records, results of each worker (likewise)
  std::string bind = "none";             ///< none, or cores: worker i stays on the i-th usable CPU
  std::uint32_t spin_us = 50;            ///< how long an idle worker looks for work before it sleeps
  bool expose_signal = true;             ///< starving workers may interrupt one that does not spawn
  std::string force_steal = "none";      ///< none, parents, children, random: who must leave at spawns
  std::uint32_t delay_us = 0;            ///< testing: random delays of up to this long inside the protocols
  std::uint64_t seed = 0;                ///< of victim selection, forced steals and delays; 0: drawn
  bool private_heap = true;              ///< keep workers' heaps apart: pointers that migrated are noticed
  bool check_frames = false;             ///< notice children that write into frames whose owner left
  bool stats = false;                    ///< print one line of scheduler counters per worker at the end
};

/// Take --godwit-* flags out of argv (and argc), so that a program can parse its own. Optional: run does the
/// same on
/// its own copy. Flags are remembered for later runs. On a bad flag prints one line and exits with status 2;
/// --godwit-help prints the options and exits with 0.
void take_options(int& argc, char** argv);

/// What run would use now: @p base, then environment, then flags seen so far. Throws std::invalid_argument
/// with one
/// line of text on a bad value.
options resolve_options(const options& base = {});

}  // namespace godwit
