// From an address in the program's code to what a person knows it by. For messages about mistakes; slow, and
// starts a program (addr2line, of binutils) where there is debug information. Called by: src/sched,
// src/runtime, just before a run ends. Test: tests/base/code_place_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::base {

/// "function (file.cpp:12)" of the source line that @p return_address comes back to, seen from outside the
/// library: what was inlined from headers of the system and of folders named godwit is passed over. Without
/// debug information "function + 0x1c"; without symbols "program + 0x12345"; "a place that is not known" for
/// 0 and where no code lies. Allocates; takes up to some seconds, on a busy
/// machine half a minute.
std::string code_place(std::uintptr_t return_address);
/// The same of the first of some callers, innermost first, that has such a line.
std::string code_place(std::span<const std::uintptr_t> return_addresses);
/// The same of the first @p most that have such a line, each once where neighbours have the same; at least
/// one text.
std::vector<std::string> code_places(std::span<const std::uintptr_t> return_addresses, std::size_t most);
/// The same without a text for those that have no line: none if none has.
std::vector<std::string> lines_of(std::span<const std::uintptr_t> return_addresses, std::size_t most);
/// "file.cpp:12" of "function (file.cpp:12)"; all of what is not like that.
std::string place_in_line(const std::string& line);

/// For each address the line that a call there is written in, "function (file.cpp:12)", else the
/// function, "function + 0x1c"; empty: the library's own code, headers of the system and the library, and
/// where nothing is known.
/// Starts one addr2line for each file that the program consists of.
std::vector<std::string> code_lines(std::span<const std::uintptr_t> return_addresses);

/// Code of @p file is there on behalf of who includes it: a header of the system or of this library.
bool in_library_header(std::string_view file) noexcept;

}  // namespace godwit::base
