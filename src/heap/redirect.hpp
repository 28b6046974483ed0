// Calls that this program and its libraries make of a C library's function go to another one from now on: the
// tables by which they find it (global offset tables) are changed.
//
// For functions that would have to be replaced in every program that is linked with the library, though only
// runs with a shared heap need it. Nothing happens in programs that are linked with -static, and to
// objects that are loaded later: they need another call.
// Called by waits.cpp. Test: tests/heap/redirect_test.cpp.
#pragma once

#include <span>

namespace godwit::heap {

struct redirection {
  const char* name;
  void* to;
};

/// Not while other OS threads load libraries.
void redirect(std::span<const redirection> all) noexcept;

/// The C library's function of that name, whatever calls are redirected. Null: there is none.
void* c_library_function(const char* name) noexcept;

}  // namespace godwit::heap
