// What control objects (control.hpp) call: a step is carried out where the object lies, and who has to wait
// is suspended until another step lets it go on. Not an interface for users.
//
// Implemented in src/runtime/control_path.cpp on top of src/gas/controls.hpp. docs/protocols/control.md.
#pragma once

#include <godwit/detail/global_path.hpp>

#include <cstddef>
#include <cstdint>

namespace godwit::detail {

enum class control_says : std::uint32_t {
  done,    ///< the result is there; whoever waits is asked again
  waiting  ///< not yet: ask again, with the closure as it is now (its first control_closure_bytes)
};

/// A function that is carried out on the object's state, alone, at its home. Must not throw, spawn, wait,
/// or use global memory. Nothing is said about the alignment of @p closure and @p result beyond 8 bytes.
using control_step = control_says(void* state, void* closure, void* result) noexcept;

/// Of a step that may have to wait: what is kept of its closure meanwhile.
inline constexpr std::size_t control_closure_bytes = 40;
/// Of any step: closure, result, each.
inline constexpr std::size_t control_most_bytes = 512;

struct control_call {
  const char* what;  ///< "global_latch": for messages
  global_address at = 0;
  control_step* step = nullptr;
  void* closure = nullptr;
  std::size_t closure_bytes = 0;
  void* result = nullptr;
  std::size_t result_bytes = 0;
  bool may_wait = false;
  bool may_know = true;  ///< the result may tell of what others did: then what they wrote before is seen
};

/// An object at worker @p home (~0: the caller's). @p alike: all who wait want the same, so that when the
/// first cannot go on, nobody behind it can. Throws what allocate throws.
global_address control_make(const void* state, std::size_t bytes, bool alike, std::uint32_t home,
                            place where);
/// @p bytes of the state. Somebody waits: ends the run with the places.
void control_free(const char* what, global_address at, std::size_t bytes, place where);
/// True: the step is done. False: it would have to wait, but must not. If it may wait, the thread may go on
/// at another worker.
bool control_run(const control_call& call, place where);

/// What the calling thread wrote so far is seen by who acquires later: before a relaxed atomic. Nothing on
/// one host.
void control_release() noexcept;
/// All workers of the run, spare ones included.
std::uint32_t all_workers() noexcept;

}  // namespace godwit::detail
