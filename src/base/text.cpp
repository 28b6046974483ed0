// See text.hpp.
#include "base/text.hpp"

#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <sys/types.h>

namespace godwit::base {

std::vector<std::string> lines_of(const std::string& path, char end) {
  std::vector<std::string> lines;
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return lines;
  char* line = nullptr;
  std::size_t room = 0;
  for (ssize_t n; (n = getdelim(&line, &room, end, file)) > 0;) {
    lines.emplace_back(line, static_cast<std::size_t>(n));
    if (lines.back().back() == end) lines.back().pop_back();
  }
  std::free(line);
  std::fclose(file);
  return lines;
}

std::string first_line(const std::string& path) {
  const std::vector<std::string> lines = lines_of(path);
  return lines.empty() ? "" : lines.front();
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text != nullptr ? text.get() : name;
}

std::string brief(std::string_view name) {
  constexpr std::size_t most = 160;
  if (name.size() <= most) return std::string(name);
  std::string text;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool of_operator = text.ends_with("operator") || text.ends_with("operator<");
    const bool arrow = i != 0 && name[i - 1] == '-';
    if (name[i] == '<' && !(depth == 0 && of_operator)) {
      if (depth++ == 0) text += "<...>";
    } else if (name[i] == '>' && depth > 0 && !arrow) {
      --depth;
    } else if (depth == 0) {
      text += name[i];
    }
  }
  if (text.size() > most) text.replace(most, std::string::npos, "...");
  return text;
}

std::string hexadecimal(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace godwit::base
