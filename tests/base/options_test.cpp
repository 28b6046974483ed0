// Tests of src/base/options: flags, environment, ranges, messages, help, take_options.
// test: timeout=60
#include "base/options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace {

using godwit::options;
namespace choice = godwit::choice;
using godwit::base::parse_options;

/// argv out of words; its strings live as long as it.
class command_line {
 public:
  command_line(std::initializer_list<std::string> words) : words_(words) {
    for (auto& w : words_) argv_.push_back(w.data());
    argc = static_cast<int>(argv_.size());
    argv_.push_back(nullptr);
  }
  char** argv() { return argv_.data(); }
  std::vector<std::string> rest() {
    EXPECT_EQ(argv_[static_cast<std::size_t>(argc)], nullptr);
    return {argv_.begin(), argv_.begin() + argc};
  }
  int argc;

 private:
  std::vector<std::string> words_;
  std::vector<char*> argv_;
};

/// The environment without GODWIT_* before and after every test.
class options_test : public ::testing::Test {
 protected:
  options_test() { clean(); }
  ~options_test() override { clean(); }
  static void clean() {
    std::vector<std::string> names;
    for (char** e = environ; *e != nullptr; ++e)
      if (const std::string entry = *e; entry.starts_with("GODWIT_"))
        names.push_back(entry.substr(0, entry.find('=')));
    for (const auto& n : names) ::unsetenv(n.c_str());
  }
  static void env(const char* name, const char* value) { ::setenv(name, value, 1); }
  static options with(std::initializer_list<std::string> flags, const options& base = {}) {
    command_line line(flags);
    std::vector<std::string> words = line.rest();
    std::vector<char*> argv{const_cast<char*>("program")};
    for (auto& w : words) argv.push_back(w.data());
    return parse_options(static_cast<int>(argv.size()), argv.data(), base);
  }
  static std::string error_of(std::initializer_list<std::string> flags, const options& base = {}) {
    try {
      with(flags, base);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "no error";
  }
};

TEST_F(options_test, defaults_are_the_struct) {
  const options o = with({}), d;
  EXPECT_EQ(o.workers, 0u);
  for (const auto& info : godwit::base::option_table())
    EXPECT_EQ(option_value(info, o), option_value(info, d)) << info.name;
}

TEST_F(options_test, no_command_line) { EXPECT_EQ(parse_options(0, nullptr, {}).workers, 0u); }

TEST_F(options_test, every_kind_of_flag) {
  const options o =
      with({"--godwit-workers=3", "--godwit-stack-bytes=2M", "--godwit-bind=cores", "--godwit-stats",
            "--godwit-expose-signal=off", "--godwit-seed=18446744073709551615", "--godwit-spin-us=0"});
  EXPECT_EQ(o.workers, 3u);
  EXPECT_EQ(o.stack_bytes, 2u << 20);
  EXPECT_EQ(o.bind, choice::bind::cores);
  EXPECT_TRUE(o.stats);
  EXPECT_FALSE(o.expose_signal);
  EXPECT_EQ(o.seed, ~0ull);
  EXPECT_EQ(o.spin_us, 0u);
}

TEST_F(options_test, sizes) {
  EXPECT_EQ(with({"--godwit-heap-bytes=1048577"}).heap_bytes, 1048577u);
  EXPECT_EQ(with({"--godwit-stack-bytes=64K"}).stack_bytes, 64u << 10);
  EXPECT_EQ(with({"--godwit-stack-bytes=64kiB"}).stack_bytes, 64u << 10);
  EXPECT_EQ(with({"--godwit-heap-bytes=3GB"}).heap_bytes, 3ull << 30);
  EXPECT_EQ(with({"--godwit-heap-bytes=512G"}).heap_bytes, 512ull << 30);
  for (const char* bad : {"", "K", "1 K", "1KK", "1Kb", "1.5G", "0x10000", "-1G", "17T", "99999999999999T",
                          "65535", "18446744073709551616", "1E", " 1G"})
    EXPECT_EQ(error_of({std::string("--godwit-heap-bytes=") + bad}),
              "godwit: --godwit-heap-bytes=" + std::string(bad) + ": not a size between 1M and 512G");
}

TEST_F(options_test, switches) {
  for (const char* yes : {"1", "on", "true", "yes", "ON"})
    EXPECT_TRUE(with({std::string("--godwit-check-frames=") + yes}).check_frames);
  for (const char* no : {"0", "off", "false", "no"})
    EXPECT_FALSE(with({std::string("--godwit-private-heap=") + no}).private_heap);
  EXPECT_EQ(error_of({"--godwit-stats=2"}), "godwit: --godwit-stats=2: not a switch (0 or 1, off or on)");
  EXPECT_EQ(error_of({"--godwit-stats="}), "godwit: --godwit-stats=: not a switch (0 or 1, off or on)");
}

TEST_F(options_test, words) {
  for (const char* word : {"none", "parents", "children", "random"})
    EXPECT_STREQ(name_of(with({std::string("--godwit-force-steal=") + word}).force_steal), word);
  EXPECT_EQ(with({"--godwit-force-steal=1"}).force_steal, choice::force_steal::random);
  EXPECT_EQ(with({"--godwit-force-steal=0"}).force_steal, choice::force_steal::none);
  EXPECT_EQ(
      error_of({"--godwit-force-steal=all"}),
      "godwit: --godwit-force-steal=all: not a kind of forced steal (none, parents, children or random)");
  EXPECT_EQ(error_of({"--godwit-bind=1"}),
            "godwit: --godwit-bind=1: not a way to bind workers (none or cores)");
}

TEST_F(options_test, ranges) {
  EXPECT_EQ(error_of({"--godwit-workers=-3"}),
            "godwit: --godwit-workers=-3: not a number of workers between 1 and 16777215 (0 = one per usable "
            "CPU; under MPI one per rank)");
  EXPECT_EQ(with({"--godwit-workers=110592"}).workers, 110592u);
  EXPECT_EQ(with({"--godwit-workers=0"}).workers, 0u);
  for (const char* bad :
       {"16777216", "4294967297", "2.0", "two", "", "+1", "1K", "1 ", "99999999999999999999"})
    EXPECT_NE(error_of({std::string("--godwit-workers=") + bad}), "no error") << bad;
  EXPECT_NE(error_of({"--godwit-stack-bytes=65535"}), "no error");
  EXPECT_NE(error_of({"--godwit-stack-bytes=1025G"}), "no error");
  EXPECT_EQ(with({"--godwit-stack-bytes=256G"}).stack_bytes, 256ull << 30);
  EXPECT_EQ(with({"--godwit-spin-us=10000000"}).spin_us, 10000000u);
  EXPECT_NE(error_of({"--godwit-spin-us=10000001"}), "no error");
  EXPECT_NE(error_of({"--godwit-delay-us=1000001"}), "no error");
}

TEST_F(options_test, unknown_flags) {
  EXPECT_EQ(error_of({"--godwit-worker=3"}),
            "godwit: --godwit-worker=3: no such flag: did you mean --godwit-workers?");
  EXPECT_EQ(error_of({"--godwit-stack_bytes=1G"}),
            "godwit: --godwit-stack_bytes=1G: no such flag: did you mean --godwit-stack-bytes?");
  EXPECT_EQ(error_of({"--godwit-colour-scheme"}),
            "godwit: --godwit-colour-scheme: no such flag: --godwit-help lists all");
  EXPECT_EQ(error_of({"--godwit-workers"}), "godwit: --godwit-workers: needs a value: --godwit-workers=N");
  EXPECT_EQ(error_of({"--godwit-bind"}), "godwit: --godwit-bind: needs a value: --godwit-bind=none|cores");
}

TEST_F(options_test, other_flags_are_the_programs) {
  EXPECT_EQ(with({"--workers=9", "-g", "--godwit", "--", "--godwit-workers=nonsense"}).workers, 0u);
}

TEST_F(options_test, environment) {
  env("GODWIT_WORKERS", "7");
  env("GODWIT_FORCE_STEAL", "1");
  env("GODWIT_STATS", "on");
  const options o = with({});
  EXPECT_EQ(o.workers, 7u);
  EXPECT_EQ(o.force_steal, choice::force_steal::random);
  EXPECT_TRUE(o.stats);
}

TEST_F(options_test, environment_errors) {
  env("GODWIT_WORKERS", "many");
  EXPECT_EQ(error_of({}),
            "godwit: GODWIT_WORKERS=many: not a number of workers between 1 and 16777215 (0 = one per usable "
            "CPU; under MPI one per rank)");
  env("GODWIT_WORKERS", "");
  EXPECT_NE(error_of({}), "no error");
  ::unsetenv("GODWIT_WORKERS");
  env("GODWIT_WORKER", "2");
  EXPECT_EQ(error_of({}),
            "godwit: GODWIT_WORKER: no such environment variable: did you mean GODWIT_WORKERS?");
  ::unsetenv("GODWIT_WORKER");
  env("GODWIT_SOMETHING_ELSE", "2");
  EXPECT_EQ(error_of({}),
            "godwit: GODWIT_SOMETHING_ELSE: no such environment variable: --godwit-help lists all");
}

TEST_F(options_test, who_wins) {
  options base;
  base.workers = 2;
  base.spin_us = 11;
  base.delay_us = 5;
  env("GODWIT_WORKERS", "3");
  env("GODWIT_SPIN_US", "12");
  const options o = with({"--godwit-workers=4", "--godwit-workers=5"}, base);
  EXPECT_EQ(o.workers, 5u);
  EXPECT_EQ(o.spin_us, 12u);
  EXPECT_EQ(o.delay_us, 5u);
}

TEST_F(options_test, struct_is_checked) {
  options base;
  base.workers = 20'000'000;
  EXPECT_EQ(
      error_of({}, base),
      "godwit: options::workers = 20000000: not a number of workers between 1 and 16777215 (0 = one per "
      "usable CPU; under MPI one per rank)");
  base = {};
  base.bind = static_cast<choice::bind>(2);
  EXPECT_EQ(error_of({}, base), "godwit: options::bind = 2: not a way to bind workers (none or cores)");
}

// The words stand in the order of the enumerations.
TEST_F(options_test, choices_have_their_words) {
  using namespace choice;
  const auto words_of = [](auto... choices) {
    std::string all;
    ((all += std::string(name_of(choices)) + ' '), ...);
    return all;
  };
  EXPECT_EQ(words_of(substrate::automatic, substrate::processes, substrate::threads, substrate::mpi),
            "auto processes threads mpi ");
  EXPECT_EQ(words_of(choice::bind::none, choice::bind::cores), "none cores ");
  EXPECT_EQ(words_of(force_steal::none, force_steal::parents, force_steal::children, force_steal::random),
            "none parents children random ");
  EXPECT_EQ(words_of(way::automatic, way::rma, way::server, way::assist, way::am),
            "auto rma server assist am ");
  EXPECT_EQ(words_of(choice::hosts::automatic, choice::hosts::ranks), "auto ranks ");
  EXPECT_EQ(words_of(victims::near, victims::uniform), "near uniform ");
  EXPECT_EQ(words_of(far_steal::call, far_steal::words), "call words ");
  EXPECT_EQ(words_of(output::first, output::all), "first all ");
  EXPECT_EQ(words_of(policy::greedy, policy::stalling, policy::locked_free, policy::stalling_locked_free,
                     policy::child_rtc, policy::child_full, policy::iso, policy::crude, policy::lazy),
            "greedy stalling locked_free stalling_locked_free child_rtc child_full iso crude lazy ");
  EXPECT_EQ(words_of(check_global::automatic, check_global::on, check_global::off), "auto on off ");
}

TEST_F(options_test, choices_by_word) {
  options o;
  o.victims = choice::named{"uniform"};
  EXPECT_EQ(o.victims, choice::victims::uniform);
  for (const char* wrong : {"", "0", "Near", "far"}) {
    try {
      o.victims = choice::named{wrong};
      ADD_FAILURE() << "taken: " << wrong;
    } catch (const std::invalid_argument& e) {
      EXPECT_EQ(e.what(), "godwit: " + std::string(wrong) + ": not a choice of victims (near or uniform)");
    }
  }
}

TEST_F(options_test, help_lists_everything) {
  try {
    with({"--godwit-workers=nonsense", "--godwit-help"});
    FAIL() << "no help";
  } catch (const godwit::base::help_requested& help) {
    for (const auto& info : godwit::base::option_table()) {
      EXPECT_NE(help.text.find(option_flag_name(info) + '='), std::string::npos) << help.text;
      EXPECT_NE(help.text.find(option_env_name(info)), std::string::npos) << help.text;
    }
    EXPECT_NE(help.text.find("default 1G, between 64K and 256G"), std::string::npos) << help.text;
  }
}

TEST_F(options_test, help_has_a_heading_for_each_group) {
  const std::string text = godwit::base::options_help();
  std::set<std::string_view> listed;
  std::size_t at = 0;
  for (const auto& [title, rows] : godwit::base::options_by_group()) {
    at = text.find("\n\n" + std::string(title) + '\n', at);
    ASSERT_NE(at, std::string::npos) << title;
    EXPECT_FALSE(rows.empty()) << title;
    for (const auto* info : rows) {
      at = text.find("\n  " + option_flag_name(*info) + '=', at);
      ASSERT_NE(at, std::string::npos) << info->name << " is not below " << title;
      EXPECT_TRUE(listed.insert(info->name).second) << info->name;
    }
  }
  EXPECT_EQ(listed.size(), godwit::base::option_table().size());
}

TEST_F(options_test, table_is_sound) {
  std::set<std::string> names;
  for (const auto& info : godwit::base::option_table()) {
    EXPECT_TRUE(names.insert(std::string(info.name)).second) << info.name;
    EXPECT_FALSE(info.help.empty());
    EXPECT_FALSE(info.what.empty());
    const std::string flag = option_flag_name(info) + '=' + option_value(info, {});
    EXPECT_NO_THROW(with({flag})) << "the default must be a legal value: " << flag;
  }
}

/// 42 when all is well, else the number of what is not.
int take_and_look() {
  command_line line{"prog", "a", "--godwit-workers=6", "-x", "--godwit-stats", "--", "--godwit-spin-us=1"};
  godwit::take_options(line.argc, line.argv());
  if (line.rest() != std::vector<std::string>{"prog", "a", "-x", "--", "--godwit-spin-us=1"}) return 1;
  const options o = godwit::resolve_options();
  if (o.workers != 6 || !o.stats || o.spin_us != 50) return 2;
  command_line later{"prog", "--godwit-workers=8"};
  const options p = parse_options(later.argc, later.argv(), {});
  if (p.workers != 8 || !p.stats || later.argc != 2) return 3;
  return godwit::resolve_options().workers == 6 ? 42 : 4;
}

TEST_F(options_test, take_removes_remembers_and_leaves_the_rest) {
  // In a child process, because what is taken stays taken.
  EXPECT_EXIT(std::exit(take_and_look()), ::testing::ExitedWithCode(42), "");
}

TEST_F(options_test, take_nothing) {
  command_line line{"prog", "a", "b"};
  godwit::take_options(line.argc, line.argv());
  EXPECT_EQ(line.rest(), (std::vector<std::string>{"prog", "a", "b"}));
  int none = 0;
  godwit::take_options(none, nullptr);
  EXPECT_EQ(none, 0);
}

TEST_F(options_test, take_exits_on_errors_and_help) {
  command_line wrong{"prog", "--godwit-workers=x"};
  EXPECT_EXIT(godwit::take_options(wrong.argc, wrong.argv()), ::testing::ExitedWithCode(2),
              "^godwit: --godwit-workers=x: not a number of workers .*\n$");
  command_line help{"prog", "--godwit-help"};
  EXPECT_EXIT(godwit::take_options(help.argc, help.argv()), ::testing::ExitedWithCode(0), "");
}

TEST_F(options_test, resolve_reports_bad_environment) {
  env("GODWIT_SEED", "abc");
  EXPECT_THROW(godwit::resolve_options(), std::invalid_argument);
}

}  // namespace
