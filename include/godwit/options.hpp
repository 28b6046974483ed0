// Options of a run. One table (src/base/option_table.cpp) feeds the struct, GODWIT_* variables, --godwit-*
// flags, range checks, --godwit-help and docs/options.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit {

/// What options can be that are one of several words: the enumeration of options::victims is
/// choice::victims. The words are those of GODWIT_* variables, flags and docs/options.md, but for `auto`,
/// which is called automatic here.
namespace choice {

enum class substrate : std::uint8_t { automatic, processes, threads, mpi, sim };
enum class bind : std::uint8_t { none, cores };
enum class heap : std::uint8_t { automatic, separate, shared };  // separate: the word `private`
enum class force_steal : std::uint8_t { none, parents, children, random };
enum class force_move : std::uint8_t { none, random };
enum class translations_replace : std::uint8_t { lru, random };
enum class translations_lock : std::uint8_t { none, single_lock, concurrent };
enum class directory : std::uint8_t { software, datagrams, relay, xdp, ovs };
enum class way : std::uint8_t { automatic, rma, server, assist, am };
enum class hosts : std::uint8_t { automatic, ranks };
enum class victims : std::uint8_t { near, uniform };
enum class far_steal : std::uint8_t { call, words };
enum class output : std::uint8_t { first, all };
enum class policy : std::uint8_t {
  greedy,
  stalling,
  locked_free,
  stalling_locked_free,
  child_rtc,
  child_full,
  iso,
  crude,
  lazy
};
enum class sim_clock : std::uint8_t { charged, measured, counted };
enum class check_global : std::uint8_t { automatic, on, off };

/// The word of a choice, "uniform". Local.
template <class Choice>
const char* name_of(Choice value) noexcept;

/// The choice of a word, whichever option it is for: o.victims = choice::named{"uniform"}. Throws
/// std::invalid_argument with one line of text if the option has no such word. Local.
struct named {
  std::string_view word;
  template <class Choice>
  operator Choice() const;
};

}  // namespace choice

/// What a run can be told. Defaults < struct given to run < environment < command line.
struct options {
  std::uint32_t workers = 0;  ///< 0: one per CPU that this process may use; under MPI one per rank
  choice::substrate substrate =
      choice::substrate::automatic;  ///< auto: mpi under an MPI launcher, else processes, or threads where
                                     ///< those could not share a heap; or one of these, or sim
  /// substrate threads: workers besides, for when all others are stuck
  std::uint32_t spare_workers = 0;
  std::uint64_t stack_bytes = 1ull << 30;  ///< uni-address region of each worker (virtual until touched)
  std::uint64_t thread_stack_bytes = 256ull << 10;  ///< substrate threads: stack of each thread but the root
  std::uint64_t heap_bytes = 4ull << 30;   ///< suspended stacks, records, results of each worker (likewise)
  choice::bind bind = choice::bind::none;  ///< none, or cores: worker i stays on the i-th usable CPU
  std::uint32_t spin_us = 50;              ///< how long an idle worker looks for work before it sleeps
  bool expose_signal = true;               ///< starving workers may interrupt one that does not spawn
  choice::force_steal force_steal =
      choice::force_steal::none;  ///< none, parents, children, random: who must leave at spawns
  /// testing: whatever can be is movable, and accesses take it to their worker (random), or do not (none)
  choice::force_move force_move = choice::force_move::none;
  bool rebalance = false;      ///< several hosts: idle workers fetch parts of movable memory that they use
  std::uint32_t delay_us = 0;  ///< testing: random delays of up to this long inside the protocols
  std::uint64_t seed = 0;      ///< of victim selection, forced steals and delays; 0: drawn
  /// what threads allocate: all workers' (shared), or their worker's own; auto: shared where that can be had
  choice::heap heap = choice::heap::automatic;
  bool private_heap = true;  ///< keep workers' heaps apart: pointers that migrated are noticed
  /// children may refer to their ancestors' frames, and writes that are lost are noticed
  bool check_frames = true;
  choice::way way = choice::way::automatic;  ///< to other hosts: auto, rma, server, assist, am
  std::uint32_t companions = 1;  ///< way server: of a host, that carry requests for their neighbours
  choice::hosts hosts = choice::hosts::automatic;   ///< auto, or ranks: treat every rank as a host of its own
  choice::victims victims = choice::victims::near;  ///< near: own host first; uniform: all workers alike
  bool empty_check = true;                          ///< look at a victim's deque before locking it
  choice::far_steal far_steal =
      choice::far_steal::call;  ///< call: one request; words: one-sided, word by word
  bool rma_atomics = false;     ///< way rma: the network's atomics and the CPU's may be mixed
  std::string mpi = "";         ///< MPI component: a family name or a path; empty: choose
  bool randomize = false;       ///< under MPI: leave address randomisation on
  /// under MPI, outside run: standard output of the first rank, or all
  choice::output output = choice::output::first;
  bool quiet = false;  ///< do not print the line about the connection between hosts
  choice::policy policy = choice::policy::greedy;  ///< how threads are stolen, joined and freed: policy.hpp
  bool stats = false;                              ///< print a table of scheduler counters at the end
  std::string stats_json = "";  ///< write the counters to this file (-: standard output); empty: no
  std::string trace = "";       ///< write what the workers did to this file, for Perfetto; empty: no
  std::uint64_t trace_bytes = 64ull << 20;  ///< memory for events, per worker; the oldest are dropped
  std::uint32_t trace_workers = 0;          ///< trace so many of them, evenly spread; 0: all
  bool span = false;                        ///< measure work and span exactly (every spawn costs more)
  std::uint64_t global_bytes = 8ull << 40;  ///< addresses for the run's global memory (virtual until touched)
  /// global memory allocated on one host at most; 0: by what is available
  std::uint64_t global_limit = 0;
  std::uint64_t cache_bytes = 256ull << 20;  ///< per host: copies of other hosts' global memory
  /// owners of movable memory that other hosts have, to be remembered per worker or host; 0: all (flat)
  std::uint64_t translations = 0;
  /// which of them is forgotten: the least recently used, or any
  choice::translations_replace translations_replace = choice::translations_replace::lru;
  /// none: each worker remembers its own; single_lock, concurrent: a host's workers together
  choice::translations_lock translations_lock = choice::translations_lock::none;
  /// several hosts: who knows which host has a part of movable memory: docs/switch.md
  choice::directory directory = choice::directory::software;
  std::string switch_at;            ///< directory xdp, ovs: the switch's address
  std::string net_interface;        ///< for datagrams between hosts; empty: the first one that is up
  std::uint32_t switch_faults = 0;  ///< testing: % of datagrams that are lost, doubled and delayed, each
  choice::check_global check_global =
      choice::check_global::automatic;  ///< notice misuse of global memory: on, off, auto (debug builds)
  bool check_heap = false;              ///< report what threads allocated and nobody freed: docs/heap.md
  std::string sim_machine = "here";     ///< substrate sim: a machine's name, or the path of its file
  std::uint32_t sim_hosts = 1;          ///< substrate sim: the workers are spread over so many
  std::uint64_t sim_seed = 1;           ///< substrate sim: of everything that chance decides
  /// substrate sim: who says how long user code takes: the program (charged), this machine's clock
  /// (measured), or how many instructions it retires (counted)
  choice::sim_clock sim_clock = choice::sim_clock::charged;
  std::uint64_t sim_jitter_ns = 0;  ///< substrate sim: each wait takes up to so much longer
  std::uint64_t sim_limit_ms = 0;   ///< substrate sim: a run that is not over by then has failed; 0: no limit
  std::uint64_t sim_lead_ns = 0;    ///< substrate sim: how far a thread that computes may be ahead of others
  std::string sim_faults;           ///< substrate sim: names of faults, with commas between; empty: none
};

/// Take --godwit-* flags out of argv (and argc), so that a program can parse its own. Optional: run does the
/// same on its own copy. Flags are remembered for later runs. On a bad flag prints one line and exits with
/// status 2; --godwit-help prints the options and exits with 0.
void take_options(int& argc, char** argv);

/// What run would use now: @p base, then environment, then flags seen so far. Throws std::invalid_argument
/// with one line of text on a bad value.
options resolve_options(const options& base = {});

}  // namespace godwit
