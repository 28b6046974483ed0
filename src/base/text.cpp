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
  constexpr std::size_t most = 400, tail = 100;
  constexpr std::string_view gap = "...";
  if (name.size() <= most) return std::string(name);
  std::string text(name.substr(0, most - tail - gap.size()));
  return text.append(gap).append(name.substr(name.size() - tail));
}

std::string hexadecimal(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace godwit::base
