// Scopes that can be cancelled: a tree of nodes, the question whether the running thread is below a cancelled
// one, and the count of what is below each. docs/protocols/cancel.md (CA); models/cancel.pml.
// Test: tests/sched/scopes_test.cpp.
//
// A *strand* is what runs, waits or is ready by itself: a thread with the continuations above which it lies
// in a deque, or one that has been taken from there, or has suspended, or has not begun. A node counts the
// strands that began in its scope and have not ended, and the thread that opened it. So it costs a spawn
// nothing, and whoever ends the scope knows when nothing is left below.
#pragma once

#include "sched/carried.hpp"
#include "sched/site.hpp"

namespace godwit::sched {

enum class scope_kind : std::uint64_t {
  scope,
  shield,    ///< requests from above are not seen below
  stand_in,  ///< on another host than what it stands for, which is its parent
};

/// Home: the heap of the worker where it was made. As a record it is completed when nothing is left below,
/// for who ends the scope; `references` counts the strands.
struct scope_node : record {
  word request;     ///< its identity; plus 1: cancelled. W who cancels, once, R who asks. CA1
  ref parent;       ///< 0: none. W once
  scope_kind kind;  ///< W once
  /// cancelled from then on (base::fast_ns of this host); 0: at no time. W once
  std::uint64_t deadline_ns;
  word first;  ///< race: 1 + the number of who has a result first; 0: nobody. W threads below, R its owner
};

/// What is found out about a thread in some scope.
struct cancel_answer {
  bool cancelled = false;
  std::uint64_t until_ns = 0;  ///< the answer no is good until then, as far as times go; 0: for ever
  ref ask_on = 0;              ///< nothing here: the same for this scope, of another host
};

/// On the host where @p at lies: walks up to a shield, or to a scope of another host.
cancel_answer ask_scopes(const transport::shm::segment& memory, ref at) noexcept;

/// One strand more: @p scope is of this host, and the caller's strand or its own is in it.
inline void add_strand(const transport::shm::segment& memory, ref scope) noexcept {
  if (scope != 0) memory.at<record>(scope)->references.fetch_add(1, std::memory_order_relaxed);  // CA3
}
/// It was none: the strand that it was a part of goes on with it.
inline void take_strand_back(const transport::shm::segment& memory, ref scope) noexcept {
  if (scope != 0) memory.at<record>(scope)->references.fetch_sub(1, std::memory_order_relaxed);
}
/// A strand of @p scope leaves this host for good: what it is in from now on.
ref taken_along(const transport::shm::segment& memory, ref scope) noexcept;
/// One strand less, on the host of @p scope. Gives back what is to be counted off next (a stand-in that is
/// gone), or @p scope itself: nothing is left below, and it is to be completed; or 0.
ref count_strand_off(const transport::shm::segment& memory, ref scope) noexcept;
/// The workers of this host are to ask at once.
void tell_host(const transport::shm::segment& memory, node_words& node) noexcept;

class scopes {
 public:
  scopes(const site& here, heap& own, carried_words& words) noexcept
      : here_(here), heap_(own), carried_(words) {}

  /// Of the running thread. @p deadline_ns as in scope_node.
  ref make(scope_kind kind, std::uint64_t deadline_ns) noexcept;
  /// @p scope, or a stand-in for it: of this host.
  ref near(ref scope) noexcept;
  /// ref of the scope around @p scope; possibly of another host.
  ref parent_of(ref scope) noexcept;
  std::uint64_t identity_of(ref scope) noexcept;
  /// @p at, of this host: is it @p scope?
  bool is_or_stands_for(ref at, ref scope) const noexcept;

  /// Is the running thread cancelled? Keeps the answer for is_cancelled().
  bool ask() noexcept;
  /// Would a thread in @p scope be?
  bool ask_in(ref scope, std::uint64_t& until_ns) noexcept;
  /// The running thread has other scopes than before.
  void changed() noexcept;
  /// CA1, CA2. False: it was before, or that scope is no more.
  bool request(ref scope, std::uint64_t identity) noexcept;
  /// Substrate threads, from any OS thread: the scope lives.
  static bool request_in_place(const site& here, ref scope, std::uint64_t identity) noexcept;

  /// One strand of @p scope has ended. Gives back the scope that is to be completed, or 0. One round trip for
  /// each host that the strand's scopes were left for.
  ref strand_ended(ref scope) noexcept;

 private:
  scope_node* home(ref scope) const noexcept { return here_.home<scope_node>(scope); }
  void tell() noexcept;

  const site& here_;
  heap& heap_;
  carried_words& carried_;
  std::uint64_t made_ = 0;
  std::uint64_t until_ns_ = 0;  ///< the last answer was no, and is good until then
  std::uint64_t asked_at_ = 0;  ///< cancellations then
};

}  // namespace godwit::sched
