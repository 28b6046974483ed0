// Local objects that are freed: what their marks say, and the list of what a home gets back from others.
//
// OB1: the mark decides between two that free the same: only one finds it alive. OB2: what is dead is in the
// list of its home once (home_words::returned), until the owner takes it out. Another host's objects are
// freed there, by its companion: one call.
//
// Called by: allocator.cpp; the call by whoever carries out requests. Document: docs/protocols/global.md.
// Tests: tests/gas/objects_test.cpp, tests/global/objects_test.cpp (under MPI, too).
#pragma once

#include "gas/places.hpp"
#include "gas/space.hpp"

#include <godwit/detail/global_objects.hpp>

namespace godwit::gas {

using detail::object_header;

/// What came of it. All but done: nothing happened.
enum class freed_as : std::uint32_t { done, twice, no_object, other_size };
struct freed {
  freed_as how = freed_as::done;
  std::uint64_t allocated = 0;  ///< bytes, as asked for
};

/// An object to be freed, as its home's host sees it.
struct returned {
  object_header* header;
  home_words* home;
  global_address at;
  std::uint64_t bytes;  ///< as who frees it believes
};

/// Is it an object of so many bytes, and alive?
freed look_at(const object_header* header, std::uint64_t bytes) noexcept;
/// OB1. False: somebody was faster.
bool kill(object_header* header) noexcept;
/// OB2, of what is dead.
void link(const returned& r) noexcept;

/// The call: a `returned` with addresses of the asker's window; argument: 0 to look at it only. Answer: a
/// `freed`.
inline constexpr std::uint64_t free_call = transport::far::call_number("gas.free");
void enter_object_calls(transport::far::call_table& table, place_site& site);

}  // namespace godwit::gas
