// The frames of a thread's ancestors where they lie beside it: which of them must travel with a thread, and
// whether somebody wrote into what is only a copy. docs/protocols/frames.md; the hashes and the look at a
// closure: frames.hpp. Tests: tests/sched/parts_test.cpp, tests/api/by_reference_test.cpp.
#pragma once

#include "sched/deque.hpp"
#include "sched/site.hpp"

namespace godwit::sched {

class ancestors {
 public:
  ancestors(const site& here, deque_owner& own) noexcept : here_(here), deque_(own) {}

  /// Up to where stack bytes go with the thread that was spawned at @p parent and whose own are [@p low,
  /// @p top).
  std::uint64_t needed_end(const spawn_slot& parent, std::uint64_t top, std::uint64_t low) const noexcept;
  /// Where threads have stacks of their own: from now on @p slot says of the closure of the thread that is
  /// spawned there whether it names a stack, and nothing else. When that thread has to move, the frame of its
  /// parent may be another thread's, and nobody knows what rode in registers.
  void note_closure(spawn_slot& slot, const void* closure, std::size_t bytes) const noexcept;
  /// The thread at the bottom, whose stack ends at @p top, begins to run here, with the bytes up to
  /// @p bytes_end: the sentinel says so from now on. Remembers what its ancestors' frames look like.
  void came(std::uint64_t top, std::uint64_t bytes_end) noexcept;
  /// They were copied along with the thread at the bottom, whose slot this is: ends the run if it, or a
  /// descendant, has written there.
  void check_came(const spawn_slot& bottom) const noexcept;

  [[noreturn]] void lost_write(std::uintptr_t spawned_at) const noexcept;
  [[noreturn]] void refuse_reference(std::uintptr_t spawned_at) const noexcept;

 private:
  const site& here_;
  deque_owner& deque_;
};

}  // namespace godwit::sched
