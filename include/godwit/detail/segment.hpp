// The serial order of what runs in parallel, and values that are put together in it.
//
// A *segment* is a piece of the program's serial, depth-first order that one worker after the other executes
// without a gap: what a worker runs and the continuations in its deque are one segment, until a continuation
// leaves. It goes on in a segment of its own, directly after the one that it has left. Segments are made only
// while somebody *tracks*, and only where threads leave or arrive; otherwise a thread's segment is 0.
//
// A *view* is the value of one reducer in one segment. What needs the order of threads needs no comparison
// of segments: it is a reducer whose operation keeps the left one (op::first, reducer.hpp).
// docs/protocols/segments.md. Not an interface for users: godwit/reducer.hpp.
#pragma once

#include <godwit/detail/hot.hpp>
#include <godwit/detail/slow_path.hpp>

#include <cstddef>
#include <cstdint>

namespace godwit {
class writer;
class reader;
}  // namespace godwit

namespace godwit::detail {

/// What can be done with the values of a type of reducer. One per type, in every worker at the same address.
struct view_type {
  std::size_t bytes;          ///< of plain values, which lie in the view itself; 0: an object of the heap
  void* (*make)(void* room);  ///< the identity. @p room: for plain values; else null
  void (*merge)(void* left, void* right) noexcept;  ///< left becomes both; right is moved from
  void (*move)(void* to, void* from) noexcept;
  void (*reset)(void* value) noexcept;  ///< to the identity
  void (*destroy)(void* value) noexcept;
  void (*write)(writer& w, const void* value);  ///< null: there is no codec
  void (*read)(reader& r, void* value);
  const char* (*name)() noexcept;  ///< of the type, for messages
};

/// A reducer begins, and tracking with it: gives back its number, which no other reducer of any run has.
std::uint64_t begin_reducer();
/// Its views are destroyed, on all hosts. Tracking ends with the last reducer.
void end_reducer(std::uint64_t reducer) noexcept;
/// The value of the reducer in the running thread's segment: made if there is none. Does not migrate.
[[gnu::cold]] void* find_view(std::uint64_t reducer, const view_type& type);
/// All values of the reducer, merged in serial order into that of the running thread's segment, which is
/// given back. With several hosts: may migrate.
[[gnu::cold]] void* merge_views(std::uint64_t reducer, const view_type& type);

/// find_view, as a rule from the worker's table. Valid until the thread spawns, joins or waits.
[[gnu::always_inline]] inline void* view_of(std::uint64_t reducer, const view_type& type) {
  const view_slot& s = hot().views[reducer % view_slots];
  if (s.reducer == reducer) [[likely]]
    return s.value;
  return find_view(reducer, type);
}

}  // namespace godwit::detail
