// The exceptions of a thread that may go on at another OS thread. The C++ runtime keeps them per OS thread;
// here is where, and how a worker hears that there may be some, so that a spawn pays nothing for it.
// Document: docs/protocols/exceptions.md. Test: tests/heap/handler_test.cpp.
#pragma once

#include <cstdint>

namespace godwit::context {

/// What is kept (Itanium C++ ABI, 2.2.2). Belongs to the thread that runs there.
struct exception_state {
  void* caught = nullptr;  ///< those being handled, linked, the innermost first
  unsigned uncaught = 0;   ///< so many are on their way to a handler
  bool empty() const noexcept { return caught == nullptr && uncaught == 0; }
};
static_assert(sizeof(exception_state) == 16);

/// Where it is kept.
struct exception_place {
  exception_state* state = nullptr;
  bool tells = false;  ///< whenever it may change, poll is set
};

/// That of the calling OS thread, which is a worker's from now on. Ends the run if it cannot be found.
exception_place exceptions_here() noexcept;

/// Value of hot_words::poll: nobody asks for anything, but there may be exceptions, or cancelled scopes.
inline constexpr std::uint32_t poll_exceptions = 2;
/// The running worker's poll is set from here on, for this reason if for no other.
void look_at_spawns() noexcept;

}  // namespace godwit::context
