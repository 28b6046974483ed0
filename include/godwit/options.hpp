// Options of a run. One table (src/base/options.cpp) feeds the struct, GODWIT_* variables, --godwit-* flags,
// range checks, --godwit-help and docs/options.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace godwit {

/// What a run can be told. Defaults < struct given to run < environment < command line.
struct options {
  std::uint32_t workers = 0;       ///< 0: one per CPU that this process may use; under MPI one per rank
  std::string substrate = "auto";  ///< auto: mpi under an MPI launcher, else processes; or threads
  /// substrate threads: workers besides, for when all others are stuck
  std::uint32_t spare_workers = 0;
  std::uint64_t stack_bytes = 1ull << 30;  ///< uni-address region of each worker (virtual until touched)
  std::uint64_t thread_stack_bytes = 256ull << 10;  ///< substrate threads: stack of each thread but the root
  std::uint64_t heap_bytes = 4ull << 30;  ///< suspended stacks, records, results of each worker (likewise)
  std::string bind = "none";              ///< none, or cores: worker i stays on the i-th usable CPU
  std::uint32_t spin_us = 50;             ///< how long an idle worker looks for work before it sleeps
  bool expose_signal = true;              ///< starving workers may interrupt one that does not spawn
  std::string force_steal = "none";       ///< none, parents, children, random: who must leave at spawns
  std::uint32_t delay_us = 0;             ///< testing: random delays of up to this long inside the protocols
  std::uint64_t seed = 0;                 ///< of victim selection, forced steals and delays; 0: drawn
  bool private_heap = true;               ///< keep workers' heaps apart: pointers that migrated are noticed
  /// children may refer to their ancestors' frames, and writes that are lost are noticed
  bool check_frames = true;
  std::string way = "auto";        ///< to other hosts: auto, rma, server, assist, am
  std::string hosts = "auto";      ///< auto, or ranks: treat every rank as a host of its own
  std::string victims = "near";    ///< near: own host first; uniform: all workers alike
  bool empty_check = true;         ///< look at a victim's deque before locking it
  std::string far_steal = "call";  ///< call: one request; words: one-sided, word by word
  bool rma_atomics = false;        ///< way rma: the network's atomics and the CPU's may be mixed
  std::string mpi = "";            ///< MPI component: a family name or a path; empty: choose
  bool randomize = false;          ///< under MPI: leave address randomisation on
  /// under MPI, outside run: standard output of the first rank, or all
  std::string output = "first";
  bool quiet = false;             ///< do not print the line about the connection between hosts
  std::string policy = "greedy";  ///< how threads are stolen, joined and freed: policy.hpp
  bool stats = false;             ///< print a table of scheduler counters at the end
  std::string stats_json = "";    ///< write the counters to this file (-: standard output); empty: no
  std::string trace = "";         ///< write what the workers did to this file, for Perfetto; empty: no
  std::uint64_t trace_bytes = 64ull << 20;  ///< memory for events, per worker; the oldest are dropped
  bool span = false;                        ///< measure work and span exactly (every spawn costs more)
  std::uint64_t global_bytes = 8ull << 40;  ///< addresses for the run's global memory (virtual until touched)
  /// global memory allocated on one host at most; 0: by what is available
  std::uint64_t global_limit = 0;
  std::uint64_t cache_bytes = 256ull << 20;  ///< per host: copies of other hosts' global memory
  std::string check_global = "auto";         ///< notice misuse of global memory: on, off, auto (debug builds)
};

/// Take --godwit-* flags out of argv (and argc), so that a program can parse its own. Optional: run does the
/// same on its own copy. Flags are remembered for later runs. On a bad flag prints one line and exits with
/// status 2; --godwit-help prints the options and exits with 0.
void take_options(int& argc, char** argv);

/// What run would use now: @p base, then environment, then flags seen so far. Throws std::invalid_argument
/// with one line of text on a bad value.
options resolve_options(const options& base = {});

}  // namespace godwit
