// Worksharing constructs: loops and sections, which a team's members divide among them.
//
// A member may be some constructs ahead of another (nowait), so a team has several of these, used in turns.
// Loops of all types are counted from 0 here. share.cpp; loops.cpp has the entry points.
#pragma once

#include "thread.hpp"

namespace godwit::openmp {

struct share {
  std::uint32_t lock = 0;    ///< the team's own ones: theirs, and of those that hang on them
  std::uint64_t number = 0;  ///< which of the region's constructs it is; 0: none. Under the lock
  unsigned left = 0;         ///< members that are through. Under the lock
  share* more = nullptr;     ///< for the same turn: of cancelled regions. Under the lock

  schedule_kind kind{};
  std::uint64_t count = 0, chunk = 0;              ///< iterations; of the fixed schedule 0: one chunk each
  std::uint64_t start = 0, finish = 0, step = 0;   ///< as the program counts them
  alignas(64) std::atomic<std::uint64_t> next{0};  ///< iterations that were given out. W and R members
  /// the iteration whose chunk may enter `ordered`. W the member that had it before, R all
  alignas(64) std::atomic<std::uint64_t> turn{0};

  std::uint32_t ordered = 0;  ///< a lock; in a cancelled region turns may not come

  std::uintptr_t* reductions = nullptr;
  void* memory = nullptr;  ///< zeros for the construct's members, while it lasts
  // Iterations that depend on others (doacross): which have got that far, in row-major order.
  unsigned dimensions = 0;
  std::uint64_t extents[16] = {};
  std::uint64_t cells = 0;
  std::atomic<unsigned char>* posted = nullptr;
};

struct loop {
  schedule_kind kind;
  std::uint64_t chunk;  ///< 0: not given
  std::uint64_t start, finish, step;
  std::uint64_t count;
};
loop loop_of(schedule_kind kind, long start, long end, long step, long chunk) noexcept;
loop loop_of(schedule_kind kind, bool up, unsigned long long start, unsigned long long end,
             unsigned long long step, unsigned long long chunk) noexcept;
void set_loop(share& s, const loop& l) noexcept;

/// The calling member's next construct. @p prepare(share&) is called for the first that comes.
template <class F>
share& enter_share(thread& t, F prepare) noexcept;
bool begin_share(thread& t, share*& s) noexcept;  ///< true: first, and the lock is held
void end_preparing(thread& t) noexcept;
void leave_share(thread& t) noexcept;
void clear_share(share& s) noexcept;

/// The calling member's next iterations. False: there are none.
bool next_chunk(thread& t) noexcept;

/// The end of an ordered chunk: that of the next iterations may begin.
void pass_turn(thread& t) noexcept;
/// `ordered` itself: one member at a time, in their turn.
void enter_ordered(thread& t) noexcept;
void leave_ordered(member& me) noexcept;

template <class F>
share& enter_share(thread& t, F prepare) noexcept {
  share* s = nullptr;
  if (begin_share(t, s)) {
    prepare(*s);
    end_preparing(t);
  }
  return *s;
}

}  // namespace godwit::openmp
