// The options table: what a run can be told, and where it can be said.
//
// One row per field of godwit::options gives the GODWIT_* variable, the --godwit-* flag, the range check, the
// line of --godwit-help and the row of docs/options.md. A new option is a new field and a new row, nothing
// else.
// Public side: include/godwit/options.hpp. Called by src/runtime (launch) and tools/options_doc.cpp.
// Tests: tests/base/options_test.cpp, tests/tools (docs/options.md is up to date).
#pragma once

#include <godwit/options.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace godwit::base {

inline constexpr std::uint64_t KiB = 1ull << 10;
inline constexpr std::uint64_t MiB = 1ull << 20;
inline constexpr std::uint64_t GiB = 1ull << 30;
inline constexpr std::uint64_t TiB = 1ull << 40;

/// How the text of a number is read and shown: plain, or with K, M, G, T (powers of 1024).
enum class option_unit : std::uint8_t { count, microseconds, bytes };

/// What an option is about: the headings of --godwit-help and docs/options.md, in this order.
enum class option_group : std::uint8_t { everyday, memory, hosts, debugging, testing, simulation };

/// One row of the table. Unused columns stay empty.
struct option_info {
  template <class... T>
  using members = std::variant<T options::*...>;
  using member =
      members<std::uint32_t, std::uint64_t, bool, std::string, choice::substrate, choice::bind, choice::heap,
              choice::force_steal, choice::force_move, choice::way, choice::hosts, choice::victims,
              choice::far_steal, choice::output, choice::policy, choice::check_global,
              choice::translations_replace, choice::translations_lock, choice::sim_clock, choice::directory>;
  /// Up to sixteen, the rest is empty.
  using words = std::array<std::string_view, 16>;
  std::string_view name;  ///< the field: stack_bytes -> GODWIT_STACK_BYTES, --godwit-stack-bytes
  option_group group;
  member field;
  std::string_view what;  ///< "a number of workers", for messages
  std::string_view help;  ///< one line for --godwit-help and the manual
  option_unit unit = option_unit::count;
  std::uint64_t low = 0;  ///< numbers: range, both ends included
  std::uint64_t high = ~0ull;
  std::string_view zero = {};  ///< numbers: what 0 means, if it lies outside [low, high] or is special
  words choices = {};          ///< choices: the word of each, in the order of the enumeration
  std::array<std::string_view, 2> zero_one = {};  ///< choices: the words that 0 and 1 stand for
};

std::span<const option_info> option_table() noexcept;

/// A heading of lists of options, and the rows below it.
struct option_heading {
  std::string_view title;  ///< "Memory"
  std::vector<const option_info*> options;
};
std::vector<option_heading> options_by_group();

std::string option_env_name(const option_info& info);   ///< GODWIT_STACK_BYTES
std::string option_flag_name(const option_info& info);  ///< --godwit-stack-bytes
std::string option_syntax(const option_info& info);     ///< "N", "BYTES", "0|1", "none|cores"
std::string option_range(const option_info& info);      ///< "between 1 and 4096 (0 = one per usable CPU)"
std::string option_value(const option_info& info, const options& from);  ///< as a user would write it

/// The text of --godwit-help, defaults as in @p defaults.
std::string options_help(const options& defaults = {});

/// Thrown when --godwit-help is met. Not an error: print text, exit with 0.
struct help_requested {
  std::string text;
};

/// @p base, then environment, then flags taken by take_options, then the --godwit-* flags of argv, the later
/// ones winning. Leaves argv alone; flags after "--" are the program's. argv may be null. Throws
/// std::invalid_argument whose what() is the whole line to print ("godwit: ..."), or help_requested. Local.
options parse_options(int argc, char** argv, const options& base);

/// "on", "0", "yes"..., large or small; nothing: the text is no value of a switch.
std::optional<bool> read_switch(std::string_view text);

/// All options as text, one line each, and back: how the first rank's reach the others.
std::string write_options(const options& o);
options read_options(std::string_view text);

}  // namespace godwit::base
