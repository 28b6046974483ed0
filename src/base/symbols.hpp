// What an ELF file calls its functions and variables. Called by: code_place.cpp,
// src/heap/mains_variables.cpp. Test: tests/base/symbols_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace godwit::base {

struct symbol {
  std::uintptr_t begin = 0;  ///< without the address that the file is loaded at
  std::uint64_t bytes = 0;
  bool is_function = false;  ///< else a variable
  const char* name = "";     ///< mangled, and valid during the call
};

/// The file that this program was started from.
std::string own_program();

/// Calls f for each function and variable of the tables of @p file until it says false. Nothing happens where
/// the file cannot be read, or is no ELF file. Reads the tables: some milliseconds.
void each_symbol(const std::string& file, const std::function<bool(const symbol&)>& f);

}  // namespace godwit::base
