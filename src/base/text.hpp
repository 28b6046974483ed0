// What the system tells as text -- small files of /proc and /sys, names of symbols -- and numbers as people
// read them.
//
// Not for signal handlers: all of it allocates. Called before main by base/fixed_layout.cpp, later by base
// and src/runtime. Tests: tests/base/cpus_test.cpp, tests/base/code_place_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::base {

/// The lines of a file, or what else closes with @p end, without it; none if the file cannot be read.
std::vector<std::string> lines_of(const std::string& path, char end = '\n');
/// Empty also if the file cannot be read.
std::string first_line(const std::string& path);

/// A symbol of C++ as it stands in the source; others as they are.
std::string demangled(const char* name);

/// A name short enough for a message: the begin and the end of a long one.
std::string brief(std::string_view name);

/// "0x1c"
std::string hexadecimal(std::uint64_t value);

}  // namespace godwit::base
