// A program of the public C++ version (https://github.com/GMAP/NPB-CPP), as one more variant. Only run,
// never part of this repository.
#pragma once

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "../common/harness.hpp"

namespace npb {

/// Run @p folder/ep.A (for EP, class A) and take the time and the verdict that it prints. Throws if it
/// prints none.
inline bench::sample run_public(const std::string& folder, std::string name, char size_class) {
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  const std::string command =
      "'" + (std::filesystem::path(folder) / (name + '.' + size_class)).string() + "'";
  bench::sample s;
  s.correct = false;
  std::FILE* const out = popen(command.c_str(), "r");
  if (out == nullptr) throw std::runtime_error("cannot run " + command);
  char line[512], verdict[64];
  while (std::fgets(line, sizeof line, out) != nullptr) {
    std::sscanf(line, " Time in seconds = %lf", &s.seconds);
    if (std::sscanf(line, " Verification = %63s", verdict) == 1)
      s.correct = std::string(verdict) == "SUCCESSFUL";
  }
  if (pclose(out) != 0 || (s.seconds == 0 && !s.correct))
    throw std::runtime_error(command + " did not run: build it in NPB-SER (make ep CLASS=A)");
  s.total_seconds = s.cpu_seconds = s.seconds;
  return s;
}

}  // namespace npb
