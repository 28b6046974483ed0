// The options table and its readers: environment, flags, help. See options.hpp.
//
// The home of getenv (here: of environ, because unknown GODWIT_* variables are errors, too).
#include "base/options.hpp"

#include <godwit/detail/policy_facts.hpp>

#include "base/launcher.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <unistd.h>
#include <utility>
#include <vector>

namespace godwit::base {
namespace {

constexpr std::uint64_t KiB = 1ull << 10;
constexpr std::uint64_t MiB = 1ull << 20;
constexpr std::uint64_t GiB = 1ull << 30;
constexpr std::uint64_t TiB = 1ull << 40;

constexpr option_info::words policy_names() {
  option_info::words names;
  static_assert(detail::span_row <= std::tuple_size_v<option_info::words>, "more words (options.hpp)");
  for (std::size_t i = 0; i < detail::span_row; ++i) names[i] = detail::policy_table[i].name;
  return names;
}

// clang-format off
constexpr option_info table[] = {
    {.name = "workers", .field = &options::workers, .what = "a number of workers",
     .help = "workers to start",
     .low = 1, .high = 4096, .zero = "one per usable CPU; under MPI one per rank"},
    {.name = "substrate", .field = &options::substrate, .what = "a substrate",
     .help = "where workers live: forked processes of this machine, threads of this process, or the ranks "
             "that mpirun or srun started",
     .choices = {"auto", "processes", "threads", "mpi"}},
    {.name = "spare_workers", .field = &options::spare_workers, .what = "a number of workers",
     .help = "substrate threads: workers besides, woken while all others block in system calls or compute "
             "for long and threads are ready",
     .low = 0, .high = 1024},
    {.name = "stack_bytes", .field = &options::stack_bytes, .what = "a size",
     .help = "size of the stack region of each worker, shared by all threads it runs (virtual until touched)",
     .unit = option_unit::bytes, .low = 64 * KiB, .high = 256 * GiB},
    {.name = "thread_stack_bytes", .field = &options::thread_stack_bytes, .what = "a size",
     .help = "substrate threads: stack of each thread but the root's, rounded up to a power of two (virtual "
             "until touched)",
     .unit = option_unit::bytes, .low = 16 * KiB, .high = 1024 * MiB},
    {.name = "heap_bytes", .field = &options::heap_bytes, .what = "a size",
     .help = "per worker: room for suspended stacks, join records and results (virtual until touched)",
     .unit = option_unit::bytes, .low = MiB, .high = 512 * GiB},
    {.name = "bind", .field = &options::bind, .what = "a way to bind workers",
     .help = "cores: worker i stays on the i-th usable CPU",
     .choices = {"none", "cores"}},
    {.name = "spin_us", .field = &options::spin_us, .what = "a time in microseconds",
     .help = "how long an idle worker looks for work before it sleeps",
     .unit = option_unit::microseconds, .low = 0, .high = 10'000'000},
    {.name = "expose_signal", .field = &options::expose_signal, .what = "a switch",
     .help = "starving workers may interrupt one that computes without spawning"},
    {.name = "force_steal", .field = &options::force_steal, .what = "a kind of forced steal",
     .help = "testing: who is made to leave at every spawn (1 = random, 0 = none)",
     .choices = {"none", "parents", "children", "random"}, .zero_one = {"none", "random"}},
    {.name = "rebalance", .field = &options::rebalance, .what = "a switch",
     .help = "several hosts: idle workers fetch parts of movable memory, with threads that wait for them"},
    {.name = "force_move", .field = &options::force_move, .what = "a kind of forced move",
     .help = "testing: distributed memory is movable, and accesses move it (1 = random, 0 = none)",
     .choices = {"none", "random"}, .zero_one = {"none", "random"}},
    {.name = "delay_us", .field = &options::delay_us, .what = "a time in microseconds",
     .help = "testing: random delays of up to this long inside the protocols",
     .unit = option_unit::microseconds, .low = 0, .high = 1'000'000},
    {.name = "seed", .field = &options::seed, .what = "a seed",
     .help = "of victim selection, forced steals and delays",
     .low = 1, .zero = "drawn anew"},
    {.name = "private_heap", .field = &options::private_heap, .what = "a switch",
     .help = "keep workers' heaps apart, so that a heap pointer that migrated is noticed"},
    {.name = "check_frames", .field = &options::check_frames, .what = "a switch",
     .help = "threads that captured locals of their ancestors can read them wherever they go, and writes to "
             "them that would be lost end the run"},
    {.name = "way", .field = &options::way, .what = "a way to other hosts",
     .help = "how memory of other hosts is reached (docs/cluster.md); auto measures and chooses",
     .choices = {"auto", "rma", "server", "assist", "am"}},
    {.name = "hosts", .field = &options::hosts, .what = "a division into hosts",
     .help = "which ranks share memory: those of one host, or (testing) each only with itself",
     .choices = {"auto", "ranks"}},
    {.name = "victims", .field = &options::victims, .what = "a choice of victims",
     .help = "whom idle workers steal from: workers of their own host first, or all alike",
     .choices = {"near", "uniform"}},
    {.name = "empty_check", .field = &options::empty_check, .what = "a switch",
     .help = "look whether a victim has something before locking its queue"},
    {.name = "far_steal", .field = &options::far_steal, .what = "a kind of steal",
     .help = "between hosts: call (one request does all) or words (one-sided, step by step; always so with "
             "way=rma)",
     .choices = {"call", "words"}},
    {.name = "rma_atomics", .field = &options::rma_atomics, .what = "a switch",
     .help = "way=rma: use MPI's atomics also on words that CPUs change (only where both are coherent)"},
    {.name = "mpi", .field = &options::mpi, .what = "an MPI component",
     .help = "openmpi, mpich or the path of a component; empty: the one that fits the launcher"},
    {.name = "randomize", .field = &options::randomize, .what = "a switch",
     .help = "under MPI: leave address randomisation on (the environment variable only; threads cannot "
             "migrate then)"},
    {.name = "output", .field = &options::output, .what = "a choice of ranks",
     .help = "under MPI: whose standard output is shown outside run (the environment variable only)",
     .choices = {"first", "all"}},
    {.name = "quiet", .field = &options::quiet, .what = "a switch",
     .help = "do not print the line that says how hosts are connected"},
    {.name = "policy", .field = &options::policy, .what = "a policy",
     .help = "how threads are stolen, joined and freed (docs/policies.md); others than greedy are for "
             "comparison",
     .choices = policy_names()},
    {.name = "stats", .field = &options::stats, .what = "a switch",
     .help = "print a table of scheduler counters at the end"},
    {.name = "stats_json", .field = &options::stats_json, .what = "a file",
     .help = "write the counters as JSON to this file at the end (-: standard output)"},
    {.name = "trace", .field = &options::trace, .what = "a file",
     .help = "write what the workers did to this file: open it at ui.perfetto.dev or with godwit-report"},
    {.name = "trace_bytes", .field = &options::trace_bytes, .what = "a size",
     .help = "memory for events, per worker; when it is full the oldest events are dropped",
     .unit = option_unit::bytes, .low = 64 * KiB, .high = 64ull << 30},
    {.name = "span", .field = &options::span, .what = "a switch",
     .help = "measure work and span: every spawn takes a slow path (one host, policy greedy)"},
    {.name = "global_bytes", .field = &options::global_bytes, .what = "a size",
     .help = "addresses for the global memory of the whole run (virtual until touched)",
     .unit = option_unit::bytes, .low = 256 * MiB, .high = 64 * TiB},
    {.name = "global_limit", .field = &options::global_limit, .what = "a size",
     .help = "global memory that may be allocated on one host; more throws global_bad_alloc",
     .unit = option_unit::bytes, .low = MiB, .zero = "nine tenths of the memory that is available at start"},
    {.name = "cache_bytes", .field = &options::cache_bytes, .what = "a size",
     .help = "per host: copies of global memory of other hosts",
     .unit = option_unit::bytes, .low = MiB, .high = TiB},
    {.name = "translations", .field = &options::translations, .what = "a number of translations",
     .help = "remember who has so many parts of other hosts' movable memory, as bounded directories do",
     .low = 1, .high = 1 << 24, .zero = "flat: of all"},
    {.name = "translations_replace", .field = &options::translations_replace, .what = "a choice",
     .help = "which translation is forgotten for another: the least recently used, or any",
     .choices = {"lru", "random"}},
    {.name = "translations_lock", .field = &options::translations_lock, .what = "a choice",
     .help = "whose translations are those: each worker's own, or a host's together, under one or many locks",
     .choices = {"none", "single_lock", "concurrent"}},
    {.name = "check_global", .field = &options::check_global, .what = "a choice",
     .help = "notice misuse of global memory: freed or foreign addresses, conflicting checkouts, leaks; "
             "auto: in debug builds",
     .choices = {"auto", "on", "off"}, .zero_one = {"off", "on"}},
};
// clang-format on

// Does not compile when options gets a field: give that field a row above, then count it here.
[[maybe_unused]] constexpr std::size_t field_count(const options& o) {
  [[maybe_unused]] const auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17,
                                f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32,
                                f33, f34, f35, f36, f37, f38, f39] = o;
  return 39;
}
static_assert(std::size(table) == 39, "every field of godwit::options has exactly one row");

constexpr std::string_view flag_prefix = "--godwit-";
constexpr std::string_view env_prefix = "GODWIT_";

/// Flags that take_options removed from a command line. Written before run, by one thread.
std::vector<std::string>& taken_flags() {
  static std::vector<std::string> flags;
  return flags;
}

[[noreturn]] void bad(const std::string& text) { throw std::invalid_argument("godwit: " + text); }

/// How many words a row has to choose from.
std::size_t choices_of(const option_info& info) {
  const auto& c = info.choices;
  return static_cast<std::size_t>(std::find(c.begin(), c.end(), std::string_view()) - c.begin());
}

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string mapped(std::string_view prefix, std::string_view name, auto convert) {
  std::string out(prefix);
  std::transform(name.begin(), name.end(), std::back_inserter(out), convert);
  return out;
}

std::string show_number(std::uint64_t v, option_unit unit) {
  if (unit == option_unit::bytes && v != 0)
    for (const auto& [one, suffix] : {std::pair{TiB, 'T'}, {GiB, 'G'}, {MiB, 'M'}, {KiB, 'K'}})
      if (v % one == 0) return std::to_string(v / one) + suffix;
  return std::to_string(v);
}

std::optional<std::uint64_t> read_number(std::string_view text, option_unit unit) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (rest.empty()) return value;
  if (unit != option_unit::bytes) return std::nullopt;
  const auto power = std::string_view("KMGT").find(upper(rest.front()));
  if (power == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(1);
  if (!rest.empty() && rest != "B" && rest != "iB") return std::nullopt;
  const std::uint64_t factor = KiB << (10 * power);
  if (value > ~0ull / factor) return std::nullopt;
  return value * factor;
}

bool in_range(const option_info& info, std::uint64_t v) {
  return (v >= info.low && v <= info.high) || (v == 0 && !info.zero.empty());
}

std::string expected(const option_info& info) { return std::string(info.what) + ' ' + option_range(info); }

/// Put @p text into its field of @p o. False: the text is no value of this option.
bool assign(const option_info& info, std::string_view text, options& o) {
  return std::visit(
      [&]<class T>(T options::*field) {
        if constexpr (std::is_same_v<T, bool>) {
          const auto v = read_switch(text);
          if (v) o.*field = *v;
          return v.has_value();
        } else if constexpr (std::is_same_v<T, std::string>) {
          o.*field = std::string(text);
          return true;
        } else if constexpr (std::is_enum_v<T>) {
          if (!info.zero_one[0].empty() && (text == "0" || text == "1")) text = info.zero_one[text == "1"];
          const auto word = std::find(info.choices.begin(), info.choices.end(), text);
          if (text.empty() || word == info.choices.end()) return false;
          o.*field = static_cast<T>(word - info.choices.begin());
          return true;
        } else {
          const auto v = read_number(text, info.unit);
          if (!v || !in_range(info, *v)) return false;
          o.*field = static_cast<T>(*v);
          return true;
        }
      },
      info.field);
}

/// Number of single-character edits between two names.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j)
      diagonal = std::exchange(row[j + 1], std::min({row[j + 1] + 1, row[j] + 1, diagonal + (a[i] != b[j])}));
  }
  return row.back();
}

/// " -- did you mean X?" or where to find the list.
std::string suggestion(std::string_view given, auto spell) {
  const option_info* best = nullptr;
  std::size_t best_distance = ~std::size_t{0};
  for (const auto& info : table)
    if (const auto d = distance(given, spell(info)); d < best_distance) best = &info, best_distance = d;
  if (best_distance <= 4) return ": did you mean " + spell(*best) + "?";
  return ": --godwit-help lists all";
}

const option_info* find_by(std::string_view given, auto spell) {
  for (const auto& info : table)
    if (given == spell(info)) return &info;
  return nullptr;
}

void check_struct(const options& base) {
  for (const auto& info : table) {
    options scratch;
    const std::string value = option_value(info, base);
    if (!assign(info, value, scratch))
      bad("options::" + std::string(info.name) + " = " + value + ": not " + expected(info));
  }
}

void read_environment(options& o) {
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry = *e;
    if (!entry.starts_with(env_prefix)) continue;
    const auto equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    const option_info* info = find_by(name, option_env_name);
    if (info == nullptr)
      bad(std::string(name) + ": no such environment variable" + suggestion(name, option_env_name));
    const std::string_view value = entry.substr(std::min(equals + 1, entry.size()));
    if (!assign(*info, value, o)) bad(std::string(entry) + ": not " + expected(*info));
  }
}

void read_flag(std::string_view flag, options& o) {
  const auto equals = flag.find('=');
  const std::string_view name = flag.substr(0, equals);
  if (name == "--godwit-help") throw help_requested{options_help()};
  const option_info* info = find_by(name, option_flag_name);
  if (info == nullptr) bad(std::string(flag) + ": no such flag" + suggestion(name, option_flag_name));
  if (equals == std::string_view::npos) {
    if (!std::holds_alternative<bool options::*>(info->field))
      bad(std::string(flag) + ": needs a value: " + std::string(name) + '=' + option_syntax(*info));
    assign(*info, "1", o);
  } else if (!assign(*info, flag.substr(equals + 1), o)) {
    bad(std::string(flag) + ": not " + expected(*info));
  }
}

bool is_ours(std::string_view argument) { return argument.starts_with(flag_prefix); }

/// Call @p f on each of our flags in argv; argv ends at a null pointer or at "--".
void for_each_flag(int argc, char** argv, auto f) {
  for (int i = 1; argv != nullptr && i < argc && argv[i] != nullptr && std::string_view(argv[i]) != "--"; ++i)
    if (is_ours(argv[i])) f(argv[i]);
}

}  // namespace

std::optional<bool> read_switch(std::string_view text) {
  const std::string t = mapped("", text, lower);
  if (t == "1" || t == "on" || t == "true" || t == "yes") return true;
  if (t == "0" || t == "off" || t == "false" || t == "no") return false;
  return std::nullopt;
}

std::span<const option_info> option_table() noexcept { return table; }

std::string option_env_name(const option_info& info) { return mapped(env_prefix, info.name, upper); }

std::string option_flag_name(const option_info& info) {
  return mapped(flag_prefix, info.name, [](char c) { return c == '_' ? '-' : c; });
}

std::string option_syntax(const option_info& info) {
  if (std::holds_alternative<bool options::*>(info.field)) return "0|1";
  if (const std::size_t n = choices_of(info); n != 0) {
    std::string all(info.choices[0]);
    for (std::size_t i = 1; i < n; ++i) all += '|' + std::string(info.choices[i]);
    return all;
  }
  if (std::holds_alternative<std::string options::*>(info.field)) return "TEXT";
  if (info.unit == option_unit::microseconds) return "US";
  return info.unit == option_unit::bytes ? "BYTES" : "N";
}

std::string option_range(const option_info& info) {
  if (std::holds_alternative<bool options::*>(info.field)) return "(0 or 1, off or on)";
  if (std::holds_alternative<std::string options::*>(info.field)) return "(text)";
  if (const std::size_t n = choices_of(info); n != 0) {
    std::string out = "(" + std::string(info.choices[0]);
    for (std::size_t i = 1; i < n; ++i) out += (i + 1 == n ? " or " : ", ") + std::string(info.choices[i]);
    return out + ")";
  }
  std::string out = "between " + show_number(info.low, info.unit) + " and ";
  out += info.high == ~0ull ? "2^64-1" : show_number(info.high, info.unit);
  if (!info.zero.empty()) out += " (0 = " + std::string(info.zero) + ")";
  return out;
}

std::string option_value(const option_info& info, const options& from) {
  return std::visit(
      [&]<class T>(T options::*field) -> std::string {
        if constexpr (std::is_same_v<T, std::string>)
          return from.*field;
        else if constexpr (std::is_same_v<T, bool>)
          return from.*field ? "1" : "0";
        else if constexpr (std::is_enum_v<T>) {
          const auto i = static_cast<std::size_t>(from.*field);
          return i < choices_of(info) ? std::string(info.choices[i]) : std::to_string(i);
        } else
          return show_number(from.*field, info.unit);
      },
      info.field);
}

std::string options_help(const options& defaults) {
  std::string out =
      "Options of the godwit runtime. A flag wins over its environment variable, and that over what the "
      "program set.\n"
      "Sizes may end in K, M, G or T.\n\n";
  for (const auto& info : table) {
    out += "  " + option_flag_name(info) + '=' + option_syntax(info) + "   (" + option_env_name(info) + ")\n";
    out += "      " + std::string(info.help) + '\n';
    out += "      default " + option_value(info, defaults);
    const bool number = std::holds_alternative<std::uint32_t options::*>(info.field) ||
                        std::holds_alternative<std::uint64_t options::*>(info.field);
    out += !number ? "\n" : ", " + option_range(info) + '\n';
  }
  return out + "  --godwit-help\n      print this and exit\n";
}

std::string write_options(const options& o) {
  std::string text;
  for (const auto& info : table) text += std::string(info.name) + '=' + option_value(info, o) + '\n';
  return text;
}

options read_options(std::string_view text) {
  options o;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const auto equals = line.find('=');
    const option_info* info = find_by(line.substr(0, equals), [](const option_info& i) { return i.name; });
    if (info == nullptr || !assign(*info, line.substr(equals + 1), o))
      bad("not an option: " + std::string(line));
    text.remove_prefix(end + 1);
  }
  return o;
}

options parse_options(int argc, char** argv, const options& base) {
  for_each_flag(argc, argv, [](std::string_view flag) {  // help wins over mistakes elsewhere
    if (flag == "--godwit-help") throw help_requested{options_help()};
  });
  check_struct(base);
  options o = base;
  read_environment(o);
  for (const auto& flag : taken_flags()) read_flag(flag, o);
  for_each_flag(argc, argv, [&](std::string_view flag) { read_flag(flag, o); });
  return o;
}

}  // namespace godwit::base

namespace godwit {

namespace choice {
namespace {
template <class Choice>
const base::option_info& row_of() {
  return *std::find_if(std::begin(base::table), std::end(base::table), [](const base::option_info& info) {
    return std::holds_alternative<Choice options::*>(info.field);
  });
}
}  // namespace

template <class Choice>
const char* name_of(Choice value) noexcept {
  const auto& info = row_of<Choice>();
  const auto i = static_cast<std::size_t>(value);
  return i < base::choices_of(info) ? info.choices[i].data() : "?";  // the table's words are literals
}

template <class Choice>
named::operator Choice() const {
  const auto& info = row_of<Choice>();
  const auto at = std::find(info.choices.begin(), info.choices.end(), word);
  if (word.empty() || at == info.choices.end())
    base::bad(std::string(word) + ": not " + base::expected(info));
  return static_cast<Choice>(at - info.choices.begin());
}

#define GODWIT_CHOICE(option)                    \
  template const char* name_of(option) noexcept; \
  template named::operator option() const
GODWIT_CHOICE(substrate);
GODWIT_CHOICE(bind);
GODWIT_CHOICE(force_steal);
GODWIT_CHOICE(force_move);
GODWIT_CHOICE(way);
GODWIT_CHOICE(hosts);
GODWIT_CHOICE(victims);
GODWIT_CHOICE(far_steal);
GODWIT_CHOICE(output);
GODWIT_CHOICE(policy);
GODWIT_CHOICE(check_global);
GODWIT_CHOICE(translations_replace);
GODWIT_CHOICE(translations_lock);
#undef GODWIT_CHOICE

}  // namespace choice

void take_options(int& argc, char** argv) {
  if (argv == nullptr) return;
  try {
    static_cast<void>(base::parse_options(argc, argv, {}));
  } catch (const base::help_requested& help) {
    std::fputs(help.text.c_str(), stdout);
    std::exit(0);
  } catch (const std::invalid_argument& error) {
    if (!base::detect_launcher().one_of_several()) {  // else run says it once for all ranks
      std::fprintf(stderr, "%s\n", error.what());
      std::exit(2);
    }
  }
  base::for_each_flag(argc, argv, [](const char* flag) { base::taken_flags().emplace_back(flag); });
  int kept = std::min(argc, 1);
  bool ours = true;
  for (int i = 1; i < argc; ++i) {
    if (argv[i] == nullptr || std::string_view(argv[i]) == "--") ours = false;
    if (!ours || !base::is_ours(argv[i])) argv[kept++] = argv[i];
  }
  if (kept < argc) argv[kept] = nullptr;  // argv[argc] is there already when nothing was taken
  argc = kept;
}

options resolve_options(const options& base) { return base::parse_options(0, nullptr, base); }

}  // namespace godwit
