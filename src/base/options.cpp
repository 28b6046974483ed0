// The readers of the options table: environment, flags, help. See options.hpp; the table: option_table.cpp.
//
// The home of getenv (here: of environ, because unknown GODWIT_* variables are errors, too).
#include "base/options.hpp"

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
  for (const auto& info : option_table())
    if (const auto d = distance(given, spell(info)); d < best_distance) best = &info, best_distance = d;
  if (best_distance <= 4) return ": did you mean " + spell(*best) + "?";
  return ": --godwit-help lists all";
}

const option_info* find_by(std::string_view given, auto spell) {
  for (const auto& info : option_table())
    if (given == spell(info)) return &info;
  return nullptr;
}

void check_struct(const options& base) {
  for (const auto& info : option_table()) {
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

std::vector<option_heading> options_by_group() {
  constexpr std::string_view titles[] = {"Everyday", "Memory", "Hosts", "Debugging", "Testing", "Simulation"};
  std::vector<option_heading> all;
  for (const std::string_view title : titles) all.push_back({title, {}});
  for (const auto& info : option_table()) all[static_cast<std::size_t>(info.group)].options.push_back(&info);
  return all;
}

namespace {
std::string help_of(const option_info& info, const options& defaults) {
  std::string out =
      "  " + option_flag_name(info) + '=' + option_syntax(info) + "   (" + option_env_name(info) + ")\n";
  out += "      " + std::string(info.help) + '\n';
  out += "      default " + option_value(info, defaults);
  const bool number = std::holds_alternative<std::uint32_t options::*>(info.field) ||
                      std::holds_alternative<std::uint64_t options::*>(info.field);
  return out + (number ? ", " + option_range(info) + '\n' : "\n");
}
}  // namespace

std::string options_help(const options& defaults) {
  std::string out =
      "Options of the godwit runtime. A flag wins over its environment variable, and that over what the "
      "program set.\n"
      "Sizes may end in K, M, G or T.\n\n"
      "  --godwit-help\n      print this and exit\n";
  for (const auto& [title, rows] : options_by_group()) {
    out += '\n' + std::string(title) + '\n';
    for (const option_info* info : rows) out += help_of(*info, defaults);
  }
  return out;
}

std::string write_options(const options& o) {
  std::string text;
  for (const auto& info : option_table()) text += std::string(info.name) + '=' + option_value(info, o) + '\n';
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
  return *std::ranges::find_if(base::option_table(), [](const base::option_info& info) {
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
GODWIT_CHOICE(heap);
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
GODWIT_CHOICE(sim_clock);
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
