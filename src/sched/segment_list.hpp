// The segments of a host in serial order: a list in the words of the host, for its workers and
// its companion. docs/protocols/segments.md; models/segments.pml. Test: tests/sched/segments_test.cpp.
//
// The list is made of parts, one behind the other. A part begins with an object that says which segment of
// another host it goes on with (list_begins), or that it has no predecessor.
#pragma once

#include "base/lock.hpp"
#include "sched/heap.hpp"

namespace godwit::sched {

// segment::state.
inline constexpr std::uint64_t segment_runs = 0;   ///< a thread or a deque has it, here or on another host
inline constexpr std::uint64_t segment_ended = 1;  ///< nobody will add to it
/// No segment: a part of the list begins here. With the ref of the segment of another host that it goes on
/// with: refs have their low bits free.
inline constexpr std::uint64_t list_begins = 2;

struct segment : object {
  // Under node_words::segments_lock.
  ref before;           ///< 0: none
  ref behind;           ///< 0: none
  ref views;            ///< the newest first
  std::uint64_t state;  ///< W its thread, or who takes it off the list
};
static_assert(sizeof(segment) == 64);

inline bool begins_list(const segment& s) noexcept { return (s.state & list_begins) != 0; }
/// The segment of another host that this part of the list goes on with; 0: none.
inline ref origin_of(const segment& s) noexcept { return s.state & ~std::uint64_t{63}; }

class segment_list {
 public:
  segment_list(const transport::shm::segment& memory, node_words& node, std::uint32_t holder,
               base::lock_turn turn = base::turn_of) noexcept
      : memory_(memory), node_(node), holder_(holder), turn_(turn) {}

  segment& at(ref s) const noexcept { return *memory_.at<segment>(s); }

  void lock() const noexcept { base::lock(node_.segments_lock, holder_, turn_); }
  bool try_lock() const noexcept { return base::try_lock(node_.segments_lock, holder_); }
  void unlock() const noexcept { base::unlock(node_.segments_lock, holder_); }

  // With the lock.
  ref first() const noexcept { return node_.first_segment; }
  /// @p s directly behind @p place; 0: at the front.
  void link(ref s, ref place) const noexcept {
    segment& own = at(s);
    own.before = place;
    ref& next = place != 0 ? at(place).behind : node_.first_segment;
    own.behind = next;
    (next != 0 ? at(next).before : node_.last_segment) = s;
    next = s;
  }
  void link_last(ref s) const noexcept { link(s, node_.last_segment); }
  void unlink(ref s) const noexcept {
    const segment& own = at(s);
    (own.before != 0 ? at(own.before).behind : node_.first_segment) = own.behind;
    (own.behind != 0 ? at(own.behind).before : node_.last_segment) = own.before;
  }

  /// SE1: what a thief takes goes on directly behind the segment that it leaves. With the victim's deque
  /// locked: thieves come in the order in which they take.
  void insert(ref s, ref place) const noexcept {
    GODWIT_ASSERT(!begins_list(at(s)), "what is inserted is a segment");
    lock();
    link(s, place);
    unlock();
  }

 private:
  const transport::shm::segment& memory_;
  node_words& node_;
  const std::uint32_t holder_;
  const base::lock_turn turn_;
};

}  // namespace godwit::sched
