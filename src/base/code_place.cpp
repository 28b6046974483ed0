// See code_place.hpp.
#include "base/code_place.hpp"

#include <cstddef>
#include <csignal>
#include <algorithm>
#include <fcntl.h>
#include <link.h>
#include <map>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/symbols.hpp"
#include "base/text.hpp"

namespace godwit::base {

namespace {

/// The file that an address was loaded from, and the address as the file counts.
struct module {
  std::string file;
  std::uintptr_t offset = 0;
};

module module_of(std::uintptr_t address) {
  struct search {
    std::uintptr_t address;
    module found;
  } s{address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* arg) {
        auto& s = *static_cast<search*>(arg);
        for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || s.address - info->dlpi_addr - part.p_vaddr >= part.p_memsz) continue;
          s.found = {info->dlpi_name[0] != '\0' ? info->dlpi_name : own_program(),
                     s.address - info->dlpi_addr};
          return 1;
        }
        return 0;
      },
      &s);
  return s.found;
}

/// From the symbol table: "function + 0x1c", or "".
std::string symbol_at(const module& m) {
  std::string text;
  each_symbol(m.file, [&](const symbol& s) {
    if (!s.is_function || m.offset - s.begin >= s.bytes) return true;
    text = demangled(s.name) + " + " + hexadecimal(m.offset - s.begin);
    return false;
  });
  return text;
}

/// How many bytes before a return address there may be code of the call; behind the first, for where the code
/// of the call is all the library's.
constexpr std::uintptr_t before_return[] = {1, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96};

/// What the program @p words prints, for half a minute at most.
std::string answer_of(std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables;  // what the program preloads is not for the other
  for (char** v = environ; v != nullptr && *v != nullptr; ++v)
    if (!std::string_view(*v).starts_with("LD_PRELOAD=")) variables.push_back(*v);
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const bool started =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), variables.data()) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  if (started) {
    constexpr int patience_ms = 30'000;
    char part[4096];
    for (pollfd p{ends[0], POLLIN, 0}; poll(&p, 1, patience_ms) > 0;) {
      const ssize_t n = read(ends[0], part, sizeof part);
      if (n <= 0) break;
      text.append(part, static_cast<std::size_t>(n));
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  close(ends[0]);
  return text;
}

struct source_line {
  std::string function, file;  ///< file: empty: not known
  std::string number;
  /// "function (file.cpp:12)"
  std::string text() const {
    return brief(function) + " (" + file.substr(file.rfind('/') + 1) + ":" + number + ")";  // npos + 1 is 0
  }
};

/// The first of @p text, pairs of lines, that is in no header of the system or the library; or none.
source_line first_outside(std::string_view text) {
  while (!text.empty()) {
    const std::size_t middle = std::min(text.find('\n'), text.size() - 1);
    const std::size_t end = std::min(text.find('\n', middle + 1), text.size());
    std::string_view place = text.substr(middle + 1, end - middle - 1);
    place = place.substr(0, place.find(" (discriminator"));
    const std::size_t colon = std::min(place.rfind(':'), place.size());
    const std::string_view file = place.substr(0, colon),
                           number = place.substr(std::min(colon + 1, place.size()));
    if (!file.starts_with('?') && number != "?" && number != "0" && !number.empty() &&
        !in_library_header(file))
      return {std::string(text.substr(0, middle)), std::string(file), std::string(number)};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

/// For some bytes of code in one file: what first_outside says of each.
std::vector<source_line> lines_at(const std::string& file, std::span<const std::uintptr_t> offsets) {
  std::vector<std::string> words{"addr2line", "-a", "-C", "-f", "-i", "-e", file};
  for (const std::uintptr_t offset : offsets) words.push_back(hexadecimal(offset));
  const std::string answer = answer_of(words);
  std::vector<source_line> lines;
  for (std::string_view text = answer; text.starts_with("0x");) {  // the address, then its pairs
    const std::size_t begin = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::size_t end = std::min(text.find("\n0x", begin), text.size() - 1) + 1;
    lines.push_back(first_outside(text.substr(begin, end - begin)));
    text.remove_prefix(end);
  }
  lines.resize(offsets.size());
  return lines;
}

/// "function (file.cpp:12)", or "", of the first that has one of some numbers of bytes @p before the address.
std::string line_at(const module& m, std::span<const std::uintptr_t> before) {
  std::vector<std::uintptr_t> offsets;
  for (const std::uintptr_t bytes : before) offsets.push_back(m.offset - bytes);
  for (const source_line& line : lines_at(m.file, offsets))
    if (!line.file.empty()) return line.text();
  return {};
}

/// The same line. Of a lambda, debug information says that it is called operator(): the symbol, which has its
/// code, tells where it is written.
source_line with_enclosing_function(source_line line, const module& m) {
  if (line.function != "operator()") return line;
  const std::string symbol = symbol_at(m);
  if (symbol.find("::{lambda") != std::string::npos) line.function = symbol.substr(0, symbol.rfind(" + "));
  return line;
}

/// The library's sources; its functions, and those of the C++ library.
bool is_own_file(const std::string& file) {
  static const std::string sources(__FILE__, std::string_view(__FILE__).rfind("base/"));
  return file.starts_with(sources) ||
         (sources[0] != '/' && file.find('/' + sources) != std::string::npos);  // of a compiler's cache
}
bool is_own_function(const std::string& name) {
  const std::string_view n = std::string_view(name).substr(name.starts_with("void ") ? 5 : 0);
  return n.starts_with("godwit") || n.starts_with("std::") || n.starts_with("__gnu_cxx::");
}

}  // namespace

std::string code_place(std::uintptr_t return_address) { return code_place({&return_address, 1}); }

std::string code_place(std::span<const std::uintptr_t> return_addresses) {
  return code_places(return_addresses, 1).front();
}

std::vector<std::string> code_lines(std::span<const std::uintptr_t> return_addresses) {
  std::vector<std::string> texts(return_addresses.size());
  std::map<std::string, std::vector<std::size_t>> by_file;
  std::vector<module> modules;
  for (const std::uintptr_t address : return_addresses) {
    modules.push_back(address != 0 ? module_of(address) : module());
    if (!modules.back().file.empty()) by_file[modules.back().file].push_back(modules.size() - 1);
  }
  for (const auto& [file, numbers] : by_file) {
    std::vector<std::uintptr_t> offsets;
    for (const std::size_t i : numbers) offsets.push_back(modules[i].offset - before_return[0]);
    const std::vector<source_line> lines = lines_at(file, offsets);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::string& text = texts[numbers[i]];
      if (!lines[i].file.empty()) {
        if (!is_own_file(lines[i].file)) text = with_enclosing_function(lines[i], modules[numbers[i]]).text();
      } else if (const std::string symbol = symbol_at(modules[numbers[i]]); !is_own_function(symbol)) {
        text = brief(symbol);
      }
    }
  }
  return texts;
}

bool in_library_header(std::string_view file) noexcept {
  constexpr auto none = std::string_view::npos;
  if (file.starts_with("/usr/include/") || file.find("/include/c++/") != none) return true;
  constexpr std::string_view folder = "/godwit/";  // where the user's program may be, too
  const auto at = file.rfind(folder);
  if (at == none || !file.ends_with(".hpp")) return false;
  const std::string_view rest = file.substr(at + folder.size());
  return rest.find('/') == none || rest.starts_with("detail/") || rest.starts_with("algorithm/");
}

std::vector<std::string> lines_of(std::span<const std::uintptr_t> return_addresses, std::size_t most) {
  std::vector<std::string> lines;
  for (const std::uintptr_t address : return_addresses) {
    if (lines.size() == most) break;
    const module m = address != 0 ? module_of(address) : module();
    if (m.file.empty()) continue;
    // The first one may be a little off; further ones are said to have called it.
    const std::span<const std::uintptr_t> before = before_return;
    std::string line = line_at(m, lines.empty() ? before : before.first(1));
    if (!line.empty() && (lines.empty() || lines.back() != line)) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> code_places(std::span<const std::uintptr_t> return_addresses, std::size_t most) {
  std::vector<std::string> lines = lines_of(return_addresses, most);
  if (!lines.empty()) return lines;
  const std::uintptr_t first = return_addresses.empty() ? 0 : return_addresses.front();
  const module m = first != 0 ? module_of(first) : module();
  if (m.file.empty()) return {"a place that is not known"};
  if (const std::string symbol = symbol_at(m); !symbol.empty()) return {brief(symbol)};
  return {m.file + " + " + hexadecimal(m.offset)};
}

std::string place_in_line(const std::string& line) {
  const std::size_t begin = line.rfind('(') + 1;
  return line.ends_with(')') ? line.substr(begin, line.size() - 1 - begin) : line;
}

}  // namespace godwit::base
