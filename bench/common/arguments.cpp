// The command line of a benchmark: the options that all have in common, and those of the program itself. The
// only file of the benchmarks that sees CLI11, which takes long to compile. See harness.hpp.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <type_traits>

#include "godwit_run.hpp"

namespace bench {

struct program::command_line {
  CLI::App app;
  CLI::App* group = &app;  ///< where the program's options go
};

allowed between(double low, double high) { return {.bounds = {{low, high}}}; }
allowed one_of(std::vector<std::string> words) { return {.words = std::move(words)}; }

namespace {

// libgomp reads the stack size of its threads before main; deep trees need more than the default.
void make_room_for_openmp(char** argv) {
#if BENCH_HAS_OPENMP
  if (std::getenv("OMP_STACKSIZE") != nullptr) return;
  setenv("OMP_STACKSIZE", "256M", 1);
  execv("/proc/self/exe", argv);  // if it fails, the default has to do
#else
  static_cast<void>(argv);
#endif
}

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

bool knows(const std::string& policy) {
  const auto& known = known_policies();
  return std::find(known.begin(), known.end(), policy) != known.end();
}

/// Of what an option holds one of.
template <typename T>
struct element {
  using type = T;
};
template <typename T>
struct element<std::vector<T>> {
  using type = T;
};

}  // namespace

program::program(std::string name, std::string description, int argc, char** argv)
    : name_(std::move(name)),
      argc_(argc),
      argv_(argv),
      line_(new command_line{.app = CLI::App(std::move(description), name_)}) {
  make_room_for_openmp(argv);
  command_ = name_;
  bool path = false;  // the value of --json is where somebody keeps files
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    command_ += ' ' + (path ? base_name(arg) : arg.starts_with("--json=") ? "--json=" + base_name(arg) : arg);
    path = arg == "--json";
  }
  godwit::take_options(argc_, argv_);
  line_->app.set_help_flag("-h,--help", "Show this and exit");
  line_->app.footer("--godwit-help lists the options of the runtime, which every run accepts.");
  option("--reps", options_.reps, "Repetitions of every variant", between(1, 10000));
  option("--workers", options_.workers, "Worker counts, such as 1,2 (default: 1 and all usable CPUs)",
         between(1, (1 << 24) - 1));
  flag("--quick", options_.quick, "A smaller problem and fewer repetitions");
  option("--json", options_.json, "Write the results to this file (- is standard output)");
  std::vector<std::string> peers = all_peers();
  peers.emplace_back("none");
  option("--peers", options_.peers, "Other runtimes to run, or none", one_of(peers));
  option("--peer-reps", options_.peer_reps, "Peers take part in this many rounds (they can be slow)",
         between(1, 10000));
  option("--peer-limit", options_.peer_limit_s,
         "Seconds after which a run of a library of threads is given up (with --quick 10)",
         between(1, 100000));
}

program::~program() = default;

template <typename Value>
void program::option(const std::string& name, Value& to, const std::string& text, const allowed& values) {
  using one = typename element<Value>::type;
  CLI::Option* const added = line_->group->add_option(name, to, text);
  if constexpr (!std::is_same_v<Value, one>) added->delimiter(',');
  if constexpr (std::is_arithmetic_v<one>) {
    if (values.bounds)
      added->check(
          CLI::Range(static_cast<one>(values.bounds->first), static_cast<one>(values.bounds->second)));
    std::map<std::string, int> places;
    for (const auto& word : values.words) places.emplace(word, static_cast<int>(places.size()));
    if (!places.empty()) added->transform(CLI::CheckedTransformer(places, CLI::ignore_case));
  } else if (!values.words.empty()) {
    added->check(CLI::IsMember(values.words));
  }
  if (text.find("(default") == std::string::npos) added->capture_default_str();
}

template void program::option(const std::string&, int&, const std::string&, const allowed&);
template void program::option(const std::string&, unsigned&, const std::string&, const allowed&);
template void program::option(const std::string&, std::uint64_t&, const std::string&, const allowed&);
template void program::option(const std::string&, double&, const std::string&, const allowed&);
template void program::option(const std::string&, std::string&, const std::string&, const allowed&);
template void program::option(const std::string&, std::vector<int>&, const std::string&, const allowed&);
template void program::option(const std::string&, std::vector<unsigned>&, const std::string&, const allowed&);
template void program::option(const std::string&, std::vector<std::uint64_t>&, const std::string&,
                              const allowed&);
template void program::option(const std::string&, std::vector<double>&, const std::string&, const allowed&);
template void program::option(const std::string&, std::vector<std::string>&, const std::string&,
                              const allowed&);

void program::flag(const std::string& name, bool& to, const std::string& text) {
  line_->group->add_flag(name, to, text);
}

void program::group(const std::string& title) { line_->group = line_->app.add_option_group(title); }

void program::add_policies(const std::vector<std::string>& defaults) {
  std::copy_if(defaults.begin(), defaults.end(), std::back_inserter(options_.policies), knows);
  std::string all;
  for (const auto& name : known_policies()) all += (all.empty() ? "" : ",") + name;
  line_->app.add_option("--policies", options_.policies, "Policies of godwit to run: all, or some of " + all)
      ->delimiter(',')
      ->check([all](const std::string& name) {
        return name == "all" || knows(name) ? std::string()
                                            : "there is no policy called " + name + "; there are " + all;
      })
      ->capture_default_str();
}

bool program::given(const std::string& option) const { return line_->app.count(option) != 0; }

void program::read_arguments() {
  try {
    line_->app.parse(argc_, argv_);
  } catch (const CLI::CallForHelp&) {
    std::fputs(line_->app.help().c_str(), stdout);
    std::exit(0);
  } catch (const CLI::ParseError& e) {
    usage_error(name_ + ": " + e.what() + " (see " + name_ + " --help)");
  }
  if (std::find(options_.policies.begin(), options_.policies.end(), "all") != options_.policies.end())
    options_.policies = known_policies();
  if (options_.quick) {
    if (!given("--reps")) options_.reps = 3;
    if (!given("--peer-reps")) options_.peer_reps = 1;
    if (!given("--peer-limit")) options_.peer_limit_s = 10;
  }
}

}  // namespace bench
