// Segments and views as a worker handles them. docs/protocols/segments.md (SE);
// test: tests/sched/segments_test.cpp.
//
// Two locks of the host: the list's, for a few instructions; and that of merges, around what users wrote.
#pragma once

#include "base/unexposed.hpp"
#include "sched/records.hpp"
#include "sched/segment_list.hpp"

#include <godwit/detail/segment.hpp>

#include <vector>

namespace godwit::sched {

/// The value of a reducer in a segment. A plain one lies behind it.
struct alignas(64) view : object {
  ref next;               ///< of the same segment
  std::uint64_t reducer;  ///< its number
  const detail::view_type* type;
  void* elsewhere;  ///< not plain: where in the host's heap; null: behind it
};
static_assert(sizeof(view) == 64);
inline void* value_of(view& v) noexcept { return v.elsewhere != nullptr ? v.elsewhere : &v + 1; }

class segments {
 public:
  /// @p ended: tells the home of a segment of another host that it has ended.
  segments(const site& here, heap& own, join_records& records, void (*ended)(ref)) noexcept
      : here_(here), heap_(own), records_(records), ended_(ended) {}

  /// A segment of this host, in no list yet. Local.
  ref make() noexcept;
  /// SE1: a new one directly behind @p s, whose deque is locked.
  ref make_behind(ref s) noexcept;
  /// SE7: of a thread that begins later, while the running one, whose segment is @p s, goes on. It comes
  /// first; the running one's is what this gives back in @p s. If that is a new one, the caller ends the old.
  ref make_first(ref& s) noexcept;
  /// A segment for a thread of which nothing is known: behind all others.
  ref begin_list(ref origin) noexcept;
  /// Of a thread that came: its segment, or, if that is another host's, one that goes on with it. SE3
  ref arrive(ref s) noexcept { return s == 0 || here_.is_near(s) ? s : begin_list(s); }

  /// Nobody will add to @p s. What has ended on both sides of it is merged. SE2
  void end(ref s) noexcept;

  /// Nobody has used @p s, which lies behind one that is in use.
  void discard(ref s) noexcept;

  /// The view of @p reducer in @p s; 0: none.
  ref find(ref s, std::uint64_t reducer) const noexcept {
    const auto all = list();
    all.lock();
    const ref found = *link_of(s, reducer);
    all.unlock();
    return found;
  }
  /// A view, of no segment. What the type's make throws.
  ref make_view(std::uint64_t reducer, const detail::view_type& type);
  void add(ref s, ref view) noexcept;
  view& view_at(ref v) const noexcept { return *here_.at<view>(v); }
  void free_view(ref v) noexcept;

  /// What the list holds for a reducer, in its order.
  struct item {
    ref segment;  ///< 0: a part of the list begins
    ref origin;   ///< of the part that begins
    ref view;     ///< 0: none
    bool owned;   ///< the view is the caller's now
  };
  enum class wanted {
    values,  ///< those of segments that have ended are the caller's, others stay, to be reset
    /// All stay. Also segments without a view that other hosts may go on with, and begins. SE4
    positions,
    end,  ///< the reducer's: all are the caller's
  };
  /// SE6: the caller holds the lock of merges until it is done with the views.
  std::vector<item> take(std::uint64_t reducer, wanted what) noexcept;

  void lock_merges() noexcept { base::lock(here_.node->merges_lock, here_.holder(), here_.lock_turn); }
  void unlock_merges() noexcept { base::unlock(here_.node->merges_lock, here_.holder()); }

  segment_list list() const noexcept { return {*here_.memory, *here_.node, here_.holder(), here_.lock_turn}; }

 private:
  ref* link_of(ref s, std::uint64_t reducer) const noexcept;
  ref ended_neighbour(ref s, bool& before) const noexcept;
  void merge(ref left, ref right) noexcept;
  ref remove(ref s) noexcept;
  void free_removed(ref s, ref begin) noexcept;

  const site& here_;
  heap& heap_;
  join_records& records_;
  void (*ended_)(ref);
};

}  // namespace godwit::sched
