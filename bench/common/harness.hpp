// The harness: what the benchmarks have in common.
//
// A benchmark is a list of variants (serial, ours on w workers, TBB, OpenMP) of one computation. The
// harness runs them interleaved -- round 1: every variant once, round 2: every variant once, ... -- because
// the speed of a shared machine drifts, and computes every ratio inside a round before it takes medians.
// Output: a table, and JSON for scripts/results.
// The command line is read in arguments.cpp, the rest is in harness.cpp.
// Not here: how a godwit run is timed (godwit_run.hpp).
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using nlohmann::ordered_json;

/// TBB and OpenMP, installed or not; of the other libraries of threads those that were found.
std::vector<std::string> all_peers();

/// Flags of every benchmark.
struct common_options {
  int reps = 5;
  std::vector<unsigned> workers;  ///< empty: 1 and all usable
  bool quick = false;
  std::string json;  ///< file, "-" for standard output, empty: none
  std::vector<std::string> peers = all_peers();
  int peer_reps = 2;      ///< peers take part in the first rounds only: some are very slow here
  int peer_limit_s = 30;  ///< libraries of threads: seconds after which a run is given up

  std::vector<std::string> policies;  ///< of godwit; only for programs that call add_policies()

  bool wants_peer(const std::string& name) const;
};

/// What the scheduler did in one repetition; sums over the workers unless said otherwise.
struct scheduler_counts {
  std::uint64_t steals = 0;
  std::uint64_t steals_failed = 0;
  std::uint64_t steals_timed = 0;   ///< successful ones inside a host of which the time was taken
  std::uint64_t steal_ns = 0;       ///< their time, of which
  std::uint64_t steal_copy_ns = 0;  ///< copying stacks
  std::uint64_t spawns = 0;
  std::uint64_t suspends = 0;
  std::uint64_t outstanding_joins = 0;
  std::uint64_t outstanding_resumed = 0;
  std::uint64_t outstanding_ns = 0;  ///< of the resumed: from "could go on" to "went on"
  std::uint64_t stolen_bytes = 0;
  std::uint64_t far_steals = 0;  ///< between hosts
  std::uint64_t far_failed = 0;
  std::uint64_t messages = 0;  ///< way am: requests carried out by workers
  std::uint64_t message_ns = 0;
  std::uint64_t stack_high_bytes = 0;  ///< maximum over the workers
  std::uint64_t heap_high_bytes = 0;   ///< likewise
};

/// One repetition of one variant.
struct sample {
  double seconds = 0;        ///< the computation: in a godwit run, from root's start to its end
  double total_seconds = 0;  ///< with starting and stopping the workers
  double cpu_seconds = 0;    ///< CPU time: of the computation; on several workers of all of them, whole life
  bool correct = true;       ///< else, of a peer, also: it crashed
  bool gave_up = false;      ///< a peer that took too long (add_library_peer): no times
  bool scheduled = false;    ///< counts are there
  scheduler_counts counts;
};

/// One way to do the computation.
struct variant {
  std::string name;             ///< "serial", "godwit", "tbb", ...
  unsigned workers = 0;         ///< 0: a plain program
  std::function<sample()> run;  ///< empty: not installed
  bool peer = false;            ///< somebody else's runtime
  std::string policy = {};      ///< of godwit
};

/// All repetitions of one variant, and what follows from them.
struct series {
  std::string name;
  std::string policy;
  unsigned workers = 0;
  bool available = true;
  std::string lost;  ///< a peer: why it has no samples, if it failed in one of the rounds
  std::vector<sample> samples;
  double median_s = 0, min_s = 0, total_median_s = 0, cpu_median_s = 0;
  double cpu_over_reference = 0;  ///< the same of CPU times: what remains comparable on a busy machine
  double over_reference = 0;      ///< median over the rounds of time / reference's time in the same round
  scheduler_counts counts;        ///< medians; *_high_bytes: maximum
};

double median(std::vector<double> values);
double quantile(std::vector<double> values, double q);

/// "102,181,082"
std::string grouped(std::uint64_t n);

/// The CPU model, kernel, compiler, number of CPUs; neither host names nor paths.
ordered_json machine();

/// CPU seconds that the rest of the machine used, from construction on. Other programs on the same CPUs are
/// what spoils figures most often, and nobody sees them in the figures.
class foreign_load {
 public:
  foreign_load();
  /// CPUs that others kept busy, on average.
  double cpus() const;

 private:
  double wall_, busy_, own_;
};

/// What an option accepts; by default anything of its type.
struct allowed {
  std::optional<std::pair<double, double>> bounds = {};  ///< both included
  std::vector<std::string> words = {};
};
/// Numbers from @p low to @p high.
allowed between(double low, double high);
/// One of @p words. An int option gets the word's place among them, from 0: as a number, or as the word in
/// either case.
allowed one_of(std::vector<std::string> words);

/// One benchmark program: options in, table and JSON out.
class program {
 public:
  /// @p name as users call it. Takes --godwit-* out of argv.
  program(std::string name, std::string description, int argc, char** argv);
  ~program();

  /// Accept @p name ("-n", "-c,--cutoff") with a value; parse() writes it to @p to. @p Value: int, unsigned,
  /// std::uint64_t, double, std::string, or a vector of them, which is given with commas. --help shows what
  /// is in @p to as the default, unless @p text says "(default ...)" itself.
  template <typename Value>
  void option(const std::string& name, Value& to, const std::string& text, const allowed& values = {});
  /// Accept @p name without a value: parse() makes @p to true.
  void flag(const std::string& name, bool& to, const std::string& text);
  /// The program's options from here on, without --policies, stand under @p title in --help.
  void group(const std::string& title);
  /// Accept --policies; @p defaults are those that run without it.
  void add_policies(const std::vector<std::string>& defaults);

  /// Parse. Exits with 0 after --help, with 2 and one line after wrong input.
  void parse();
  /// After parse(): does the command line have @p option?
  bool given(const std::string& option) const;
  const common_options& options() const { return options_; }
  ordered_json& json() { return json_; }

  /// Worker counts to run with.
  const std::vector<unsigned>& workers() const { return workers_; }
  unsigned most_workers() const;

  /// Run all variants, interleaved. The first one is what ratios refer to.
  std::vector<series> measure(const std::vector<variant>& variants);
  /// Print the table of a measurement under @p title and add it to the JSON under "measurements".
  void show(const std::string& title, const ordered_json& parameters, const std::vector<series>& all);

  /// A figure derived from the measurement: printed as "what: value unit  (definition)", kept in the JSON.
  void figure(const std::string& key, const std::string& what, double value, const char* unit,
              const std::string& definition);
  /// A figure that was sampled: its median is the value; the least of the samples, and all of them, stand
  /// beside it.
  void figure(const std::string& key, const std::string& what, const std::vector<double>& samples,
              const char* unit, const std::string& definition);
  /// Remember a wrong result; the exit status becomes 1.
  void wrong(const std::string& line);

  /// Write the JSON; gives back the exit status.
  int finish();

  /// Text goes here: standard output, or standard error when the JSON takes standard output.
  std::FILE* out() const;

 private:
  void read_arguments();  ///< the part of parse() that is about options_

  std::string name_;
  int argc_;
  char** argv_;
  std::string command_;
  struct command_line;
  std::unique_ptr<command_line> line_;
  common_options options_;
  std::vector<unsigned> workers_;
  ordered_json json_;
  foreign_load load_;
  int status_ = 0;
};

/// The variants of an installed peer, for 1 and @p most workers; one "not installed" variant otherwise.
/// compute(workers) runs the computation and gives back whether the result was right.
void add_peer(std::vector<variant>& to, const program& p, const std::string& name, bool installed,
              const std::function<bool(unsigned workers)>& compute);
/// The same where preparing and checking shall not be timed: run(workers) times what is to be timed.
void add_timed_peer(std::vector<variant>& to, const program& p, const std::string& name, bool installed,
                    const std::function<sample(unsigned workers)>& run);

/// add_peer for a library of threads: each run in a process of its own, because some do not start twice in
/// one or do not end on a busy machine; a run that takes longer than --peer-limit seconds is given up, and so
/// is the variant. @p prepare runs before, @p is_right after it, in its process; neither is timed.
void add_library_peer(std::vector<variant>& to, const program& p, const std::string& name,
                      const std::function<bool(unsigned workers)>& compute,
                      const std::function<void()>& prepare = {}, const std::function<bool()>& is_right = {});

/// The name of a variant of @p form under @p policy: the default policy is not mentioned.
std::string under(const std::string& form, const std::string& policy);

/// Policies of godwit that this build knows.
const std::vector<std::string>& known_policies();
/// Those of them that "Distributed continuation stealing is more scalable than you might think" compares
/// (figure 6); its baseline is stalling_locked_free.
std::vector<std::string> paper_policies();

/// One line on standard error, then exit with status 2.
[[noreturn]] void usage_error(const std::string& line);

const series* find(const std::vector<series>& all, const std::string& name, unsigned workers);
/// Median over the rounds of a's time / b's time of the same round; 0 if one is missing.
double paired_ratio(const series* a, const series* b);

/// The same of CPU times.
double paired_cpu_ratio(const series* a, const series* b);

/// Run @p f on a thread with a stack that deep recursions fit into, and wait for it.
void on_big_stack(const std::function<void()>& f);

}  // namespace bench
